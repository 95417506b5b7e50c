"""What a resume does with what stands: collection.md §4.8, §4.9, §4.10, §5.4.2, §5.4.3, V13."""

import pytest

from rollbook.records.coverage import runs_again
from rollbook.records.disposition import Disposition, Rules, disposition_of, is_terminal_failure
from rollbook.records.failure_kinds import Delivery, FailureStage
from rollbook.records.identity import RolloutKey
from rollbook.records.outcome import Evidence, Failed, Interrupted, Masked, NeverStarted, Scored, Unscored
from rollbook.records.record import Record
from rollbook.records.standing import Standings

KEY = RolloutKey(4, 2)
FAILED = Failed("agent_run_error")


def disposed(outcome, spent=1, rules=Rules(), run_id="r", attempt=0):  # noqa: B008  frozen
    return disposition_of(Record(KEY, attempt, outcome, run_id), spent, rules)


@pytest.mark.parametrize("timeouts", [False, True])
@pytest.mark.parametrize(
    ("failure_class", "terminal", "by_default", "with_timeouts"),
    [
        pytest.param("timeout_exceeded", True, True, False, id="a timeout runs again when asked"),
        pytest.param("reference_missing", True, True, False, id="a missing reference runs again when asked"),
        pytest.param("eval_missing", True, True, False, id="a missing evaluation runs again when asked"),
        pytest.param("transport_ineligible", True, True, False, id="an ineligible transport runs again when asked"),
        pytest.param("skipped", False, False, True, id="skipped is final when asked"),
        pytest.param("skipped", True, True, True, id="skipped and terminal is always final"),
        pytest.param("other", True, True, True, id="others are as their mark says"),
        pytest.param("other", False, False, False, id="no mark, not final"),
        pytest.param("timeout_exceeded", False, False, False, id="a timeout without the mark"),
    ],
)
def test_terminality_is_the_mark_unless_timeouts_are_retried(
    failure_class, terminal, by_default, with_timeouts, timeouts
):
    expected = with_timeouts if timeouts else by_default
    for failed in (
        Failed(failure_class, terminal=terminal),
        Failed("x", terminal=terminal, legacy_class=failure_class),
    ):
        assert is_terminal_failure(failed, retry_terminal_timeouts=timeouts) is expected


def test_a_retried_timeout_is_still_bounded_by_the_cap():
    rules = Rules(cap=3, retry_terminal_timeouts=True)
    failed = Failed("timeout_exceeded", terminal=True)
    assert disposed(failed, 2, rules) is Disposition.RETRYABLE
    assert disposed(failed, 3, rules) is Disposition.EXHAUSTED


def test_a_final_zero_is_settled_and_a_mark_alone_is_not():
    assert disposed(Failed("x", terminal=True, counts_as_zero=True)) is Disposition.SETTLED
    assert disposed(Failed("x", counts_as_zero=True)) is Disposition.RETRYABLE


@pytest.mark.parametrize(
    ("outcome", "managed", "legacy", "released"),
    [
        pytest.param(Failed("judge_failed"), "held", "retryable", "retryable", id="a judge failure"),
        pytest.param(Failed("x", saved_answer=True), "held", "retryable", "retryable", id="a kept answer"),
        pytest.param(FAILED, "retryable", "retryable", "retryable", id="an ordinary failure"),
        pytest.param(Failed("judge_failed", terminal=True), "settled", "settled", "settled", id="terminal comes first"),
        pytest.param(Interrupted("k"), "held_interrupted", "interrupted", "interrupted", id="cause unknown"),
        pytest.param(
            Interrupted("k", delivery=Delivery.NOT_SENT), "interrupted", "interrupted", "interrupted", id="never sent"
        ),
        pytest.param(
            Interrupted("k", stage=FailureStage.ADMISSION), "interrupted", "interrupted", "interrupted", id="refused"
        ),
        pytest.param(
            Interrupted("k", stage=FailureStage.AGENT), "held_interrupted", "interrupted", "interrupted", id="later"
        ),
        pytest.param(NeverStarted(""), "never_started", "never_started", "never_started", id="never started"),
        pytest.param(Evidence(""), "interrupted", "interrupted", "interrupted", id="evidence"),
        pytest.param(Scored(0.0), "scored", "scored", "scored", id="scored"),
        pytest.param(Masked(1.0), "masked", "masked", "masked", id="masked"),
        pytest.param(Unscored(), "unscored", "unscored", "unscored", id="unscored"),
    ],
)
def test_only_rows_of_a_run_are_held_and_only_until_they_are_released(outcome, managed, legacy, released):
    assert disposed(outcome) == managed
    assert disposed(outcome, run_id=None) == legacy
    assert disposed(outcome, rules=Rules(release_held=True)) == released


