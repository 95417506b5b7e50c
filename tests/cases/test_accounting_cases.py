"""What an attempt costs: which endings spend the cap, which are held, which run again, and under which number."""

import json
import tracemalloc

import pytest

from rollbook.ledger.history import read_history
from rollbook.ledger.paths import RunPaths
from rollbook.records.identity import RolloutKey
from run_folder import (
    SERVER_ERROR,
    RunFolder,
    failed,
    identities,
    identity,
    json_reply,
    planned,
    replies,
    rows_of,
    scored,
    status_reply,
)
from stub import adding, lines, serving

CAP = "NEMO_GYM_MAX_ROLLOUT_ATTEMPTS"
ANSWER = {"output": [{"type": "message", "role": "assistant", "content": []}]}
JUDGE_FAILED = json_reply(
    reward=0.0, mask_sample=True, response=ANSWER, _ng_failure_class="judge_failed", _ng_failure_judge_error="late"
)


def nothing_fails(_row):
    return None


@pytest.fixture
def folder(tmp_path):
    return RunFolder(tmp_path).asks(adding(2))


@pytest.fixture
def stub():
    with serving() as stub:
        yield stub


def counts(folder):
    """Return what a status says, without the parts that are empty."""
    document = folder.status()
    names = ("succeeded", "terminal", "at_cap", "held", "in_flight", "outstanding")
    return {name: document[name] for name in names if document[name]}


def test_a_failed_judge_is_held_with_its_answer_and_no_reward(folder, stub):
    stub.script = replies({(1,): JUDGE_FAILED})
    assert folder.run(stub).code == 0
    (saved,) = rows_of(folder.failures)
    assert saved["response"] == ANSWER
    assert "reward" not in saved
    assert folder.resume(stub).code == 0
    assert folder.sent == []
    assert counts(folder) == {"succeeded": 1, "held": 1}


def test_a_held_failure_is_run_again_when_it_is_resubmitted(folder, stub):
    stub.script = replies({(1,): JUDGE_FAILED})
    folder.run(stub)
    stub.script = nothing_fails
    assert folder.run(stub, "--resubmit").code == 0
    assert folder.sent == [(1, 0, 1)]
    assert counts(folder) == {"succeeded": 2}


def test_a_resubmitted_failure_still_obeys_the_cap(folder, stub, monkeypatch):
    monkeypatch.setenv(CAP, "2")
    stub.script = replies({(1,): JUDGE_FAILED})
    folder.run(stub)
    folder.run(stub, "--resubmit")
    assert folder.sent == [(1, 0, 1)]
    folder.run(stub, "--resubmit")
    assert folder.sent == []


@pytest.mark.parametrize("named", [None, "agent_gone"])
def test_an_attempt_that_left_no_result_is_saved_once_as_kill_shaped_and_held(folder, stub, named):
    marks = {"_ng_no_persist": True, "reward": 0.5} | ({"_ng_failure_class": named} if named else {})
    stub.script = replies({(1,): json_reply(**marks)})
    assert folder.run(stub).code == 0
    (saved,) = rows_of(folder.failures)
    assert saved["_ng_failure_class"] == "kill_shaped"
    assert saved.get("_ng_failure_legacy_class") == named
    assert saved["_ng_no_persist"] is True
    assert saved["_ng_run_id"] == folder.told_manifest()["run_id"]
    assert not {"reward", "response", "_ng_omitted_rollout"} & saved.keys()
    before = folder.failures.read_bytes()
    assert folder.resume(stub).code == 0
    assert folder.sent == []
    assert folder.failures.read_bytes() == before
    assert counts(folder) == {"succeeded": 1, "held": 1}
    assert folder.status()["recovery"]["omitted"] == 1


@pytest.mark.parametrize(
    ("reply", "code", "said"),
    [
        (json_reply(_ng_no_persist=True), 0, "run them again with --resubmit"),
        (JUDGE_FAILED, 0, "run them again with --resubmit"),
        (SERVER_ERROR, 3, "Go on with --resume"),
        (json_reply(_ng_failure_class="x", _ng_failure_terminal=True), 0, "start anew with --overwrite"),
    ],
    ids=["interrupted", "not judged", "failed", "settled"],
)
def test_a_run_that_produced_nothing_says_what_would_help(folder, stub, reply, code, said):
    stub.script = reply
    for flags in ((), ("--resume",)):
        answer = folder.run(stub, *flags)
        assert answer.code == code
        assert said in " ".join(answer.text.split())


