"""A run's outcomes read from its files: prefixes, large rows, other folders, other names, and what it costs."""

import gc
import json
import tracemalloc
from itertools import count
from pathlib import Path

import pytest

from rollbook.api.rollout_records import RolloutRecords
from rollbook.errors import LedgerError
from saved_run import UNMANAGED, SavedRun, append, failed, planned, stamped

FOUR = [planned(0, 0), planned(0, 1), planned(1, 0), planned(1, 1)]


def loaded(run, **options):
    return RolloutRecords.load(run.output, run.manifest, **options)


@pytest.fixture
def worked(tmp_path):
    """0-0 has a result, 0-1 failed, 1-0 was in flight when its process died, 1-1 was never sent."""
    return SavedRun(tmp_path, FOUR).ran(0, 0).failed(0, 1).reserves((1, 0, 0))


def test_a_running_run_read_by_prefixes_never_shows_an_outcome_without_its_attempt(worked):
    limits = {path: path.stat().st_size for path in (worked.output, worked.paths.failures)}
    worked.ran(1, 1).failed(1, 0, 1)
    records = loaded(worked, outcome_limits=limits)
    assert (len(records.selected("completed")), len(records.selected("failed"))) == (1, 1)
    assert set(records.unresolved_dispatches) == {"1-0", "1-1"}
    assert loaded(worked).disposition("1-1") == "completed"


def test_a_prefix_that_ends_within_a_line_ends_before_it(worked):
    limits = {worked.output: worked.output.stat().st_size - 1}
    assert loaded(worked, outcome_limits=limits).coverage()["scored"] == 0


def test_a_prefix_of_another_file_is_refused(worked, tmp_path):
    with pytest.raises(LedgerError, match=r"other.jsonl is no file of the outcomes"):
        loaded(worked, outcome_limits={tmp_path / "other.jsonl": 1})


def test_a_row_that_another_one_took_the_place_of_is_refused(worked):
    found = loaded(worked).selected_records("completed")["0-0", 0]
    data = worked.output.read_bytes()
    worked.output.write_bytes(data.replace(b'"_ng_task_index": 0', b'"_ng_task_index": 1'))
    with pytest.raises(LedgerError, match=r"r.jsonl:1: changed since it was read: .*1-0.* where .*0-0"):
        found.read()


def test_a_file_that_another_one_took_the_place_of_is_refused(worked, tmp_path):
    records = loaded(worked)
    copy = tmp_path / "copy"
    copy.write_bytes(worked.output.read_bytes())
    copy.replace(worked.output)
    with pytest.raises(LedgerError, match="replaced by another one"):
        records.selected("completed")


def test_a_planned_row_that_changed_is_refused(worked):
    records = loaded(worked)
    plan = worked.paths.materialized_inputs
    plan.write_bytes(plan.read_bytes().replace(b'_index": 1', b'_index": 9'))
    with pytest.raises(LedgerError, match="1-1 is not planned, or the plan was changed"):
        _ = records.expected["1-1"]


def test_large_rows_are_read_back_without_the_values_that_nobody_asked_for(tmp_path):
    run = SavedRun(tmp_path, FOUR).ran(0, 0, response="x" * 500, kept={"response": 1}).ran(0, 1, response="small")
    records = loaded(run, skip_keys=frozenset({"response", "_ng_run_id"}), projected_above=400)
    large, small = records.selected("completed")
    assert (large["response"], large["kept"], large["_ng_run_id"]) == (None, {"response": 1}, "r1")
    assert small["response"] == "small"


def test_rows_that_name_no_run_are_refused_by_file_and_line_unless_they_are_imported(tmp_path):
    run = SavedRun(tmp_path, FOUR, managed=False).result(0, 0).result(0, 1, **UNMANAGED)
    with pytest.raises(LedgerError, match=r"r.jsonl:2: the row names no run, and this is run r1"):
        loaded(run)
    assert len(loaded(run, import_legacy=True).selected("completed")) == 2


def test_an_adopted_run_accepts_them(tmp_path):
    run = SavedRun(tmp_path, FOUR, adopted=True).result(0, 0, **UNMANAGED)
    assert loaded(run).disposition("0-0") == "completed"


@pytest.mark.parametrize("options", [{}, {"import_legacy": True}])
def test_rows_of_another_run_are_refused(tmp_path, options):
    run = SavedRun(tmp_path, FOUR, managed=False).result(0, 0, _ng_run_id="r2")
    with pytest.raises(LedgerError, match=r"r.jsonl:1: the row is of run r2, and this is run r1"):
        loaded(run, **options)


def test_legacy_rows_are_numbered_in_file_order_and_the_file_keeps_its_own(tmp_path):
    run = SavedRun(tmp_path, FOUR, managed=False)
    omitted = {"_ng_omitted_rollout": True, "_ng_no_persist": True}
    for fields in ({}, {"_ng_failure_message": "again"}, omitted | failed("cancelled")):
        run.failure(0, 0, **fields, **UNMANAGED)
    run.result(0, 0, **UNMANAGED)
    before = run.output.read_bytes(), run.paths.failures.read_bytes()
    records = loaded(run, import_legacy=True)
    assert set(records.payloads) == {("0-0", 0), ("0-0", 1), ("0-0", 2)}
    assert [records.payloads["0-0", n].record.read().get("_ng_attempt_index") for n in (0, 1, 2)] == [None, 1, 2]
    assert records.payloads["0-0", 1].record.read()["_ng_failure_message"] == "again"
    assert records.selected("completed")[0]["_ng_attempt_index"] == 2
    assert (run.output.read_bytes(), run.paths.failures.read_bytes()) == before


