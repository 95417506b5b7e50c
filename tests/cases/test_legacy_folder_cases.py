"""Folders that a collector without manifests left: NeMo Gym 0.7's shapes, resumed, shown, and taken up.

Source: collection.md §1.5 to §1.7, §4.11, §5.2, §16.
"""

import json

import pytest

from rollbook.ledger.digests import sha256_of
from run_folder import (
    SERVER_ERROR,
    RunFolder,
    built,
    failed,
    identities,
    omitted,
    planned,
    replies,
    rows_of,
    scored,
    status_reply,
)
from stub import adding, lines, serving

CAP = "NEMO_GYM_MAX_ROLLOUT_ATTEMPTS"
ANSWER = {"output": [{"type": "message", "role": "assistant", "content": []}]}


def nothing_fails(_row):
    return None


@pytest.fixture
def stub():
    with serving() as stub:
        yield stub


@pytest.fixture
def outstanding(tmp_path):
    """Case RC-21: two scored, one terminal, one at the cap, one that failed once, one that was never seen."""
    failures = [failed(2, _ng_failure_terminal=True), *[failed(3)] * 3, failed(4)]
    folder = built(tmp_path, 6, [scored(0), scored(1)], failures)
    folder.failures.write_bytes(folder.failures.read_bytes() + lines([failed(5)])[:40])
    return folder


def test_rc_21_status_counts_what_is_left_as_a_resume_does(outstanding, stub):
    told = outstanding.status()
    assert (told["inputs"], told["succeeded"], told["terminal"], told["at_cap"]) == (6, 2, 1, 1)
    assert (told["outstanding"], told["exit_code"]) == (2, 3)
    assert stub.requests == []
    assert outstanding.resume(stub).code == 0
    assert outstanding.sent == [(4, 0, 1), (5, 0, 0)]
    assert outstanding.status()["outstanding"] == 0


def test_rc_21_a_higher_cap_leaves_one_more(outstanding, stub, monkeypatch):
    monkeypatch.setenv(CAP, "5")
    assert outstanding.status()["outstanding"] == 3
    outstanding.resume(stub)
    assert outstanding.sent == [(3, 0, 3), (4, 0, 1), (5, 0, 0)]


@pytest.mark.parametrize("missing", ["results", "failures"])
def test_rc_21_a_status_needs_neither_of_the_two_files(outstanding, missing):
    getattr(outstanding, missing).unlink()
    told = outstanding.status()
    assert told["inputs"] == 6
    assert told["outstanding"] == {"results": 4, "failures": 4}[missing]


ORDERS = [
    (["judge_failed", "agent_request_failed"], {"agent_request_failed": 1}),
    (["agent_request_failed", "judge_failed"], {"judge_failed": 1}),
]


@pytest.mark.parametrize(("classes", "by_class"), ORDERS)
def test_rc_25_a_success_wins_and_of_failures_the_last_stands(tmp_path, classes, by_class):
    failures = [failed(0, classes[0]), failed(1, "agent_run_error"), failed(0, classes[1])]
    told = built(tmp_path, 2, [scored(1)], failures).status()
    assert told["coverage"]["scored"] == 1
    assert told["coverage"]["failed_by_class"] == by_class


OMITTED = [
    failed(0, "judge_failed", mask_sample=True, response=ANSWER),
    omitted(0, _ng_failure_terminal=True),
    omitted(1, "cancelled", _ng_dispatch_drained=True, _ng_failure_terminal=True),
    failed(2, "timeout", _ng_no_persist=True),
]


def test_rc_22_attempts_that_left_no_result_are_missing_and_not_failed(tmp_path):
    told = built(tmp_path, 4, [scored(3)], OMITTED).status()
    assert told["coverage"]["failed_by_class"] == {"timeout": 1}
    assert (told["coverage"]["interrupted"], told["coverage"]["never_started"]) == (1, 1)
    assert told["outstanding"] == 3