def test_interruptions_spend_no_cap_however_many_there_are(folder, stub, monkeypatch):
    monkeypatch.setenv(CAP, "1")
    stub.script = replies({(1,): json_reply(_ng_no_persist=True)})
    folder.run(stub)
    for attempt in (1, 2, 3):
        folder.run(stub, "--resubmit")
        assert folder.sent == [(1, 0, attempt)]
    stub.script = nothing_fails
    assert folder.run(stub, "--resubmit").code == 0
    assert counts(folder) == {"succeeded": 2}


CAUSES = [{"_ng_failure_stage": "admission"}, {"_ng_failure_delivery": "not_sent"}]


@pytest.mark.parametrize("cause", CAUSES, ids=["refused at admission", "never sent"])
def test_an_interruption_whose_cause_left_nothing_behind_runs_again(folder, stub, cause):
    stub.script = replies({(1,): json_reply(_ng_no_persist=True, **cause)})
    assert folder.run(stub).code == 3
    assert counts(folder) == {"succeeded": 1, "outstanding": 1}
    stub.script = nothing_fails
    assert folder.resume(stub).code == 0
    assert folder.sent == [(1, 0, 1)]


@pytest.mark.parametrize("stage", ["seed", "agent", "verification", "cleanup"])
def test_an_interruption_at_any_later_stage_is_held(folder, stub, stage):
    stub.script = replies({(1,): json_reply(_ng_no_persist=True, _ng_failure_stage=stage)})
    assert folder.run(stub).code == 0
    assert counts(folder) == {"succeeded": 1, "held": 1}


def test_an_attempt_that_was_turned_away_is_tried_again_in_the_run_under_a_number_of_its_own(folder, stub, monkeypatch):
    monkeypatch.setenv(CAP, "1")
    stub.script = replies({(0, 0, 0): status_reply(503)})
    assert folder.run(stub, "--retry-for", "5").code == 0
    assert folder.sent == [(0, 0, 0), (0, 0, 1), (1, 0, 0)]
    assert identities(folder.results) == [(0, 0, 1), (1, 0, 0)]
    assert rows_of(folder.failures) == []
    refused = [event for event in rows_of(folder.log) if event["t"] == "refused"]
    assert [event["a"] for event in refused] == [[0, 0, 0]]
    told = folder.status()
    assert (told["attempts"], told["refused"], told["outstanding"]) == (3, 1, 0)


@pytest.mark.parametrize(("status", "spends"), [(503, False), (429, False), (500, True), (502, True), (504, True)])
def test_a_failure_spends_the_cap_unless_it_never_ran(folder, stub, monkeypatch, status, spends):
    monkeypatch.setenv(CAP, "1")
    stub.script = replies({(1,): status_reply(status)})
    assert folder.run(stub).code == (0 if spends else 3)
    assert counts(folder) == {"succeeded": 1} | ({"at_cap": 1} if spends else {"outstanding": 1})
    assert folder.resume(stub).code == (0 if spends else 3)
    assert folder.sent == ([] if spends else [(1, 0, 1)])
    assert folder.resume(stub).code == (0 if spends else 3)
    assert folder.sent == ([] if spends else [(1, 0, 2)])


def test_a_terminal_failure_is_settled_whatever_the_cap(folder, stub):
    stub.script = replies({(1,): json_reply(_ng_failure_class="no_such_tool", _ng_failure_terminal=True)})
    assert folder.run(stub).code == 0
    assert counts(folder) == {"succeeded": 1, "terminal": 1}
    for flag in ("--resume", "--resubmit"):
        assert folder.run(stub, flag).code == 0
        assert folder.sent == []


@pytest.mark.parametrize(
    ("failure_class", "again"), [("timeout_exceeded", True), ("reference_missing", True), ("skipped", False)]
)
def test_terminal_timeouts_run_again_in_a_run_that_was_started_so(folder, stub, failure_class, again):
    stub.script = replies({(1,): json_reply(_ng_failure_class=failure_class, _ng_failure_terminal=True)})
    assert folder.run(stub, "+retry_terminal_timeouts=true").code == (3 if again else 0)
    folder.resume(stub)
    assert folder.sent == ([(1, 0, 1)] if again else [])


