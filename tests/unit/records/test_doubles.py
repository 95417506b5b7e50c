"""An attempt that has two results: what the fold notices of it."""

import json

import pytest

from rollbook.ledger.reader import plain_blocks, plain_lines
from rollbook.records.blocks import fold_result_blocks
from rollbook.records.bulk import Tokens, fold_results
from rollbook.records.identity import RolloutKey
from rollbook.records.outcome import Failed, Interrupted, Masked, NeverStarted, Scored, Unscored
from rollbook.records.record import Record
from rollbook.records.rejudgment import REJUDGED_FAILURE_ID_KEY
from rollbook.records.standing import Standings

KEY = RolloutKey(0, 0)
FAILED = Failed("agent_run_error")


def folded(*records, key=KEY):
    standings = Standings()
    standings.plan(key)
    for outcome, attempt, run_id in records:
        standings.add(Record(key, attempt, outcome, run_id))
    return standings


@pytest.mark.parametrize(
    ("records", "doubles", "disputed"),
    [
        ([(Scored(1.0), 0, "r"), (Scored(0.0), 0, "r")], 1, 1),
        ([(Scored(1.0), 0, "r"), (Masked(1.0), 0, "r")], 1, 1),
        ([(Scored(1.0), 0, "r"), (Unscored(), 0, "r")], 1, 1),
        ([(Scored(1.0), 0, None), (Scored(0.0), 0, None)], 1, 1),
        ([(Scored(1.0), 0, "r"), (Scored(1.0), 0, "r")], 1, 0),
        ([(Masked(None), 0, "r"), (Masked(None), 0, "r")], 1, 0),
        ([(Scored(1.0), 0, "r"), (Scored(1.0), 0, "r"), (Scored(0.0), 0, "r"), (Scored(0.0), 0, "r")], 1, 1),
        ([(Scored(1.0), 0, "r"), (Scored(0.0), 1, "r"), (Scored(0.0), 0, "r")], 1, 1),
        ([(Scored(1.0), 0, "r"), (Scored(0.0), 1, "r")], 0, 0),
        ([(Scored(1.0), 0, None), (Scored(0.0), 1, None)], 0, 0),
        ([(FAILED, 0, "r"), (Scored(0.0), 0, "r")], 0, 0),
        ([(FAILED, 0, None), (Scored(0.0), 0, None)], 0, 0),
        ([(Scored(0.0), 0, "r"), (FAILED, 0, "r"), (Interrupted("kill_shaped"), 0, "r")], 0, 0),
        ([(NeverStarted("budget"), 0, "r"), (Scored(0.0), 0, "r")], 0, 0),
        ([(Scored(1.0), 20, "r"), (Scored(0.0), 20, "r")], 1, 1),
    ],
)
def test_two_results_of_one_attempt_are_a_double_and_disputed_where_they_differ(records, doubles, disputed):
    standings = folded(*records)
    assert (len(standings.doubles.pairs), len(standings.doubles.disputed)) == (doubles, disputed)
    assert standings.coverage().disputed == disputed


def test_the_pair_that_differs_is_the_one_that_is_told():
    standings = folded((Scored(1.0), 0, "r"), (Scored(1.0), 0, "r"), (Scored(0.0), 0, "r"))
    [pair] = standings.doubles.pairs.values()
    assert pair == (1, 2)


def test_a_result_that_judges_a_saved_one_anew_is_no_double():
    standings = Standings()
    standings.add(Record(KEY, 0, Scored(1.0), "r"))
    standings.add(Record(KEY, 0, Scored(0.0), "r", is_rejudgment=True))
    assert not standings.doubles.pairs


def test_disputed_rollouts_are_counted_with_whose_they_are_and_beyond_the_plan_not_at_all():
    standings = Standings()
    for task, agent in ((0, "a"), (1, "b"), (2, "b")):
        standings.plan(RolloutKey(task, 0), agent)
    for task in (1, 2, 3):
        for reward in (1.0, 0.0):
            standings.add(Record(RolloutKey(task, 0), 0, Scored(reward), "r", "b"))
    groups, _ = standings.counted()
    assert {group.agent: group.coverage.disputed for group in groups} == {"a": 0, "b": 2}
    assert standings.coverage().disputed == 2


def line(reward, **fields):
    usage = {"response": {"usage": {"input_tokens": 5, "output_tokens": 2, "total_tokens": 7}}}
    return json.dumps({"_ng_task_index": 0, "_ng_rollout_index": 0, "reward": reward} | usage | fields) + "\n"


@pytest.mark.parametrize("fold", [(fold_results, plain_lines), (fold_result_blocks, plain_blocks)])
@pytest.mark.parametrize(
    ("lines", "input_tokens", "disputed"),
    [
        ([line(1.0, _ng_run_id="r")] * 3, 5, 0),
        ([line(1.0)] * 2, 5, 0),
        ([line(1.0, _ng_run_id="r"), line(0.0, _ng_run_id="r")], 5, 1),
        ([line(1.0, _ng_run_id="r"), line(0.0, _ng_run_id="r", _ng_attempt_index=1)], 10, 0),
        ([line(1.0, _ng_run_id="r"), line(0.0, _ng_run_id="r", **{REJUDGED_FAILURE_ID_KEY: "result-sha256:0"})], 5, 0),
    ],
)
def test_the_tokens_of_one_attempt_count_once_however_many_lines_tell_of_it(
    fold, lines, input_tokens, disputed, tmp_path
):
    fold_lines, read = fold
    path = tmp_path / "r.jsonl"
    path.write_text("".join(lines))
    standings, tokens = Standings(), Tokens()
    fold_lines(read(path), standings, pytest.fail, tokens)
    assert tokens.input_tokens == input_tokens
    assert len(standings.doubles.disputed) == disputed