@pytest.mark.parametrize("copies", [1, 5])
def test_rc_22_omitted_rows_are_no_attempts_whatever_flag_is_on_them(tmp_path, stub, copies):
    folder = built(tmp_path, 4, [scored(3)], [*OMITTED[:1], *OMITTED[1:3] * copies, *OMITTED[3:]])
    assert folder.resume(stub).code == 0
    assert folder.sent == [(0, 0, 1), (1, 0, 0), (2, 0, 1)]


def test_rc_22_a_never_started_row_hides_no_failure(tmp_path):
    rows = [failed(0, "judge_failed"), omitted(0, "cancelled", _ng_dispatch_drained=True)]
    told = built(tmp_path, 1, (), rows).status()
    assert told["coverage"]["failed_by_class"] == {"judge_failed": 1}


NUMBERS = [
    pytest.param([], 0, id="never failed"),
    pytest.param([failed(1)], 1, id="one failure"),
    pytest.param([failed(1), failed(1, _ng_attempt_index=1)], 2, id="V13: two failures, as 0.7 stamps them"),
    pytest.param([failed(1), failed(1)], 2, id="V13: two failures without a stamp"),
    pytest.param([failed(1)] * 3, None, id="V13: three failures are the cap"),
    pytest.param([failed(1, _ng_failure_terminal=True)], None, id="a terminal failure"),
    pytest.param([failed(1, _ng_failure_terminal=True), failed(1)], 2, id="a failure after a terminal one"),
    pytest.param([failed(1), failed(1, _ng_failure_terminal=True)], None, id="a terminal failure after another"),
    pytest.param([omitted(1)], 0, id="an omitted row is no attempt"),
    pytest.param([failed(1), omitted(1), failed(1, _ng_attempt_index=1)], 2, id="an omitted row between failures"),
    pytest.param([omitted(1)] * 5, 0, id="five omitted rows do not retire"),
    pytest.param([failed(1, "kill_shaped", _ng_no_persist=True)], 1, id="no-persist alone is a failure"),
    pytest.param([failed(1, "kill_shaped", _ng_no_persist=True)] * 3, None, id="no-persist alone spends the cap"),
    pytest.param([omitted(1, _ng_unrouted_run_error=True)], 0, id="evidence is no attempt"),
    pytest.param([failed(1, "judge_failed", response=ANSWER)], 1, id="a failed judge is not held"),
    pytest.param([failed(1, _ng_failure_http_status=503)] * 3, None, id="every failure counts, a 503 as well"),
]


@pytest.mark.parametrize(("rows", "attempt"), NUMBERS)
def test_a_folder_without_a_manifest_goes_on_by_its_rows(tmp_path, stub, rows, attempt):
    folder = built(tmp_path, 2, [scored(0)], rows)
    told = folder.status()
    assert (told["managed"], told["outstanding"]) == (False, 0 if attempt is None else 1)
    before = {path: path.read_bytes() for path in (folder.plan, folder.results, folder.failures)}
    assert folder.resume(stub).code == 0
    assert folder.sent == ([] if attempt is None else [(1, 0, attempt)])
    assert all(path.read_bytes().startswith(old) for path, old in before.items())
    assert folder.plan.read_bytes() == before[folder.plan]


def test_a_new_result_carries_the_number_that_its_request_had(tmp_path, stub):
    folder = built(tmp_path, 2, [scored(0)], [failed(1), failed(1)])
    folder.resume(stub)
    assert [("_ng_attempt_index" in row, row.get("_ng_attempt_index")) for row in stub.requests] == [(True, 2)]
    assert rows_of(folder.results)[-1]["_ng_attempt_index"] == 2


def test_a_first_attempt_is_sent_without_a_stamp(tmp_path, stub):
    built(tmp_path, 1).resume(stub)
    assert "_ng_attempt_index" not in stub.requests[0]


