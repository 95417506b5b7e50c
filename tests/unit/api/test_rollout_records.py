"""A run's outcomes under the names that the field gives them."""

import pytest

from rollbook.api.rollout_records import RolloutRecords
from rollbook.errors import ConfigError, InputError, LedgerError
from rollbook.ledger.rollout_record import indexed_records
from saved_run import UNMANAGED, SavedRun, append, failed, killed, planned, stamped

FOUR = [planned(0, 0), planned(0, 1), planned(1, 0), planned(1, 1)]
TIMEOUT = failed("timeout_exceeded") | {"_ng_failure_terminal": True}


def loaded(run, **options):
    return RolloutRecords.load(run.output, run.manifest, **options)


@pytest.fixture
def worked(tmp_path):
    """0-0 has a result, 0-1 failed, 1-0 was in flight when its process died, 1-1 was never sent."""
    return SavedRun(tmp_path, FOUR).ran(0, 0).failed(0, 1).reserves((1, 0, 0))


def test_every_planned_rollout_is_completed_failed_or_missing(worked):
    records = loaded(worked)
    assert {name: records.disposition(name) for name in records.expected} == {
        "0-0": "completed",
        "0-1": "failed",
        "1-0": "missing",
        "1-1": "missing",
    }


def test_the_rows_that_stand_are_read_back(worked):
    records = loaded(worked)
    assert [row["reward"] for row in records.selected("completed")] == [1.0]
    assert [row["_ng_failure_class"] for row in records.selected("failed")] == ["agent_run_error"]
    assert records.selected("missing") == []


def test_where_a_row_lies_is_told_without_reading_it(worked):
    found = loaded(worked).selected_records("failed")
    assert {name: (one.path, one.offset, one.line_number) for name, one in found.items()} == {
        ("0-1", 0): (worked.paths.failures, 0, 1)
    }


def test_an_unknown_disposition_and_an_unknown_rollout_are_named(worked):
    with pytest.raises(InputError, match="'done' is none of completed, failed, missing"):
        loaded(worked).selected("done")
    with pytest.raises(InputError, match="no rollout '7-7'"):
        loaded(worked).disposition("7-7")


def test_what_is_pending_comes_with_its_next_attempt(worked):
    assert loaded(worked).pending(3) == [
        planned(0, 1, _ng_attempt_index=1),
        planned(1, 0, _ng_attempt_index=1),
        planned(1, 1),
    ]


def test_a_live_session_s_attempts_are_not_pending(worked):
    records = loaded(worked)
    records.live_session = 1
    assert [row["_ng_task_index"] for row in records.pending(3)] == [0, 1]


def test_the_cap_that_is_asked_for_decides(worked):
    records = loaded(worked)
    assert (len(records.pending(1)), records.exhausted_count(1), records.exhausted_count(2)) == (2, 1, 0)


@pytest.mark.parametrize("cap", [1, 2, 3])
def test_each_rollout_is_counted_once_whatever_the_cap(tmp_path, cap):
    rollouts = [planned(task, 0) for task in range(9)]
    run = SavedRun(tmp_path, rollouts).ran(0, 0).ran(1, 0, mask_sample=True).ran(2, 0, reward=None)
    run.failed(3, 0).failed(4, 0, _ng_failure_terminal=True).failed(5, 0, **failed("judge_failed"))
    run.failed(6, 0, **killed()).failed(7, 0, **killed(_ng_failure_stage="admission"))
    records = loaded(run)
    final = records.coverage()["terminal"]
    settled = len(records.selected("completed")) + final + records.exhausted_count(cap) + records.stopped_count(cap)
    assert settled + len(records.pending(cap)) == len(rollouts)


