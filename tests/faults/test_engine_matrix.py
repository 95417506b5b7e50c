"""Every fault through the engine: what is on disk of it, and what it cost."""

from collections import Counter

import pytest

from faults.collected import collected, row, row_of
from faults.raw_server import FINE, Says, Then
from faults.table import BY_A_LIMIT, FAULTS
from rollbook.errors import UnroutedRunError

pytestmark = pytest.mark.filterwarnings("error::ResourceWarning")
LIMIT_S, SHORT_LIMIT_S = 2.0, 0.6


def check_failure(fault, row):
    assert {key: row.get(key) for key in fault.told.fields} == fault.told.fields, fault.name
    assert row["_ng_failure_message"], fault.name
    assert not {"reward", "response"} & row.keys(), fault.name
    assert row["_ng_environment_server"] == fault.server, fault.name


def check_typed(fault, row):
    typed, told = row["rollout_failure"], fault.told
    found = (typed["source"], typed["failure"]["failure_kind"], typed.get("http_status"), typed["delivery"])
    assert found == ("collector", told.kind, told.status, told.delivery), fault.name


def check_requests(server, faults):
    assert Counter(server.asked) == Counter({fault.name: fault.requests for fault in faults if fault.requests})


def by_task(rows, faults):
    """Return each row with the fault of its task; no task has two."""
    numbers = [row["_ng_task_index"] for row in rows]
    assert len(set(numbers)) == len(numbers)
    return {faults[number].name: row for number, row in zip(numbers, rows, strict=True)}


def check_run(run, faults):
    """Check that each fault left the one line that it should, and that the counts say so."""
    results, failures = by_task(run.results, faults), by_task(run.failures, faults)
    assert results.keys() == {fault.name for fault in faults if fault.told is None}
    assert failures.keys() == {fault.name for fault in faults if fault.told is not None}
    for fault in faults:
        if fault.told is None:
            assert fault.result.items() <= results[fault.name].items(), fault.name
        else:
            check_failure(fault, failures[fault.name])
            check_typed(fault, failures[fault.name])
            assert not {"_ng_no_persist", "_ng_omitted_rollout"} & failures[fault.name].keys()
    coverage = run.result.coverage
    classes = Counter(fault.told.failure_class for fault in faults if fault.told is not None)
    assert coverage.law_holds
    assert (coverage.planned, coverage.settled_with_result) == (len(faults), len(results))
    assert (coverage.failed, coverage.failed_by_class) == (len(failures), classes)


@pytest.mark.parametrize("lanes", [None, 4], ids=["all at once", "four lanes"])
async def test_a_run_over_every_fault_leaves_one_line_of_each_and_asks_once(server, tmp_path, lanes):
    options = {"route_failures_to_sidecar": True, "rollout_timeout_s": LIMIT_S, "num_samples_in_parallel": lanes}
    run = await collected(server, tmp_path, [row_of(fault) for fault in FAULTS], **options)
    assert run.error is None
    check_run(run, FAULTS)
    check_requests(server, FAULTS)


async def test_what_trickles_or_stays_away_is_ended_by_the_limit_of_its_phase(server, tmp_path):
    limits = {"rollout_response_timeout_s": SHORT_LIMIT_S, "rollout_body_timeout_s": SHORT_LIMIT_S}
    rows = [row_of(fault) for fault in BY_A_LIMIT]
    run = await collected(server, tmp_path, rows, route_failures_to_sidecar=True, **limits)
    check_run_without_results(run, BY_A_LIMIT)
    for name, failed in by_task(run.failures, BY_A_LIMIT).items():
        part = "first line" if name == "never answer" else "end"
        assert f"the reply's {part} did not come within 0.6 s" in failed["_ng_failure_message"]
    check_requests(server, BY_A_LIMIT)


@pytest.mark.parametrize("name", ["trickle", "short body, kept open", "trickled body"])
async def test_a_limit_closes_its_connection_while_the_run_goes_on(server, tmp_path, name):
    server.replies["the last one"] = Says(FINE.text, Then.ALONE)
    options = {"route_failures_to_sidecar": True, "rollout_body_timeout_s": SHORT_LIMIT_S}
    run = await collected(server, tmp_path, [row(name), row("the last one")], **options)
    assert [failed["_ng_failure_type"] for failed in run.failures] == ["TimeoutError"]
    assert [result["_ng_task_index"] for result in run.results] == [1]


def check_run_without_results(run, faults):
    assert not run.results
    for fault in faults:
        row = by_task(run.failures, faults)[fault.name]
        check_failure(fault, row)
        check_typed(fault, row)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
async def test_without_routing_a_fault_ends_the_run_with_evidence_and_asks_once(server, tmp_path, fault):
    run = await collected(server, tmp_path, [row_of(fault)], rollout_timeout_s=SHORT_LIMIT_S)
    check_requests(server, [fault])
    if fault.told is None:
        assert run.error is None
        (result,) = run.results
        assert fault.result.items() <= result.items()
        return
    assert isinstance(run.error, UnroutedRunError)
    assert not run.results
    (evidence,) = run.failures
    check_failure(fault, evidence)
    assert evidence["_ng_unrouted_run_error"] is True
    assert evidence["_ng_failure_message"].startswith(f"{fault.told.exception_type}: ")