def test_a_folder_that_is_resumed_is_adopted_and_its_manifest_says_so(tmp_path, stub):
    folder = built(tmp_path, 2, [scored(0)], [failed(1)])
    answer = folder.resume(stub)
    assert "no manifest" in answer.text
    told = folder.told_manifest()
    assert (told["adopted"], told["plan"]["rollouts"]) == (True, 2)
    assert rows_of(folder.results)[-1]["_ng_run_id"] == told["run_id"]
    assert "_ng_run_id" not in rows_of(folder.results)[0]
    after = folder.status()
    assert (after["managed"], after["state"], after["succeeded"], after["exit_code"]) == (True, "finished", 2, 0)


def test_an_adopted_folder_is_a_run_like_any_other(tmp_path, stub):
    folder = built(tmp_path, 3, [scored(0)], [failed(1)])
    stub.script = replies({(1,): SERVER_ERROR})
    assert folder.resume(stub).code == 3
    stub.script = nothing_fails
    run_id = folder.told_manifest()["run_id"]
    assert folder.resume(stub).code == 0
    assert folder.sent == [(1, 0, 2)]
    assert folder.resume(stub).code == 0
    assert folder.sent == []
    assert folder.told_manifest()["run_id"] == run_id
    assert folder.resume(stub, "--temperature", "0.5").code == 1


def test_old_and_new_failures_spend_one_cap(tmp_path, stub):
    folder = built(tmp_path, 2, [scored(0)], [failed(1), failed(1)])
    stub.script = replies({(1,): SERVER_ERROR})
    assert folder.resume(stub).code == 0
    assert folder.sent == [(1, 0, 2)]
    assert folder.status()["at_cap"] == 1


def test_a_turned_away_attempt_of_an_adopted_folder_spends_nothing(tmp_path, stub):
    folder = built(tmp_path, 2, [scored(0)], [failed(1), failed(1)])
    stub.script = replies({(1,): status_reply(503)})
    assert folder.resume(stub).code == 3
    stub.script = nothing_fails
    assert folder.resume(stub).code == 0
    assert folder.sent == [(1, 0, 3)]


def test_an_adopted_folder_keeps_the_cap_that_held_when_it_was_adopted(tmp_path, stub, monkeypatch):
    monkeypatch.setenv(CAP, "2")
    folder = built(tmp_path, 3, [scored(0)], [failed(1)])
    stub.script = replies({(1,): SERVER_ERROR, (2,): SERVER_ERROR})
    folder.resume(stub)
    monkeypatch.setenv(CAP, "9")
    folder.resume(stub)
    assert folder.sent == [(2, 0, 1)]


@pytest.mark.parametrize("success", [scored(1), scored(1, _ng_attempt_index=1)], ids=["unstamped", "stamped"])
def test_a_success_after_a_failure_is_aggregated_whether_it_is_stamped_or_not(tmp_path, stub, success):
    folder = built(tmp_path, 3, [scored(0), success], [failed(1)])
    assert folder.resume(stub).code == 0
    assert folder.sent == [(2, 0, 0)]
    (body,) = stub.aggregated
    assert [row["_ng_task_index"] for row in body["verify_responses"]] == [0, 1, 2]


def test_the_losses_of_an_adopted_folder_are_numbered_behind_its_old_rows(tmp_path, stub):
    """The process that adopted the folder died while the rollout was in flight."""
    folder = built(tmp_path, 2, [scored(0)], [failed(1)])
    folder.resume(stub)
    folder.results.write_bytes(lines(rows_of(folder.results)[:1]))
    log = folder.log.read_bytes().splitlines(keepends=True)
    folder.log.write_bytes(b"".join(line for line in log if b'"close"' not in line))
    assert folder.resume(stub).code == 0
    assert folder.sent == [(1, 0, 2)]
    assert len(rows_of(folder.failures)) == 1


