"""Files folded block by block: held against the fold that takes line after line."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollbook.ledger.reader import plain_blocks, plain_lines
from rollbook.records.blocks import fold_plan_blocks, fold_result_blocks
from rollbook.records.bulk import Tokens, fold_plan, fold_reservations, fold_results
from rollbook.records.standing import Standings

AGENTS = [b'{"name":"a"}', b'{"name":"b"}', b'{"name":"\\ud800"}', b"7"]
USAGE = [{}, {"response": {"usage": {"input_tokens": 2, "total_tokens": 3}}}, {"response": None}, {"response": [1]}]


def line_of(task, rollout, agent=0, **more):
    head = json.dumps({"_ng_task_index": task, "_ng_rollout_index": rollout} | more)
    return head[:-1].encode() + b',"agent_ref":' + AGENTS[agent] + b"}"


SMALL = st.integers(0, 6)
ROWS = st.builds(
    lambda task, rollout, agent, more: line_of(task, rollout, agent, **{k: v for one in more for k, v in one.items()}),
    SMALL,
    st.integers(0, 3),
    st.sampled_from([0, 0, 0, 1, 2, 3]),
    st.tuples(
        st.sampled_from([{"reward": 1.0}, {"reward": 0}, {"reward": 0.5, "mask_sample": True}, {}, {"reward": "x"}]),
        st.sampled_from([{}, {"_ng_run_id": "r"}, {"_ng_run_id": "s"}, {"_ng_run_id": 4}]),
        st.sampled_from([{}, {"_ng_attempt_index": 1}, {"_ng_attempt_index": 20}]),
        st.sampled_from([{}, {"_ng_environment_server": "e"}, {"_ng_environment_server": 1}]),
        st.sampled_from(USAGE),
    ),
)
ODD = st.sampled_from([b"", b"  ", b"{", b"[1]", b"\xff", b'{"reward":1}', b'{"_ng_task_index":1e9}'])
REGULAR = st.tuples(SMALL, st.integers(0, 60)).map(
    lambda span: [line_of(n // 4, n % 4, reward=n / 4, _ng_run_id="r") for n in range(span[0], span[0] + span[1])]
)
FILES = st.lists(st.one_of(REGULAR, st.lists(st.one_of(ROWS, ODD), max_size=6)), max_size=4).map(
    lambda parts: [line for part in parts for line in part]
)


def everything(standings, faults, tokens):
    columns, table = standings.columns, standings.table
    attempts = columns.attempts
    return (
        list(columns.seats.items()),
        [list(one) for one in (columns.row, columns.last, columns.spent, columns.flags, columns.group)],
        list(columns.names),
        [list(one) for one in (attempts.handed_out.bits, attempts.ended.bits, attempts.sessions)],
        [list(standings.records_of(standing.key)) for standing in standings.standings()],
        [list(one) for one in (table.attempts, table.offsets, table.lengths, table.lines, table.files)],
        list(standings.standings()),
        (standings.unreserved, standings.first_unreserved, faults, tokens),
    )


def folded(plan, results, reserved, limit, *, in_blocks):
    standings, faults, tokens = Standings(), [], Tokens()
    read, fold_a_plan, fold = (
        (plain_blocks, fold_plan_blocks, fold_result_blocks) if in_blocks else (plain_lines, fold_plan, fold_results)
    )
    planned = fold_a_plan(read(plan), standings, lambda number, _: faults.append(number))
    fold_reservations([part for task, rollout in reserved for part in (task, rollout, 0)], standings, 1)
    fold(read(results, limit), standings, lambda number, _: faults.append(number), tokens)
    return planned, everything(standings, faults, tokens)


@given(
    plan=FILES,
    results=FILES,
    reserved=st.lists(st.tuples(SMALL, st.integers(0, 3)), max_size=30),
    cut=st.tuples(
        st.one_of(st.none(), st.integers(0, 5000)),
        st.sampled_from([b"\n", b"\r\n"]),
        st.sampled_from([1, 300, 1 << 16]),
    ),
)
def test_a_file_folded_in_blocks_is_a_file_folded_line_by_line(tmp_path_factory, plan, results, reserved, cut):
    limit, end, block = cut
    folder = tmp_path_factory.mktemp("run")
    paths = folder / "plan", folder / "results"
    for path, lines in zip(paths, (plan, results), strict=True):
        path.write_bytes(b"\xef\xbb\xbf" + b"".join(line + end for line in lines) + b'{"_ng_task_index":1')
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rollbook.ledger.reader._BLOCK", block)
        in_blocks = folded(*paths, reserved, limit, in_blocks=True)
    assert in_blocks == folded(*paths, reserved, limit, in_blocks=False)


@pytest.mark.parametrize("cut", [0, 1])
def test_a_huge_line_is_folded_without_its_bulk(cut, tmp_path):
    path, huge = tmp_path / "r.jsonl", line_of(1, 0, reward=1.0, responses_create_params="z" * (9 << 20))
    last = huge[: len(huge) - cut]
    path.write_bytes(line_of(0, 0, reward=0.0) + b"\n" + huge + b"\n" + line_of(2, 0, reward=1.0) + b"\n" + last)
    blocks = list(plain_blocks(path))
    assert max(len(text) for block in blocks for text in block.texts) < 1000
    counted = 0 if cut else len(huge)
    assert sum(sum(block.lengths) for block in blocks) == path.stat().st_size - len(last) + counted
    assert folded(path, path, [], None, in_blocks=True) == folded(path, path, [], None, in_blocks=False)
