"""The rows of runs that are profiled, read where they lie."""

import json
import random
from contextlib import ExitStack

import pytest

from rollbook.verbs.profile_rows import NearbyReader, RowReader
from rollbook.verbs.profile_run import run_at
from unit.verbs.profiled import planned, row, write_run


@pytest.mark.parametrize("size", [10, 700_000, 800_000, 1_100_000])
def test_every_piece_is_whole_however_long_it_is_and_in_whichever_order_it_is_asked_for(tmp_path, size):
    pieces = [bytes([65 + n]) * (size + n) for n in range(6)]
    starts = [sum(map(len, pieces[:n])) for n in range(6)]
    (tmp_path / "rows").write_bytes(b"".join(pieces))
    with (tmp_path / "rows").open("rb") as file:
        reader = NearbyReader(file.fileno())
        for n in [*range(6), *reversed(range(6)), *random.Random(1).choices(range(6), k=20)]:  # noqa: S311  any order
            assert reader.read(starts[n], len(pieces[n])) == pieces[n]


@pytest.mark.parametrize("order", [[0, 1, 2], [2, 0, 1], [1, 2, 0], [2, 1, 0], [0, 1, 2, 0, 1, 2], [2, 0, 2, 1, 0]])
def test_the_first_line_of_each_task_is_found_in_whichever_order_a_plan_names_them(tmp_path, order):
    plan = [planned(task, order[:at].count(task), place=at) for at, task in enumerate(order)]
    output = write_run(tmp_path / "r.jsonl", plan, [row(0, 0, 1.0)])
    run = run_at(output)
    with ExitStack() as holding:
        reader = RowReader(holding)
        found = {task: json.loads(reader.planned(run, task))["place"] for task in range(3)}
        assert found == {task: order.index(task) for task in range(3)}
        assert reader.planned(run, 3) is None
