"""Answers that are judged once more: under which admission, what is kept of them, and which are taken."""

import json

import pytest

from rollbook.ledger.history import read_history
from rollbook.ledger.paths import RunPaths
from rollbook.ledger.writer import Writer
from rollbook.records.codec import RunStamp
from rollbook.records.disposition import Disposition, Rules
from rollbook.records.ending import Ending
from rollbook.records.identity import RolloutKey
from rollbook.records.outcome import Evidence, Failed, Interrupted, Scored
from rollbook.records.rejudgment import row_sha256
from rollbook.records.task import Rollout
from rollbook.testing.manual_clock import ManualClock
from rollbook.verbs.reverify_answers import JudgeFailures
from rollbook.verbs.reverify_rejudge import FINAL, WITHOUT_ANSWER, Admissions, Rejudgeable, RejudgeLedger, kept_answer
from saved_run import SavedRun, append, planned

ANSWER = {"output": [{"type": "message"}]}


def failure(task, **fields):
    return planned(task, 0) | {"_ng_run_id": "r", "_ng_failure_class": "judge_failed", "response": ANSWER} | fields


def test_an_admission_of_another_answer_is_not_the_one_that_is_left_open():
    saved = []
    admissions = Admissions("op1", "2026-01-01T00:00:00Z", lambda found: saved.append(list(found)))
    first, other = failure(0, _ng_failure_id="f1"), failure(0, _ng_failure_id="f2", response={"output": [1]})
    (link,) = admissions.admit([(first, 0)])
    again = Admissions("op2", "2026-01-02T00:00:00Z", lambda found: saved.append(list(found)), dict(admissions.open))
    assert again.admit([(first, 0)]) == [link]
    again.admit([(other, 0)])
    ((admission,),) = saved[-1:]
    assert (admission.operation_id, admission.predecessor_id) == ("op2", "f2")
    assert admission.predecessor_sha256 == row_sha256(other)


def test_the_answer_that_was_judged_is_kept_also_where_a_reply_of_a_verifier_stands_as_it_came():
    sent = Rollout(RolloutKey(0, 0), json.dumps({"response": ANSWER}).encode(), "e", "a")
    told = kept_answer(Ending(Scored(0.5), kept=b'{"reward":0.5}'), sent)
    assert (told.kept, dict(told.payload)) == (None, {"reward": 0.5, "response": ANSWER})


def test_an_invalid_result_is_not_judged_where_a_sound_one_follows_it(tmp_path):
    paths = RunPaths(tmp_path / "r.jsonl")
    for task, rest in ((0, ({},)), (1, ())):
        append(paths.output, planned(task, 0) | {"reward": 0.0, "response": ANSWER, "invalid_judge_response": True})
        for fields in rest:
            append(paths.output, planned(task, 0) | {"reward": 1.0, "response": ANSWER} | fields)
        append(paths.failures, failure(2 + task))
    found = JudgeFailures.found(paths, with_invalid=True)
    assert sorted(key.task for key in found) == [1, 2, 3]


def test_what_a_judge_failed_on_before_there_was_a_result_is_not_judged_again(tmp_path):
    paths = RunPaths(tmp_path / "r.jsonl")
    append(paths.output, planned(0, 0) | {"reward": 0.0, "response": ANSWER})
    append(paths.failures, failure(0))
    append(paths.failures, failure(1))
    assert [key.task for key in JudgeFailures.found(paths, with_invalid=False)] == [1]


def test_what_is_final_and_what_keeps_no_answer_is_left_out_and_counted(tmp_path):
    run = SavedRun(tmp_path, [planned(task, 0) for task in range(4)])
    judge = {"_ng_failure_class": "judge_failed", "response": ANSWER}
    run.failed(0, 0, **judge).failed(1, 0, **judge, _ng_failure_terminal=True)
    run.failed(2, 0, **judge | {"response": None}).ran(3, 0, response=ANSWER)
    owed = Rejudgeable(run.paths, read_history(run.paths, on_damage=lambda _error: None).standings, Rules())
    owed.look()
    assert [key.task for key in owed] == [0]
    assert owed.left_out == {FINAL: 1, WITHOUT_ANSWER: 1}


def test_a_row_stands_only_in_the_file_in_which_it_lies(tmp_path):
    run = SavedRun(tmp_path, [planned(0, 0)])
    run.failed(0, 0, _ng_failure_class="judge_failed", response=ANSWER).ran(0, 0, attempt=1, reward="none")
    owed = Rejudgeable(run.paths, read_history(run.paths, on_damage=lambda _error: None).standings, Rules())
    owed.look()
    assert (list(owed), owed.left_out) == ([], {})


@pytest.mark.parametrize("outcome", [Failed("agent_run_error", "no"), Interrupted("kill_shaped", "gone")])
def test_what_nobody_judged_is_evidence_and_moves_nothing(outcome):
    sent = Rollout(RolloutKey(0, 0), json.dumps({"response": ANSWER}).encode(), "e", "a")
    told = kept_answer(Ending(outcome), sent)
    assert isinstance(told.outcome, Evidence)
    assert "response" not in told.payload


async def test_a_judging_that_is_cut_leaves_an_answer_of_no_named_run_where_it_stood(tmp_path):
    run = SavedRun(tmp_path, [planned(0, 0)], managed=False)
    run.failure(0, 0, _ng_run_id=None, _ng_failure_class="judge_failed", response=ANSWER)
    standings = read_history(run.paths).standings
    before = standings.standing(RolloutKey(0, 0)).disposition
    async with Writer(run.paths, RunStamp("r", cap=3), ManualClock()) as writer:
        ledger = RejudgeLedger(writer, standings, Admissions("op", "now", lambda _open: None))
        await ledger.reserve(Rollout(RolloutKey(0, 0), b"{}", "e", "a", attempt=1))
    assert standings.standing(RolloutKey(0, 0)).disposition is before
    assert before is Disposition.RETRYABLE