@pytest.mark.parametrize(
    ("fields", "stopped", "exhausted"),
    [
        (failed("judge_failed"), 1, 0),
        (failed() | {"response": {"output": [{}]}}, 1, 0),
        (failed() | {"response": {"output": []}}, 0, 0),
        (killed(), 1, 0),
        (killed(_ng_failure_delivery="not_sent"), 0, 0),
        (failed() | {"_ng_failure_terminal": True}, 0, 0),
    ],
)
def test_what_is_left_to_others_is_stopped(tmp_path, fields, stopped, exhausted):
    records = loaded(SavedRun(tmp_path, FOUR).failed(0, 0, **fields))
    assert (records.stopped_count(3), records.exhausted_count(3)) == (stopped, exhausted)


def test_a_judge_failure_at_the_cap_is_exhausted_and_not_stopped(tmp_path):
    records = loaded(SavedRun(tmp_path, FOUR).failed(0, 0, **failed("judge_failed")))
    assert (records.stopped_count(1), records.exhausted_count(1)) == (0, 1)


def test_coverage_counts_the_plan_once(worked):
    report = loaded(worked).coverage()
    assert report == {
        "expected": 4,
        "scored": 1,
        "masked": 0,
        "unscored": 0,
        "failed": {"agent_run_error": 1},
        "missing": 2,
        "exhausted": 0,
        "terminal": 0,
        "stopped": 0,
        "imputed": 0,
    }


def test_an_interruption_spends_nothing_and_its_cause_decides_about_a_replay(tmp_path):
    run = SavedRun(tmp_path, FOUR).failed(0, 0, **killed()).failed(0, 1, **killed(_ng_failure_delivery="not_sent"))
    records = loaded(run)
    assert (set(records.replay_blocked), dict(records.attempt_counts)) == ({"0-0"}, {})
    assert [records.disposition(name) for name in ("0-0", "0-1")] == ["missing", "missing"]
    assert records.payloads["0-0", 0].interruption_cause_unknown
    assert not records.payloads["0-1", 0].interruption_cause_unknown


def test_failures_are_counted_by_rollout_and_what_never_failed_is_zero(tmp_path):
    records = loaded(SavedRun(tmp_path, FOUR).failed(0, 0).failed(0, 0, 1).ran(0, 1))
    assert dict(records.attempt_counts) == {"0-0": 2}
    assert (records.attempt_counts["0-1"], records.attempt_counts["7-7"], "0-1" in records.attempt_counts) == (0, 0, 0)
    assert (records.failure_count("0-0"), records.failure_count("0-1")) == (2, 0)


def test_the_latest_attempt_with_an_ending_stands(tmp_path):
    run = SavedRun(tmp_path, FOUR).reserves((0, 0, 0), (0, 0, 1), (0, 1, 0))
    records = loaded(run.result(0, 0, 1).failure(0, 0, 0))
    assert dict(records.latest) == {"0-0": 1}
    assert set(records.payloads) == {("0-0", 0), ("0-0", 1)}
    assert set(records.unresolved_dispatches) == {"0-1"}


def test_of_two_rows_about_one_attempt_the_result_is_its_payload(tmp_path):
    run = SavedRun(tmp_path, FOUR).failed(0, 0, **failed("judge_failed")).result(0, 0)
    payload = loaded(run).payloads["0-0", 0]
    assert (payload.has_reward, payload.failure_class, payload.record.path) == (True, None, run.output)


def test_a_failure_that_is_written_after_the_result_of_its_attempt_is_not_its_payload(worked):
    records = loaded(worked)
    worked.failure(0, 0)
    where, row = list(indexed_records(worked.paths.failures))[-1]
    records.outcome(row, where)
    assert records.payloads["0-0", 0].has_reward
    assert records.disposition("0-0") == "completed"


def test_what_is_no_attempt_is_in_no_view(worked):
    records = loaded(worked)
    assert [value in records.payloads for value in [("0-0", 1), "0-0", ("0-0",), None, ("7-7", 0)]] == [False] * 5
    assert [value in records.omitted for value in [("0-0", 0), None]] == [False] * 2
    with pytest.raises(KeyError):
        _ = records.payloads["0-0", 1]
    with pytest.raises(KeyError):
        _ = records.latest["1-1"]