def test_an_omitted_legacy_row_is_no_attempt(tmp_path):
    run = SavedRun(tmp_path, FOUR, managed=False).failure(0, 0, **UNMANAGED)
    for rollout in (0, 1):
        run.failure(0, rollout, **failed("cancelled"), _ng_omitted_rollout=True, **UNMANAGED)
    records = loaded(run, import_legacy=True)
    assert {key: one.failure_class for key, one in records.payloads.items()} == {("0-0", 0): "agent_run_error"}
    assert (dict(records.latest), set(records.omitted)) == ({}, {("0-0", 0), ("0-1", 0)})
    assert [records.disposition(name) for name in ("0-0", "0-1")] == ["missing", "missing"]


def test_a_rollout_is_named_by_the_id_that_its_row_states(tmp_path):
    rows = [planned(0, 1), planned(0, 0, _ng_rollout_id="first"), planned(1, 0, _ng_rollout_id="0-0")]
    run = SavedRun(tmp_path, rows).ran(0, 0, _ng_rollout_id="first").failed(1, 0, _ng_rollout_id="0-0")
    records = loaded(run)
    assert dict(records.expected) == dict(zip(("0-1", "first", "0-0"), rows, strict=True))
    assert (records.disposition("first"), records.disposition("0-0")) == ("completed", "failed")
    assert [row["_ng_rollout_id"] for row in records.selected("failed")] == ["0-0"]
    assert "1-0" not in records.expected


def of_one_hash(name):
    """Return two numbers whose names have one hash, of which the index keeps 32 bits."""
    seen = {}
    for number in count():
        other = seen.setdefault(hash(name(number)) & 0xFFFFFFFF, number)
        if other != number:
            return other, number
    return None


def test_names_of_one_hash_are_told_apart(tmp_path):
    rows = [planned(at, 0, _ng_rollout_id=f"n{number}") for at, number in enumerate(of_one_hash("n{}".format))]
    records = loaded(SavedRun(tmp_path, rows).ran(0, 0, _ng_rollout_id=rows[0]["_ng_rollout_id"]))
    assert list(map(records.disposition, records.expected)) == ["completed", "missing"]


def test_numbers_of_one_hash_are_told_apart(tmp_path):
    rows = [planned(task, 0) for task in of_one_hash("{}-0".format)]
    assert list(loaded(SavedRun(tmp_path, rows)).expected.values()) == rows


def test_two_planned_rows_with_one_id_are_refused(tmp_path):
    run = SavedRun(tmp_path, [planned(0, 0, _ng_rollout_id="mine"), planned(0, 1, _ng_rollout_id="mine")])
    with pytest.raises(LedgerError, match="rollout id mine stands in two rows"):
        loaded(run)


def test_a_planned_id_that_the_wire_does_not_allow_is_named_with_its_line(tmp_path):
    run = SavedRun(tmp_path, [planned(0, 0), planned(0, 1, _ng_rollout_id="mine-a3")])
    with pytest.raises(LedgerError, match=r"r_materialized_inputs.jsonl:2: .*mine-a3"):
        loaded(run)


def test_a_damaged_line_is_named(worked):
    append(worked.output, {"reward": 1})
    with pytest.raises(LedgerError, match=r"r.jsonl:2: not a rollout record"):
        loaded(worked)


def test_a_run_is_found_by_its_companions_and_through_links(worked, tmp_path):
    alias = tmp_path / "elsewhere"
    alias.mkdir()
    (alias / "latest.jsonl").symlink_to(worked.output)
    for path in (worked.paths.failures, worked.paths.materialized_inputs, alias / "latest.jsonl"):
        records = RolloutRecords.load(path, worked.manifest)
        assert [one.path for one in records.selected_records("completed").values()] == [worked.output]


def write_many(folder: Path, rollouts: int) -> SavedRun:
    run = SavedRun(folder, [], managed=False)
    run.opens()
    with (
        run.paths.materialized_inputs.open("w") as plan,
        run.output.open("w") as results,
        run.paths.failures.open("w") as failures,
        run.paths.manifest_log.open("a") as log,
    ):
        for at in range(rollouts):
            task, rollout = divmod(at, 4)
            fields = failed() if at % 10 == 0 else {"reward": at / rollouts}
            plan.write(json.dumps(planned(task, rollout, question="?" * 100)) + "\n")
            log.write(json.dumps({"t": "reserve", "a": [task, rollout, 0], "sizes": [0, 0]}) + "\n")
            (failures if at % 10 == 0 else results).write(json.dumps(stamped(task, rollout, 0, fields)) + "\n")
    return run


def test_a_rollout_costs_at_most_two_hundred_bytes_of_memory(tmp_path):
    rollouts = 5_000
    run = write_many(tmp_path, rollouts)
    loaded(run)
    gc.collect()
    tracemalloc.start()
    try:
        records = loaded(run)
        assert (len(records.expected), len(records.latest), len(records.payloads)) == (rollouts,) * 3
        gc.collect()
        retained, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert records.coverage()["scored"] == rollouts * 9 // 10
    assert retained / rollouts <= 200