def worked_example(root):
    """Return the folder of collection.md §16.2, as 0.7 leaves it."""
    folder = RunFolder(root).asks(adding(2))
    keys = [(0, 0), (0, 1), (1, 0), (1, 1)]
    folder.plan.write_bytes(lines([planned(task, _ng_rollout_index=rollout) for task, rollout in keys]))
    folder.results.write_bytes(lines([scored(0)]))
    error = {"_ng_failure_type": "ClientResponseError", "_ng_failure_message": "500 …", "_ng_failure_http_status": 500}
    error |= {"_ng_failure_response_body": "Traceback", "failure_kind": "agent_run_error"}
    folder.failures.write_bytes(lines([failed(0, _ng_rollout_index=1, **error)]))
    return folder


def test_the_worked_example_resumes_as_its_table_says(tmp_path, stub):
    folder = worked_example(tmp_path)
    told = folder.status()
    assert (told["inputs"], told["succeeded"], told["outstanding"]) == (4, 1, 3)
    assert told["owed_by"] == {"retryable": 1, "untouched": 2}
    assert told["coverage"]["failed_by_class"] == {"agent_run_error": 1}
    assert folder.resume(stub, "--num-repeats", "2").code == 0
    assert folder.sent == [(0, 1, 1), (1, 0, 0), (1, 1, 0)]
    assert identities(folder.results) == [(0, 0, 0), (0, 1, 1), (1, 0, 0), (1, 1, 0)]


@pytest.mark.parametrize("tail", [lines([scored(1)])[:-1], lines([scored(1)])[:40]], ids=["whole", "half"])
def test_a_torn_end_is_mended_before_a_folder_is_adopted(tmp_path, stub, tail):
    folder = built(tmp_path, 2, [scored(0)])
    folder.results.write_bytes(folder.results.read_bytes() + tail)
    assert folder.resume(stub).code == 0
    assert folder.sent == ([] if tail.endswith(b"}") else [(1, 0, 0)])
    assert identities(folder.results) == [(0, 0, 0), (1, 0, 0)]


def test_a_plan_without_its_last_newline_is_adopted_with_every_rollout_and_grows(tmp_path, stub):
    folder = built(tmp_path, 3, [scored(0)])
    plan = folder.plan.read_bytes()
    folder.plan.write_bytes(plan[:-1])
    assert folder.resume(stub).code == 0
    assert folder.sent == [(1, 0, 0), (2, 0, 0)]
    assert folder.plan.read_bytes() == plan
    assert folder.told_manifest()["plan"]["rollouts"] == 3
    assert folder.asks(adding(5)).resume(stub).code == 0
    assert folder.sent == [(3, 0, 0), (4, 0, 0)]
    assert folder.plan.read_bytes().startswith(plan)


def test_a_plan_that_ends_within_a_line_and_whose_manifest_is_lost_is_cut_to_its_lines_and_kept(tmp_path, stub):
    folder = built(tmp_path, 3, [scored(0)])
    plan = folder.plan.read_bytes()
    folder.plan.write_bytes(plan[:-20])
    assert folder.resume(stub).code == 0
    assert folder.sent == [(1, 0, 0)]
    assert plan.startswith(folder.plan.read_bytes())
    assert folder.plan.with_name(f"{folder.plan.name}.torn").exists()


def test_a_plan_in_force_that_ends_within_a_line_is_not_added_to(tmp_path, stub):
    folder = built(tmp_path, 3, [scored(0)])
    folder.resume(stub)
    plan = folder.plan.read_bytes()[:-1]
    folder.plan.write_bytes(plan)
    told = folder.told_manifest()
    told["plan"] |= {"sha256": sha256_of(folder.plan), "bytes": len(plan), "rollouts": 2}
    folder.manifest.write_text(json.dumps(told))
    answer = folder.asks(adding(5)).resume(stub)
    assert answer.code == 1
    assert "ends within a line" in " ".join(answer.text.split())
    assert folder.sent == []
    assert folder.plan.read_bytes() == plan
    folder.manifest.unlink()
    answer = folder.resume(stub, "+allow_unsafe_resume=true")
    assert answer.code == 5
    assert "3 of 3 rollouts scored" in answer.text
    assert folder.plan.read_bytes() == plan + b"\n"


