"""Rows of a direct call: what is sent is the row as it was at the call, what comes back is a copy of its top."""

import copy
import datetime as dt
import uuid

import msgspec
import pytest

from rollbook.api.direct_rows import RunNaming, direct_rows
from stub import ENVIRONMENT
from unit.api.direct_calls import Call, directory, rows

PROMPT = [{"role": "user", "content": "add 1 and 1"}]
EPISODE = {
    "task_id": {"taskset": "sums", "task_id": "t"},
    "task_input": {"responses_create_params": {"input": PROMPT}},
    "_ng_environment_server": ENVIRONMENT,
    "_ng_rollout_id": "mine",
}


def flat(**more):
    return {**rows()[0], "responses_create_params": {"input": PROMPT}, **more}


def unnumbered(**more):
    return {key: value for key, value in flat(**more).items() if not key.endswith("_index")}


EXAMPLES = [flat(), flat(_ng_attempt_index=2), unnumbered(), unnumbered(_ng_rollout_id="mine"), EPISODE]
NAMES = ["flat", "attempt", "unnumbered", "named", "episode"]


class Recorded:
    """A sink that keeps the lines that would be recorded."""

    def __init__(self):
        self.lines = []

    async def ready(self):
        pass

    async def write(self, completed):
        self.lines.append(completed.row.rollout.line)

    async def close(self):
        pass


@pytest.mark.parametrize("example", EXAMPLES, ids=NAMES)
async def test_a_row_is_sent_and_recorded_as_it_was_at_the_call_whatever_its_owner_makes_of_it(example):
    mine, sink = copy.deepcopy(example), Recorded()
    call = Call(examples=[mine], route_failures=True, sink=sink)
    for block in (mine.get("responses_create_params"), mine.get("task_input")):
        if block is not None:
            block["input"] = "changed"
    mine["added"] = 1
    ((row, _),) = await call.all()
    assert [*row] == [*example]
    assert "changed" not in str(call.transport.sent[0].body)
    assert "added" not in call.transport.sent[0].body
    line = msgspec.json.decode(sink.lines[0])
    assert {key: line[key] for key in example} == example


@pytest.mark.parametrize(("example", "run_id"), [*zip(EXAMPLES, ["r", "r", None, "r", "r"], strict=True)], ids=NAMES)
async def test_the_run_that_is_stamped_on_a_row_is_handed_back_and_recorded(example, run_id):
    sink = Recorded()
    ((row, _),) = await Call(examples=[example], run=RunNaming("r"), route_failures=True, sink=sink).all()
    assert row.get("_ng_run_id") == msgspec.json.decode(sink.lines[0]).get("_ng_run_id") == run_id
    assert "_ng_run_id" not in example


def test_a_row_with_numbers_of_its_own_is_encoded_once():
    (row,) = direct_rows([flat()], directory(), run=RunNaming("r"))
    assert row.body is row.rollout.line


@pytest.mark.parametrize("example", EXAMPLES, ids=NAMES)
async def test_what_lies_in_a_row_that_comes_back_is_the_callers_own(example):
    call = Call(examples=[example], route_failures=True)
    ((row, _),) = await call.all()
    assert row == example
    assert row is not example
    assert all(row[key] is example[key] for key in example)


async def test_who_changes_the_top_of_a_row_that_came_back_changes_no_other_and_none_of_the_callers():
    examples = [flat(_ng_rollout_index=n) for n in range(2)]
    before = copy.deepcopy(examples)
    call = Call(examples=examples, run=RunNaming("run"))
    (first, _), (second, _) = await call.all()
    first["responses_create_params"] = first["added"] = None
    assert second == {**before[1], "_ng_run_id": "run"}
    assert examples == before


async def test_what_json_writes_as_text_or_a_list_comes_back_as_what_it_is():
    held = {"id": uuid.UUID(int=1), "at": dt.date(2024, 1, 2), "pair": (1, 2)}
    call = Call(examples=[flat(**held)])
    ((row, _),) = await call.all()
    assert {key: row[key] for key in held} == held
    sent = call.transport.sent[0].body
    assert (sent["id"], sent["at"], sent["pair"]) == (str(held["id"]), "2024-01-02", [1, 2])
