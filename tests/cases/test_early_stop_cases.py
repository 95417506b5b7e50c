"""Runs that are not worth going on with: each stops early, says why, keeps what there is, and can be gone on with."""

import base64
import json

import pytest

from cases import peer as peers
from cases.peer import reply_of
from cases.played import FAILURES, Played
from stub import adding

TASKS = 40


@pytest.fixture
def play(tmp_path):
    """Return what plays forty tasks, one at a time, against a peer with a script of (task) → bytes or None."""
    with peers.serving() as peer:

        def played(reply):
            async def script(asked):
                data = reply(asked.task)
                if data is not None:
                    asked.answer(data)

            peer.script = script
            return Played(tmp_path, peer, adding(TASKS))

        yield played


def run(played, *flags):
    return played.run("--concurrency", "1", *flags)


def stopped_and_goes_on(played, said, asked, scored):
    """The run stopped after so many requests; what it saved is there, and a resume of a mended server finishes it."""
    assert len(played.stub.asked) == asked
    assert len(played.scored()) == scored
    assert "--resume" in said.text
    _, told = played.status()
    assert (told["outstanding"], told["law_holds"]) == (TASKS - scored, True)
    failed = len(played.rows(FAILURES))
    assert failed == asked - scored
    played.stub.script = peers.at_once
    assert played.resume("--concurrency", "8").code == 0
    assert len(played.scored()) == TASKS
    assert len(played.rows(FAILURES)) == failed


HTML = reply_of(b"<html>hello</html>", kind="text/html")
UNUSABLE = {"html": HTML, "empty": reply_of(b""), "a list": reply_of(b"[]"), "a redirect": reply_of(b"", 302)}


@pytest.mark.parametrize("name", UNUSABLE)
def test_a_server_that_never_gave_a_usable_reply_stops_the_run_after_eight(name, play):
    played = play(lambda _task: UNUSABLE[name])
    said = run(played)
    assert said.code == 3
    assert "'adder_environment_server' answered 8 of 8 requests with a reply that can be no result" in said.text
    assert "environment_protocol_violation_stop_after" in said.text
    stopped_and_goes_on(played, said, asked=8, scored=0)


@pytest.mark.parametrize(("after", "asked"), [(3, 3), (0, TASKS)])
def test_how_many_violations_stop_a_run_is_a_setting_and_0_is_never(after, asked, play):
    played = play(lambda _task: HTML)
    run(played, f"+environment_protocol_violation_stop_after={after}")
    assert len(played.stub.asked) == asked


def test_one_usable_reply_and_a_server_is_trusted_for_good(play):
    played = play(lambda task: None if task == 6 else HTML)
    said = run(played)
    assert said.code == 3
    assert "can be no result" not in said.text
    assert len(played.stub.asked) == TASKS
    assert len(played.scored()) == 1


def test_a_server_that_only_fails_says_nothing_of_its_protocol(play):
    played = play(lambda _task: reply_of(b"oops", 500))
    run(played)
    assert len(played.stub.asked) == TASKS


def reporting(kind, status):
    """Return the reply of an agent whose model refused it, as a failure report says."""
    events = {
        "a": {"boundary": "agent", "kind": "agent_run_error", "cause_id": "m"},
        "m": {"boundary": "model", "kind": kind, "http_status": status},
    }
    report = base64.b64encode(json.dumps({"failure_id": "a", "events": events}).encode()).decode()
    return reply_of(b'{"error": "bad key"}', 500, X_NG_Failure_Report=report)


REJECTED = {
    "provider_credentials_rejected": (401, "rejected the credentials"),
    "provider_quota_exhausted": (429, "quota is used up"),
}


@pytest.mark.parametrize("kind", REJECTED)
def test_what_only_a_person_can_mend_stops_the_run_with_1_so_that_no_chain_sends_it_again_and_again(kind, play):
    status, words = REJECTED[kind]
    played = play(lambda task: reporting(kind, status) if task >= 5 else None)
    said = run(played)
    assert said.code == 1
    assert words in said.text
    assert f"{status}" in said.text
    assert "bad key" in said.text
    stopped_and_goes_on(played, said, asked=6, scored=5)


def test_rc_49_failures_in_a_row_stop_a_run_and_failures_over_its_lifetime_do_not(play):
    played = play(lambda task: reply_of(b"oops", 500) if task % 5 == 4 else None)
    said = run(played, "+stop_after_failures=3")
    assert said.code == 3
    assert "in a row" not in said.text
    assert len(played.stub.asked) == TASKS
    assert len(played.rows(FAILURES)) == TASKS // 5


def test_rc_49_a_run_that_stopped_at_failures_in_a_row_is_gone_on_with_later(play):
    played = play(lambda task: reply_of(b"oops", 500) if task >= 10 else None)
    said = run(played, "+stop_after_failures=3")
    assert said.code == 3
    assert "3 rollout(s) failed in a row, as +stop_after_failures says" in said.text
    assert "oops" in said.text
    stopped_and_goes_on(played, said, asked=13, scored=10)


def test_a_share_of_failures_stops_a_run_once_enough_have_ended(play):
    played = play(lambda task: reply_of(b"oops", 500) if task % 2 else None)
    said = run(played, "+stop_after_failures=0.5")
    assert said.code == 3
    assert "10 of the last 20 rollouts failed" in said.text
    stopped_and_goes_on(played, said, asked=20, scored=10)


def test_a_share_that_is_not_reached_stops_nothing(play):
    played = play(lambda task: reply_of(b"oops", 500) if task % 3 == 0 else None)
    run(played, "+stop_after_failures=0.5")
    assert len(played.stub.asked) == TASKS


def test_what_is_in_flight_when_a_run_stops_early_has_its_grace(play):
    played = play(lambda _task: None)

    async def script(asked):
        if asked.task == 0:
            await asked.after(0.3)
            asked.answer(reply_of(b"oops", 500))
        else:
            await asked.after(0.6)

    played.stub.script = script
    said = played.run("--concurrency", "4", "+stop_after_failures=1")
    assert said.code == 3
    assert len(played.stub.asked) == 4
    assert played.scored() == {(1, 0), (2, 0), (3, 0)}