@pytest.mark.parametrize(
    ("spent", "disposition"), [(0, "retryable"), (2, "retryable"), (3, "exhausted"), (4, "exhausted")]
)
def test_v13_a_rollout_with_as_many_failures_as_the_cap_is_not_sent(spent, disposition):
    assert disposed(FAILED, spent, Rules(cap=3)) == disposition


def test_v13_two_failures_of_a_folder_without_a_run_id_make_the_next_attempt_number_two():
    standings = Standings()
    for _ in range(2):
        standings.add(Record(KEY, 0, FAILED))
    assert (standings.spent(KEY), standings.next_attempt(KEY)) == (2, 2)
    assert standings.standing(KEY).disposition is Disposition.RETRYABLE


@pytest.mark.parametrize(
    ("outcome", "managed", "legacy"),
    [
        pytest.param(FAILED, 1, 1, id="a failure"),
        pytest.param(Failed("x", delivery=Delivery.NOT_SENT), 0, 1, id="never sent"),
        pytest.param(Failed("x", delivery=Delivery.POSSIBLY_DELIVERED, http_status=503), 0, 1, id="503"),
        pytest.param(Failed("x", delivery=Delivery.POSSIBLY_DELIVERED, http_status=429), 0, 1, id="429"),
        pytest.param(Failed("x", delivery=Delivery.POSSIBLY_DELIVERED, http_status=502), 1, 1, id="502 may have run"),
        pytest.param(Failed("x", delivery=Delivery.POSSIBLY_DELIVERED, http_status=504), 1, 1, id="504 may have run"),
        pytest.param(Failed("x", http_status=503), 1, 1, id="a delivered reply that names a 503 of its own"),
        pytest.param(Interrupted("k"), 0, 0, id="an interruption"),
        pytest.param(NeverStarted(""), 0, 0, id="never started"),
        pytest.param(Evidence(""), 0, 0, id="evidence"),
        pytest.param(Scored(1.0), 0, 0, id="a result"),
    ],
)
def test_the_budget_is_spent_by_failures_of_what_ran(outcome, managed, legacy):
    for run_id, spent in (("r", managed), (None, legacy)):
        standings = Standings()
        standings.reserved(KEY, 0, 1)
        standings.add(Record(KEY, 0, outcome, run_id))
        assert standings.spent(KEY) == spent


def test_a_duplicate_failure_row_of_a_run_spends_once_and_without_a_run_twice():
    for run_id, spent in (("r", 1), (None, 2)):
        standings = Standings()
        standings.reserved(KEY, 0, 1) if run_id else None
        for _ in range(2):
            standings.add(Record(KEY, 0, FAILED, run_id))
        assert standings.spent(KEY) == spent


@pytest.mark.parametrize(
    ("triple", "disposition"),
    [((4, 2, 1), "approved"), ((4, 2, 0), "masked"), ((4, 1, 1), "masked"), ((0, 0, 1), "masked")],
)
def test_a_masked_result_runs_again_when_this_very_attempt_was_approved(triple, disposition):
    assert disposed(Masked(0.0), attempt=1, rules=Rules(rerun_masked=frozenset({triple}))) == disposition


def test_an_approval_is_counted_for_the_rollout_that_it_names_alone():
    standings = Standings()
    for key in (RolloutKey(0, 0), KEY):
        standings.plan(key)
    standings.add(Record(KEY, 0, Masked(0.0)))
    coverage = standings.coverage(rules=Rules(rerun_masked=frozenset({(0, 0, 0)})))
    assert (coverage.masked, coverage.approved, coverage.owed) == (1, 0, 1)


def test_a_resume_runs_what_is_owed_and_nothing_else():
    owed = {disposition for disposition in Disposition if runs_again(disposition)}
    assert owed == {"approved", "retryable", "interrupted", "never_started", "untouched"}