def test_the_cap_is_the_one_that_the_run_was_started_with(folder, stub, monkeypatch):
    monkeypatch.setenv(CAP, "2")
    stub.script = replies({(1,): SERVER_ERROR})
    assert folder.run(stub).code == 3
    monkeypatch.setenv(CAP, "1")
    assert counts(folder) == {"succeeded": 1, "outstanding": 1}
    assert folder.resume(stub).code == 0
    assert folder.sent == [(1, 0, 1)]
    monkeypatch.setenv(CAP, "9")
    assert folder.resume(stub).code == 0
    assert folder.sent == []
    assert counts(folder) == {"succeeded": 1, "at_cap": 1}
    assert folder.told_manifest()["max_rollout_attempts"] == folder.status()["cap"] == 2
    assert [row["_ng_failure_max_attempts"] for row in rows_of(folder.failures)] == [2, 2]


def test_a_session_that_was_to_be_complete_ends_with_4_and_keeps_what_there_is(folder, stub):
    stub.script = replies({(1,): SERVER_ERROR})
    assert folder.run(stub, "--require-complete").code == 4
    stub.script = nothing_fails
    assert folder.resume(stub, "--require-complete").code == 0
    assert folder.sent == [(1, 0, 1)]


# Losses: attempts that were handed out and left no ending


@pytest.fixture
def five(tmp_path):
    """A run of five tasks whose process died while it waited for the fifth."""
    folder = RunFolder(tmp_path).asks(adding(5))
    with serving() as stub:
        folder.run(stub)
    saved, log = (
        folder.results.read_bytes().splitlines(keepends=True),
        folder.log.read_bytes().splitlines(keepends=True),
    )
    folder.results.write_bytes(b"".join(saved[:4]))
    last = max(number for number, line in enumerate(log) if b'"reserve"' in line)
    folder.log.write_bytes(b"".join(log[: last + 1]))
    folder.folder.joinpath("r_aggregate_metrics.json").unlink()
    return folder


def later_session(folder, number, *events):
    """Append a session to the log that did what `events` say and died."""
    sizes = [folder.results.stat().st_size, folder.failures.stat().st_size]
    run_id = folder.told_manifest()["run_id"]
    opened = {"t": "open", "session": number, "run_id": run_id, "at": "2026-09-20T10:00:00Z", "sizes": sizes}
    told = [opened, *({"sizes": sizes} | event if event["t"] == "reserve" else event for event in events)]
    with folder.log.open("ab") as log:
        log.write(lines(told))


def reserved(attempt):
    return {"t": "reserve", "a": [4, 0, attempt]}


def cut(attempt):
    return {"t": "cut", "a": [4, 0, attempt], "why": "SIGTERM"}


def charges(folder):
    rows = rows_of(folder.failures)
    return [identity(row) for row in rows if row["_ng_failure_class"] == "rollout_allocation_ended"]


def test_the_first_loss_of_a_rollout_is_free(five, stub):
    assert counts(five) == {"succeeded": 4, "outstanding": 1}
    assert five.resume(stub).code == 0
    assert five.sent == [(4, 0, 1)]
    assert rows_of(five.failures) == []


def test_v14_each_later_loss_is_charged_once_and_its_number_is_never_used_again(five, stub, monkeypatch):
    later_session(five, 2, reserved(1))
    later_session(five, 3, reserved(2))
    stub.script = replies({(4,): SERVER_ERROR})
    manifest = five.told_manifest() | {"max_rollout_attempts": 4}
    five.manifest.write_text(json.dumps(manifest))
    assert five.resume(stub).code == 3
    assert charges(five) == [(4, 0, 1), (4, 0, 2)]
    assert five.sent == [(4, 0, 3)]
    assert all("_ng_failure_terminal" not in row for row in rows_of(five.failures))
    stub.script = nothing_fails
    assert five.resume(stub).code == 0
    assert charges(five) == [(4, 0, 1), (4, 0, 2)]
    assert five.sent == [(4, 0, 4)]


def test_charges_spend_the_cap(five, stub):
    for number in (1, 2, 3):
        later_session(five, number + 1, reserved(number))
    assert five.resume(stub).code == 0
    assert charges(five) == [(4, 0, 1), (4, 0, 2), (4, 0, 3)]
    assert five.sent == []
    assert counts(five) == {"succeeded": 4, "at_cap": 1}


@pytest.mark.parametrize(
    ("sessions", "charged"),
    [
        pytest.param([(reserved(1), cut(1)), (reserved(2), cut(2))], [], id="both cut by a signal"),
        pytest.param([(reserved(1), cut(1)), (reserved(2),)], [(4, 0, 2)], id="one cut by a signal, one lost"),
    ],
)
def test_a_loss_that_a_signal_cut_is_not_charged(five, stub, sessions, charged):
    for number, events in enumerate(sessions, start=2):
        later_session(five, number, *events)
    assert five.resume(stub).code == 0
    assert charges(five) == charged
    assert five.sent == [(4, 0, 3)]