def test_a_folder_of_which_nothing_but_the_plan_has_content_starts_from_its_plan(tmp_path, stub):
    folder = built(tmp_path, 2)
    assert folder.status()["owed_by"] == {"untouched": 2}
    assert folder.resume(stub).code == 0
    assert folder.sent == [(0, 0, 0), (1, 0, 0)]


def test_a_folder_without_a_sidecar_is_adopted(tmp_path, stub):
    folder = built(tmp_path, 2, [scored(0)])
    folder.failures.unlink()
    assert folder.resume(stub).code == 0
    assert folder.sent == [(1, 0, 0)]


def test_rows_that_name_a_run_whose_manifest_and_log_are_gone_give_the_folder_its_name(tmp_path, stub):
    named = {"_ng_run_id": "r1"}
    folder = built(tmp_path, 3, [scored(0, **named)], [failed(1, **named)])
    stub.script = replies({(2,): SERVER_ERROR})
    assert folder.resume(stub).code == 3
    assert folder.told_manifest()["run_id"] == "r1"
    assert folder.sent == [(1, 0, 1), (2, 0, 0)]
    stub.script = nothing_fails
    assert folder.status()["damage"] == []
    assert folder.resume(stub).code == 0
    assert folder.sent == [(2, 0, 1)]


@pytest.mark.parametrize("attempt", [10**7, 2**31, 10**30, -1, "1", 0.5])
def test_an_attempt_number_that_nobody_can_have_had_is_damage_with_its_line(tmp_path, stub, attempt):
    folder = built(tmp_path, 2, [scored(0)], [failed(1), failed(1, _ng_attempt_index=attempt)])
    assert [damage["place"] for damage in folder.status()["damage"]] == [f"{folder.failures}:2"]
    assert folder.resume(stub).code == 5
    assert folder.sent == []


def test_a_rollout_may_have_had_very_many_attempts(tmp_path, stub):
    folder = built(tmp_path, 2, [scored(0)], [failed(1, _ng_attempt_index=99)])
    folder.resume(stub)
    assert folder.sent == [(1, 0, 100)]


def test_records_of_two_runs_are_not_taken_up_as_one(tmp_path, stub):
    folder = built(tmp_path, 3, [scored(0, _ng_run_id="r1"), scored(1, _ng_run_id="r2")])
    assert folder.status()["state"] == "damaged"
    assert folder.resume(stub).code == 5
    assert folder.sent == []
    assert not folder.manifest.exists()


def test_rows_without_a_plan_are_counted_and_no_plan_is_claimed(tmp_path):
    folder = built(tmp_path, 1, [scored(0)])
    folder.plan.unlink()
    told = folder.status()
    assert (told["inputs"], told["exit_code"], told["has_plan"]) == (1, 0, False)


def test_an_agent_that_the_configuration_does_not_have_is_named_with_its_line(tmp_path, stub):
    folder = built(tmp_path, 2)
    folder.plan.write_bytes(lines([planned(0), planned(1, agent_ref={"name": "gone"})]))
    answer = folder.resume(stub)
    assert answer.code == 1
    assert "r_materialized_inputs.jsonl:2: " in answer.text.replace("\n", "")
    assert not folder.manifest.exists()
    assert folder.sent == []


def test_a_failure_that_left_a_deliverable_lets_the_next_attempt_use_it(tmp_path, stub):
    failures = [failed(0, reuse_cached_deliverable=True), failed(0), failed(1)]
    built(tmp_path, 2, [], failures).resume(stub)
    told = {row["_ng_task_index"]: row.get("reuse_cached_deliverable") for row in stub.requests}
    assert told == {0: True, 1: None}
