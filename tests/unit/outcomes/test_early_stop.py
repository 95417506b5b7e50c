"""What the endings of a session say together, and when they end it."""

import base64

import msgspec
import pytest

from rollbook.outcomes.classify import ending_of_reply, ending_of_send_failure
from rollbook.outcomes.early_stop import EarlyStops
from rollbook.records.ending import Ending
from rollbook.records.exchange import Reply, SendFailed
from rollbook.records.failure_kinds import Delivery
from rollbook.records.identity import RolloutKey
from rollbook.records.outcome import Evidence, Interrupted, Masked, NeverStarted, Scored
from rollbook.records.task import Rollout

FLAT = Rollout(RolloutKey(0, 1), b'{"x":1}', "env")


def reply(body=b"", status=200, **headers):
    return ending_of_reply(Reply(status, body, headers), FLAT)


def reported(kind, status=500):
    events = {
        "a": {"boundary": "agent", "kind": "agent_run_error", "cause_id": "m"},
        "m": {"boundary": "model", "kind": kind, "http_status": 401},
    }
    report = base64.b64encode(msgspec.json.encode({"failure_id": "a", "events": events})).decode()
    return reply(b'"bad key"', status, **{"x-ng-failure-report": report})


RESULT = Ending(Scored(1.0))
FAILURE = reply(b"oops", 500)
REPORTED = reply(b'{"_ng_failure_class":"own"}')
GARBAGE = reply(b"<html>")
REFUSED = reply(b"", 503)
UNSENT = ending_of_send_failure(SendFailed("refused", delivery=Delivery.NOT_SENT, exception_type="E"))


def stops_at(endings, *, violations=8, failures=None, server="env"):
    """Return the number (from 1) of the ending that stops the run, or None."""
    stops = EarlyStops(violations=violations, failures=failures)
    return next((n for n, ending in enumerate(endings, 1) if stops.observe(server, ending)), None)


@pytest.mark.parametrize(
    ("kind", "named"), [("provider_credentials_rejected", "credentials"), ("provider_quota_exhausted", "quota")]
)
def test_a_provider_that_rejects_for_good_stops_the_run_at_once(kind, named):
    stop = EarlyStops(violations=8, failures=None).observe("env", reported(kind))
    assert named in stop.why
    assert "--resume" in stop.why
    assert not stop.resumable


def test_the_stop_for_credentials_shows_status_and_what_the_provider_said():
    why = EarlyStops(violations=8, failures=None).observe("env", reported("provider_credentials_rejected")).why
    assert "401" in why
    assert "bad key" in why


@pytest.mark.parametrize("kind", ["provider_credentials_rejected", "provider_quota_exhausted"])
def test_a_failure_that_names_such_a_kind_itself_stops_the_run(kind):
    body = {"_ng_failure_class": "judge_failed", "failure_kind": kind}
    assert stops_at([RESULT, reply(msgspec.json.encode(body))]) == 2


@pytest.mark.parametrize("outcome", [Scored(1.0), Masked(None)])
def test_a_result_with_such_a_failure_behind_it_stops_nothing(outcome):
    ending = msgspec.structs.replace(reported("provider_credentials_rejected"), outcome=outcome)
    assert stops_at([ending]) is None


@pytest.mark.parametrize("kind", ["provider_unavailable", "agent_timeout", "env:own"])
def test_another_kind_of_failure_stops_nothing(kind):
    assert stops_at([reported(kind)] * 50) is None


def test_a_server_whose_every_answer_is_against_the_protocol_stops_the_run_at_the_limit():
    assert stops_at([GARBAGE] * 20, violations=8) == 8
    assert stops_at([GARBAGE] * 20, violations=1) == 1
    assert stops_at([GARBAGE] * 20, violations=0) is None


@pytest.mark.parametrize("usable", [RESULT, REPORTED, Ending(Masked(None))])
def test_one_usable_answer_disarms_its_server_for_good(usable):
    assert stops_at([GARBAGE] * 7 + [usable] + [GARBAGE] * 100) is None


@pytest.mark.parametrize("silent", [FAILURE, REFUSED, UNSENT, Ending(Interrupted("killed")), Ending(NeverStarted("b"))])
def test_what_is_no_answer_neither_counts_against_a_server_nor_disarms_it(silent):
    assert stops_at([silent] * 20) is None
    assert stops_at([GARBAGE] * 7 + [silent, GARBAGE]) == 9


def test_servers_are_counted_apart():
    stops = EarlyStops(violations=3, failures=None)
    told = [stops.observe(server, GARBAGE) for server in ("a", "b", "a", "b")]
    stops.observe("a", RESULT)
    told.append(stops.observe("a", GARBAGE))
    assert told == [None] * 5
    assert "'b' answered 3 of 3" in stops.observe("b", GARBAGE).why


def test_a_count_is_of_failures_in_a_row():
    assert stops_at([FAILURE] * 5, failures=5) == 5
    assert stops_at(([FAILURE] * 4 + [RESULT]) * 50, failures=5) is None


def test_a_rare_fault_over_a_long_run_stops_nothing():
    assert stops_at(([RESULT] * 99 + [FAILURE]) * 50, failures=5) is None


@pytest.mark.parametrize(
    "idle", [REFUSED, UNSENT, Ending(Interrupted("k")), Ending(NeverStarted("b")), Ending(Evidence("e"))]
)
def test_an_attempt_without_an_ending_of_its_own_neither_counts_nor_starts_the_count_anew(idle):
    assert stops_at([idle] * 200, failures=5) is None
    assert stops_at([FAILURE] * 4 + [idle, FAILURE], failures=5) == 6
    assert stops_at([idle] * 200, failures=0.5) is None


def test_a_share_says_nothing_before_twenty_endings():
    assert stops_at([FAILURE] * 30, failures=0.5) == 20


def test_a_share_is_over_the_last_hundred_endings():
    assert stops_at([RESULT] * 1000 + [FAILURE] * 60, failures=0.5) == 1050
    assert stops_at(([RESULT] * 3 + [FAILURE]) * 200, failures=0.3) is None


def test_a_stop_is_told_once():
    stops = EarlyStops(violations=8, failures=1)
    assert stops.observe("env", FAILURE).resumable
    assert stops.observe("env", FAILURE) is None


def test_the_breaker_says_what_it_saw_and_what_to_type():
    why = EarlyStops(violations=8, failures=1).observe("env", FAILURE).why
    assert all(part in why for part in ("1 rollout(s) failed in a row", "stop_after_failures", "500", "--resume"))