def test_an_attempt_that_was_turned_away_is_no_loss(five, stub):
    later_session(five, 2, reserved(1), {"t": "refused", "a": [4, 0, 1], "why": "503"}, reserved(2))
    assert five.resume(stub).code == 0
    assert charges(five) == [(4, 0, 2)]
    assert five.sent == [(4, 0, 3)]


def test_a_rollout_that_has_a_result_is_charged_for_nothing(five, stub):
    later_session(five, 2, {"t": "reserve", "a": [0, 0, 1, 4, 0, 1]})
    later_session(five, 3, {"t": "reserve", "a": [0, 0, 2]})
    assert five.resume(stub).code == 0
    assert charges(five) == [(4, 0, 1)]
    assert five.sent == [(4, 0, 2)]


def test_an_attempt_of_an_earlier_session_is_never_taken_for_one_in_flight_when_the_manifest_is_gone(five, stub):
    run_id = five.told_manifest()["run_id"]
    five.manifest.unlink()
    assert five.resume(stub, "+allow_unsafe_resume=true").code == 0
    assert five.sent == [(4, 0, 1)]
    told = five.told_manifest()
    assert (told["run_id"], told["sessions"][-1]["number"]) == (run_id, 2)
    assert [event["session"] for event in rows_of(five.log) if event["t"] == "open"] == [1, 2]


@pytest.mark.parametrize("numbers", [[4, 0], [4, 0, -1], [4, 0, 10**9], [4, 0, 10**30]])
def test_a_line_of_the_log_that_names_no_attempts_is_damage_with_its_line(five, stub, numbers):
    later_session(five, 2, {"t": "reserve", "a": numbers})
    assert [damage["place"] for damage in five.status()["damage"]] == [f"{five.log}:8"]
    assert five.resume(stub).code == 5
    assert five.sent == []


# A large run


PLANNED, SCORED, OWED = 5_000, 3_500, 10


@pytest.fixture
def large(tmp_path):
    """Seven tenths are scored, and of the rest all but the last ten have failed for good."""
    folder = RunFolder(tmp_path).asks(adding(1))
    folder.plan.write_bytes(lines([planned(task, note="x" * 800) for task in range(PLANNED)]))
    folder.results.write_bytes(lines([scored(task, task % 2, text="y" * 1800) for task in range(SCORED)]))
    settled = range(SCORED, PLANNED - OWED)
    folder.failures.write_bytes(lines([failed(task, _ng_failure_terminal=True) for task in settled]))
    return folder


def memory_of(call):
    """Return what `call` returns, the bytes that it keeps, and the most that it had at a time beyond those."""
    tracemalloc.start()
    try:
        returned = call()
        kept, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    return returned, kept, peak - kept


def test_rc_28_a_fold_keeps_at_most_200_bytes_of_a_rollout(large):
    history, kept, passing = memory_of(lambda: read_history(RunPaths(large.output)))
    assert history.standings.of(RolloutKey(0, 0)) is not None
    assert kept <= 200 * PLANNED
    assert passing <= 4 << 20


def test_rc_28_a_resume_sends_the_last_few_rollouts_alone(large, stub):
    assert large.run_unread(stub, "--resume", "--disable-aggregation").code == 0
    assert [task for task, _, _ in large.sent] == list(range(PLANNED - OWED, PLANNED))


def test_rc_28_a_status_counts_a_large_run(large):
    told = large.status()
    assert (told["inputs"], told["succeeded"], told["outstanding"]) == (PLANNED, SCORED, OWED)


def test_a_run_whose_attempts_are_spent_goes_on_where_it_is_told_how_many_more_there_are(folder, stub, monkeypatch):
    monkeypatch.setenv(CAP, "1")
    stub.script = replies({(1,): SERVER_ERROR})
    folder.run(stub)
    assert counts(folder) == {"succeeded": 1, "at_cap": 1}
    stub.script = nothing_fails
    answer = folder.resume(stub, "+attempt_extension=1")
    assert answer.code == 0
    assert "a rollout may fail 2 times now" in answer.text
    assert counts(folder) == {"succeeded": 2}
    assert json.loads(folder.results.with_name("r_manifest.json").read_bytes())["attempt_extension"] == 1
