"""Folders that hold records and no plan: what is known of them is counted, and what is not known is said."""

import pytest

from rollbook.ledger.paths import RunPaths
from rollbook.records.run_status import RunState, exit_code
from rollbook.report.status_json import status_json
from rollbook.report.status_text import status_text
from rollbook.verbs.status import not_scored, run_status
from unit.verbs.profiled import planned, row, write_run


def failed(task, **fields):
    return row(task, 0, _ng_failure_class="agent_run_error") | fields


def left(folder, results, failures=()):
    return run_status(write_run(folder / "r.jsonl", [], results, failures))


def test_what_records_name_is_counted_and_nothing_is_called_damaged(tmp_path):
    status = left(tmp_path, [row(0, 0, 1.0), row(1, 0, 0.0)], [failed(2)])

    assert (status.damage, status.has_plan, status.state) == ((), False, RunState.INTERRUPTED)
    coverage = status.coverage
    assert (coverage.planned, coverage.scored, coverage.failed, coverage.unplanned) == (3, 2, 1, 0)
    assert [(group.agent, group.coverage.scored) for group in status.groups] == [("a", 2)]
    assert "3 recorded, no plan, = 2 scored" in status_text([status])
    assert "there is no plan: what was not recorded is not known" in status_text([status])
    assert status_json([status], require_complete=False)["runs"][0]["has_plan"] is False
    assert [(one.why, one.count) for one in not_scored(tmp_path / "r.jsonl").groups] == [("retryable", 1)]


@pytest.mark.parametrize(("failures", "code"), [([], 0), ([failed(2, _ng_failure_terminal=True)], 0), ([failed(2)], 3)])
def test_the_exit_code_is_that_of_what_a_resume_would_run(tmp_path, failures, code):
    assert exit_code(left(tmp_path, [row(0, 0, 1.0)], failures), require_complete=False) == code


def test_without_a_plan_nobody_knows_that_a_run_is_complete(tmp_path):
    assert exit_code(left(tmp_path, [row(0, 0, 1.0)]), require_complete=True) == 4


def test_a_sidecar_alone_is_a_folder_without_a_plan(tmp_path):
    output = write_run(tmp_path / "r.jsonl", [], [], [failed(0)])
    output.unlink()

    assert (run_status(output).coverage.failed, run_status(output).damage) == (1, ())


def test_a_record_beyond_a_plan_is_damage(tmp_path):
    output = write_run(tmp_path / "r.jsonl", [planned(0, 0)], [row(0, 0, 1.0), row(7, 0, 1.0)])

    assert "rollout 7-0 is not in the plan" in run_status(output).damage[0].what
    assert run_status(output).has_plan


def test_a_log_without_its_plan_is_damage(tmp_path):
    output = write_run(tmp_path / "r.jsonl", [], [row(0, 0, 1.0)])
    RunPaths(output).manifest.write_text("{}")

    assert run_status(output).damage