def test_omitted_attempts_are_told_apart_from_those_that_ended(tmp_path):
    omitted = {"_ng_omitted_rollout": True, "_ng_no_persist": True}
    run = SavedRun(tmp_path, FOUR)
    run.failure(0, 0, **failed("cancelled"), **omitted, _ng_dispatch_drained=True)
    records = loaded(run)
    assert (set(records.omitted), set(records.payloads), dict(records.latest)) == ({("0-0", 0)}, set(), {})


def test_timeouts_that_run_again_are_counted(tmp_path):
    run = SavedRun(tmp_path / "again", FOUR, retry_terminal_timeouts=True).failed(0, 0, **TIMEOUT).failed(0, 1)
    plain = SavedRun(tmp_path / "plain", FOUR).failed(0, 0, **TIMEOUT)
    assert dict(loaded(run).overridden_terminal_counts) == {"0-0": 1}
    assert (dict(loaded(plain).overridden_terminal_counts), loaded(plain).payloads["0-0", 0].terminal) == ({}, True)


def test_an_approved_masked_result_is_selected_and_pending(tmp_path):
    run = SavedRun(tmp_path, FOUR, rerun_masked=[(0, 0, 0)]).ran(0, 0, mask_sample=True).ran(0, 1, mask_sample=True)
    records = loaded(run)
    assert records.rerun_approved_identities() == {"0-0"}
    assert [key for key, one in records.payloads.items() if one.rerun_approved] == [("0-0", 0)]
    assert (records.disposition("0-0"), records.pending(3)[0]["_ng_attempt_index"]) == ("completed", 1)


def test_a_marked_terminal_failure_is_a_final_zero(tmp_path):
    run = SavedRun(tmp_path, FOUR)
    marked = {"_ng_failure_counts_as_zero": True, "failure_kind": "a:b", "elapsed_seconds": 2}
    run.failed(0, 0, **marked, _ng_failure_terminal=True).failed(0, 1, **marked)
    found = loaded(run).payloads
    assert [(found[name, 0].final_zero, found[name, 0].counted_zero_kind) for name in ("0-0", "0-1")] == [
        (True, "a:b"),
        (False, "a:b"),
    ]
    assert found["0-0", 0].elapsed_seconds == 2.0


def test_the_cap_is_what_was_saved_and_what_recovery_added(tmp_path):
    records = loaded(SavedRun(tmp_path, FOUR, max_rollout_attempts=2, attempt_extension=3))
    assert (records.attempt_cap, records.attempt_extension) == (5, 3)


def test_the_first_lost_attempt_is_free_and_each_later_one_is_a_row(tmp_path):
    run = SavedRun(tmp_path, FOUR).reserves((0, 0, 0), (0, 0, 1), (0, 0, 2), (0, 1, 0))
    rows = loaded(run).allocation_end_charges()
    assert [(row["_ng_task_index"], row["_ng_rollout_index"], row["_ng_attempt_index"]) for row in rows] == [
        (0, 0, 1),
        (0, 0, 2),
    ]
    assert {(row["_ng_failure_class"], row["_ng_run_id"], row["_ng_failure_max_attempts"]) for row in rows} == {
        ("rollout_allocation_ended", "r1", 3)
    }


def test_a_saved_charge_is_not_charged_again(tmp_path):
    run = SavedRun(tmp_path, FOUR).reserves((0, 0, 0), (0, 0, 1))
    for row in loaded(run).allocation_end_charges():
        append(run.paths.failures, row)
    records = loaded(run)
    assert (records.allocation_end_charges(), records.failure_count("0-0")) == ([], 1)


def test_an_outcome_may_be_written_for_an_attempt_that_was_handed_out(worked):
    assert loaded(worked).check_outcome(stamped(1, 0, 0, {"reward": 1.0})) == ("1-0", 0)


@pytest.mark.parametrize(
    ("row", "why"),
    [
        (stamped(1, 0, 0, {"_ng_run_id": "r2"}), "is of run r2"),
        (stamped(1, 0, 0, UNMANAGED), "names no run"),
        ({"_ng_run_id": "r1"}, "names no rollout"),
        (stamped(7, 0, 0, {}), "rollout 7-0 is not in the plan"),
        (stamped(1, 0, 1, {}), "attempt 1 of rollout 1-0 was never handed out"),
        (stamped(1, 1, 0, {}), "attempt 0 of rollout 1-1 was never handed out"),
        (stamped(0, 0, 0, {}), "attempt 0 of rollout 0-0 has ended already"),
    ],
)
def test_an_outcome_that_does_not_belong_is_refused_and_changes_nothing(worked, row, why):
    records = loaded(worked)
    with pytest.raises(LedgerError, match=why):
        records.check_outcome(row)
    assert (records.standings.records, records.disposition("1-0")) == (2, "missing")


def test_a_re_judgment_of_an_attempt_that_ended_may_be_written(worked):
    row = stamped(0, 1, 0, {"reward": 1.0, "_ng_rejudged_failure_id": "f"})
    assert loaded(worked).check_outcome(row) == ("0-1", 0)


def test_a_row_that_says_that_nothing_was_sent_needs_no_attempt(worked):
    omitted = {"_ng_omitted_rollout": True, "_ng_dispatch_drained": True}
    assert loaded(worked).check_outcome(stamped(1, 1, 0, failed("cancelled") | omitted)) == ("1-1", 0)


def test_a_legacy_row_is_checked_for_its_place_in_the_plan_alone(worked):
    records = loaded(worked)
    assert records.check_outcome(stamped(1, 1, 0, UNMANAGED), legacy=True) == ("1-1", 0)
    records.check_run_identity(stamped(1, 1, 0, UNMANAGED), legacy=True)


def test_an_outcome_is_folded_once_its_line_is_written(worked):
    records = loaded(worked)
    worked.result(1, 0, reward=0.5)
    where, row = list(indexed_records(worked.output))[-1]
    records.outcome(row, where)
    assert records.disposition("1-0") == "completed"
    assert records.selected("completed")[-1] == row


def test_an_outcome_of_another_file_is_refused(worked, tmp_path):
    other = SavedRun(tmp_path / "other", FOUR).ran(1, 0)
    where, row = next(iter(indexed_records(other.output)))
    with pytest.raises(LedgerError, match="is no file of this run"):
        loaded(worked).outcome(row, where)


def test_planned_rows_in_hand_are_folded_without_a_file(tmp_path):
    manifest = SavedRun(tmp_path, FOUR).manifest
    records = RolloutRecords(manifest, FOUR)
    append(tmp_path / "x_failures.jsonl", stamped(0, 1, 0, failed()))
    append(tmp_path / "x.jsonl", stamped(0, 0, 0, {"reward": 1.0}))
    for path in (tmp_path / "x_failures.jsonl", tmp_path / "x.jsonl"):
        where, row = next(iter(indexed_records(path)))
        records.outcome(row, where)
    assert [records.disposition(name) for name in records.expected] == ["completed", "failed", "missing", "missing"]
    assert records.pending(3)[0] == planned(0, 1, _ng_attempt_index=1)
    assert FOUR[1] == planned(0, 1)


def test_rows_in_hand_with_one_name_are_refused(tmp_path):
    manifest = SavedRun(tmp_path, FOUR).manifest
    with pytest.raises(InputError, match="0-0 is planned twice"):
        RolloutRecords(manifest, [planned(0, 0), planned(0, 0)])
    with pytest.raises(ConfigError, match="classification"):
        RolloutRecords(manifest, FOUR, classification={})
