"""Every observation of collection.md §3.7, and what it becomes: with failures routed, and with the first ending a run.

A line is named by the words of the specification. `DELIVERED`, `POSSIBLY` and `NOT_SENT` are what is known of the
request; `RAISES` says that the run ends there when failures are not routed, `GOES_ON` that it does not; `AGAIN` that
the attempt may be followed by another in the same run, `ONCE` that it may not.
"""

import msgspec
import pytest

from rollbook.outcomes.classify import ending_of_reply, ending_of_send_failure
from rollbook.outcomes.retry import may_retry
from rollbook.outcomes.verdict import as_evidence, ends_the_run
from rollbook.records.codec import RunStamp, encode, saved_row
from rollbook.records.disposition import DEFAULT_RULES, Disposition, disposition_of
from rollbook.records.exchange import Reply, SendFailed
from rollbook.records.failure_kinds import Delivery, FailureStage
from rollbook.records.identity import RolloutKey
from rollbook.records.outcome import Evidence, Failed, Interrupted, Masked, Scored, Unscored
from rollbook.records.place import File
from rollbook.records.reading import read_row
from rollbook.records.task import Rollout

FLAT = Rollout(RolloutKey(0, 1), b'{"x":1}', "env", attempt=2)
TASK = {"taskset": "ts", "task_id": "t1"}
EPISODE = Rollout(
    RolloutKey(0, 1), encode({"task_id": TASK, "task_input": {"q": 1}}), "env", attempt=2, is_episode=True
)
ASKED = {"episode_id": {"rollout_id": "0-1", "attempt": 2}, "task_id": TASK}
STAMPS = {"_ng_task_index": 0, "_ng_rollout_index": 1, "_ng_attempt_index": 2, "_ng_environment_server": "env"}
RUN = RunStamp("run", 3)
DELIVERED, POSSIBLY, NOT_SENT = Delivery.DELIVERED, Delivery.POSSIBLY_DELIVERED, Delivery.NOT_SENT
RAISES, GOES_ON, AGAIN, ONCE = True, False, True, False

SENT_IN_VAIN = "agent_request_failed"
RAN_IN_VAIN = "agent_run_error"
ENVIRONMENT = "environment_server_failed"
HTTP, JSON, INVALID, STALE = "ClientResponseError", "JSONDecodeError", "InvalidRolloutResult", "StaleRolloutResult"


def raw(body):
    return body if isinstance(body, bytes) else encode(body)


def answer(body, status=200):
    return ending_of_reply(Reply(status, raw(body)), FLAT)


def episode(body, status=200):
    return ending_of_reply(Reply(status, raw(body)), EPISODE)


def broken(exception_type, delivery, status=None, message="gone"):
    return ending_of_send_failure(SendFailed(message, delivery=delivery, exception_type=exception_type, status=status))


def failing(**failure):
    return episode(ASKED | {"failure": failure})


DEEP = b'{"reward":1.0,"x":' + b"[" * 300 + b"]" * 300 + b"}"

RESULTS = {
    "2xx, JSON object": (answer({"reward": 0.5}), Scored(0.5)),
    "201 with a JSON object": (answer({"reward": 0.5}, 201), Scored(0.5)),
    "a reward of true": (answer({"reward": True}), Scored(1.0)),
    "a reward of false": (answer({"reward": False}), Scored(0.0)),
    "a reward of minus zero": (answer(b'{"reward":-0.0}'), Scored(0.0)),
    "mask_sample": (answer({"reward": 1.0, "mask_sample": True}), Masked(1.0)),
    "an empty object": (answer({}), Unscored()),
    "no reward": (answer({"response": {}}), Unscored()),
    "a reward of null": (answer({"reward": None}), Unscored()),
    "no response": (answer({"reward": 0}), Scored(0.0)),
    "300 levels": (answer(DEEP), Scored(1.0)),
    "an agent's reply that echoes episode fields": (answer(ASKED | {"reward": 1.0, "failure": None}), Scored(1.0)),
    "an episode's result": (episode(ASKED | {"result": {"reward": 0.5}, "failure": None}), Scored(0.5)),
    "an episode's result without a reward": (episode(ASKED | {"result": {}}), Unscored()),
    "an episode's masked result": (episode(ASKED | {"result": {"mask_sample": True}}), Masked(None)),
}

STATUSES = {
    f"status {status}": (answer(b"no", status), SENT_IN_VAIN, SENT_IN_VAIN, HTTP, status, POSSIBLY, RAISES, again)
    for status, again in ((429, AGAIN), (502, ONCE), (503, AGAIN), (504, ONCE))
} | {
    f"status {status}": (answer(b"no", status), RAN_IN_VAIN, RAN_IN_VAIN, HTTP, status, DELIVERED, RAISES, ONCE)
    for status in (301, 302, 304, 307, 400, 401, 403, 404, 408, 413, 422, 500, 501, 505, 599)
}
UNREADABLE = {
    name: (answer(body), RAN_IN_VAIN, RAN_IN_VAIN, JSON, 200, DELIVERED, RAISES, ONCE)
    for name, body in {
        "200 without a body": b"",
        "a page of HTML": b"<html>busy</html>",
        "half an object": b'{"reward": 1.0, "resp',
        "NaN": b'{"reward":NaN}',
        "Infinity": b'{"reward":Infinity}',
        "1e400": b'{"reward":1e400}',
        "a lone surrogate": b'{"reward":1.0,"text":"\\ud800"}',
        "no UTF-8": b'{"reward":1.0,"text":"\xff"}',
        "200,000 levels": b"[" * 200_000 + b"]" * 200_000,
        "two documents": b'{"reward":1.0}{"reward":1.0}',
    }.items()
} | {"204": (answer(b"", 204), RAN_IN_VAIN, RAN_IN_VAIN, JSON, 204, DELIVERED, RAISES, ONCE)}
NO_OBJECTS = {
    f"JSON that is {name}": (answer(body), RAN_IN_VAIN, RAN_IN_VAIN, INVALID, 200, DELIVERED, RAISES, ONCE)
    for name, body in (
        ("null", b"null"),
        ("an array", b"[]"),
        ("a string", b'"ok"'),
        ("a number", b"1"),
        ("a boolean", b"true"),
    )
}
NO_NUMBERS = {
    f"a reward of {reward!r:.20}": (
        answer({"reward": reward}),
        RAN_IN_VAIN,
        "verifier_error",
        None,
        None,
        DELIVERED,
        GOES_ON,
        ONCE,
    )
    for reward in ("1.0", [1], {"a": 1}, "")
} | {
    "a reward beyond a float": (
        answer(b'{"reward":1' + b"0" * 400 + b"}"),
        RAN_IN_VAIN,
        "verifier_error",
        None,
        None,
        DELIVERED,
        GOES_ON,
        ONCE,
    )
}
CONNECTIONS = {
    name: (ending, SENT_IN_VAIN, kind, ending.outcome.exception_type, None, delivery, RAISES, again)
    for name, ending, kind, delivery, again in (
        ("refused", broken("ClientConnectorError", NOT_SENT), "transport_unreachable", NOT_SENT, AGAIN),
        ("no such host", broken("ClientConnectorDNSError", NOT_SENT), "transport_unreachable", NOT_SENT, AGAIN),
        ("no TLS", broken("ClientConnectorSSLError", NOT_SENT), "transport_unreachable", NOT_SENT, AGAIN),
        ("an address that is none", broken("InvalidURL", NOT_SENT), "transport_unreachable", NOT_SENT, ONCE),
        (
            "no file left",
            broken("ClientConnectorError", NOT_SENT, message="[Errno 24] Too many open files"),
            "transport_local_resource",
            NOT_SENT,
            AGAIN,
        ),
        ("timeout without status", broken("TimeoutError", POSSIBLY), "transport_timeout", POSSIBLY, ONCE),
        ("dropped", broken("ServerDisconnectedError", POSSIBLY), "transport_peer_drop", POSSIBLY, ONCE),
    )
} | {
    "a body that breaks off after 200": (
        broken("ClientPayloadError", DELIVERED, 200),
        RAN_IN_VAIN,
        "transport_peer_drop",
        "ClientPayloadError",
        200,
        DELIVERED,
        RAISES,
        ONCE,
    ),
    "a body that breaks off after 502": (
        broken("ClientPayloadError", POSSIBLY, 502),
        SENT_IN_VAIN,
        "transport_peer_drop",
        "ClientPayloadError",
        502,
        POSSIBLY,
        RAISES,
        ONCE,
    ),
}
REPORTED = {
    "agent result with _ng_failure_class": (
        answer({"_ng_failure_class": "own", "reward": 1.0}),
        "own",
        None,
        None,
        None,
        DELIVERED,
        GOES_ON,
        ONCE,
    ),
    "a judge's failure": (
        answer({"_ng_failure_class": "judge_failed", "failure_kind": "judge_failed", "reward": 0.0}),
        "judge_failed",
        "judge_failed",
        None,
        None,
        DELIVERED,
        GOES_ON,
        ONCE,
    ),
    "episode reply with failure": (
        failing(failure_reason="late", terminal=False, failure_kind="agent_timeout", stage="agent"),
        ENVIRONMENT,
        "agent_timeout",
        None,
        None,
        DELIVERED,
        GOES_ON,
        ONCE,
    ),
    "episode reply with an empty failure": (failing(), ENVIRONMENT, None, None, None, DELIVERED, GOES_ON, ONCE),
    "reply of another attempt": (
        episode(ASKED | {"episode_id": {"rollout_id": "0-1", "attempt": 1}, "result": {"reward": 1.0}}),
        SENT_IN_VAIN,
        SENT_IN_VAIN,
        STALE,
        None,
        POSSIBLY,
        RAISES,
        ONCE,
    ),
}
VIOLATIONS = {
    name: (ending, ENVIRONMENT, "collection_dispatch_failed", INVALID, None, DELIVERED, GOES_ON, ONCE)
    for name, ending in {
        "no episode response": episode({"reward": 1.0}),
        "an array": episode([ASKED]),
        "null": episode(None),
        "neither result nor failure": episode(ASKED),
        "both null": episode(ASKED | {"result": None, "failure": None}),
        "both": episode(ASKED | {"result": {}, "failure": {}}),
        "a result that is no object": episode(ASKED | {"result": "secret"}),
        "a failure that is no object": episode(ASKED | {"failure": ["secret"]}),
        "ids that are no objects": episode({"episode_id": "0-1", "task_id": "t1", "result": {}}),
        "another rollout": episode(ASKED | {"episode_id": {"rollout_id": "0-2", "attempt": 2}, "result": {}}),
        "another task": episode(ASKED | {"task_id": TASK | {"task_id": "t2"}, "result": {}}),
        "an attempt that is no number": episode(
            ASKED | {"episode_id": {"rollout_id": "0-1", "attempt": "secret"}, "result": {}}
        ),
        "an attempt of true": episode(ASKED | {"episode_id": {"rollout_id": "0-1", "attempt": True}, "result": {}}),
        "a reserved key": episode(ASKED | {"result": {"_ng_run_id": "secret"}}),
        "a reserved key without the prefix": episode(ASKED | {"result": {"ng_perf": "secret"}}),
        "a failure class in a result": episode(ASKED | {"result": {"_ng_failure_class": "secret"}}),
        "a reason that is no string": failing(failure_reason={"secret": 1}, terminal=False),
        "a terminal that is no boolean": failing(failure_reason="r", terminal="secret"),
        "a kind that is no string": failing(failure_reason="r", terminal=False, failure_kind=["secret"]),
        "a stage that is no string": failing(failure_reason="r", terminal=False, stage=7),
        "a partial response that is no object": failing(failure_reason="r", terminal=False, partial_response="secret"),
    }.items()
}
FAILURES = STATUSES | UNREADABLE | NO_OBJECTS | NO_NUMBERS | CONNECTIONS | REPORTED | VIOLATIONS

by_words = pytest.mark.parametrize("words", list(FAILURES))
results_by_words = pytest.mark.parametrize("words", list(RESULTS))
routed = pytest.mark.parametrize("route_failures", [True, False])


@results_by_words
@routed
def test_a_result_is_saved_as_one_whether_failures_are_routed_or_not(words, route_failures):
    ending, outcome = RESULTS[words]
    assert ending.outcome == outcome
    assert not ends_the_run(ending, route_failures=route_failures)
    assert not may_retry(ending)
    assert not ending.unusable
    file, row = saved_row(ending, STAMPS, RUN)
    assert file is File.RESULTS
    assert read_row(encode(row), file).outcome == outcome


@by_words
def test_an_observation_becomes_the_failure_that_the_specification_says(words):
    ending, failure_class, kind, exception_type, status, delivery, *_ = FAILURES[words]
    failed = ending.outcome
    assert isinstance(failed, Failed)
    assert (failed.failure_class, failed.kind, failed.exception_type) == (failure_class, kind, exception_type)
    assert (failed.http_status, failed.delivery, failed.terminal) == (status, delivery, False)


@by_words
def test_a_routed_failure_is_one_line_of_the_sidecar_without_a_reward(words):
    ending, failure_class, *_, delivery, _, _ = FAILURES[words]
    assert not ends_the_run(ending, route_failures=True)
    file, row = saved_row(ending, STAMPS, RUN)
    assert file is File.FAILURES
    assert "reward" not in row
    assert row["_ng_failure_class"] == failure_class
    assert row["rollout_failure"]["delivery"] == row["_ng_failure_delivery"] == delivery.value
    record = read_row(encode(row), file)
    held = failure_class == "judge_failed"
    expected = Disposition.HELD if held else Disposition.RETRYABLE
    assert disposition_of(record, 1, DEFAULT_RULES) is expected
    assert held or disposition_of(record, 3, DEFAULT_RULES) is Disposition.EXHAUSTED


@by_words
def test_without_routing_a_failed_run_leaves_evidence_and_ends_the_run(words):
    ending, *_, raises, _ = FAILURES[words]
    assert ends_the_run(ending, route_failures=False) is raises
    if raises:
        file, row = saved_row(as_evidence(ending), STAMPS, RUN)
        assert (file, row["_ng_unrouted_run_error"]) == (File.FAILURES, True)
        assert isinstance(read_row(encode(row), file).outcome, Evidence)


@by_words
def test_only_an_attempt_that_never_ran_is_sent_again(words):
    ending, *_, again = FAILURES[words]
    assert may_retry(ending) is again


@pytest.mark.parametrize("words", list(VIOLATIONS))
def test_a_violation_is_named_by_type_and_keys_and_never_by_value(words):
    ending = VIOLATIONS[words][0]
    assert ending.unusable
    row = saved_row(ending, STAMPS, RUN)[1]
    assert row["_ng_failure_message"].startswith("protocol violation: ")
    assert b"secret" not in encode(row)
    assert row["rollout_failure"]["source"] == "collector"


UNUSABLE = {*UNREADABLE, *NO_OBJECTS, *VIOLATIONS, *(f"status {status}" for status in (301, 302, 304, 307))}


@by_words
def test_an_ending_counts_against_its_server_when_the_reply_can_be_no_result(words):
    assert FAILURES[words][0].unusable is (words in UNUSABLE)


@pytest.mark.parametrize(("body", "status"), [(b"", 200), (b" \r\n", 200), (b"", 204)])
def test_an_empty_body_is_told_as_one(body, status):
    assert answer(body, status).outcome.message == f"{status} with an empty body"


def test_long_and_odd_keys_are_named_in_bounds():
    reply = {f"{n}\x1b[31m{'k' * 9000}": n for n in range(50)}
    message = episode(reply).outcome.message
    assert len(message) < 2000
    assert "and 30 more" in message
    assert message.isprintable()


@pytest.mark.parametrize("words", ["a page of HTML", "half an object", "JSON that is a string", "status 500"])
def test_the_beginning_of_an_unusable_reply_is_kept(words):
    row = saved_row(FAILURES[words][0], STAMPS, RUN)[1]
    assert row["_ng_failure_response_body"]


def test_a_reply_without_a_result_is_interrupted_and_spends_no_budget():
    ending = answer({"_ng_no_persist": True, "reward": 1.0})
    assert ending.outcome == Interrupted("kill_shaped", delivery=POSSIBLY)
    assert not ends_the_run(ending, route_failures=False)


def test_a_terminal_failure_of_an_episode_is_settled():
    file, row = saved_row(failing(failure_reason="no", terminal=True, stage="seed"), STAMPS, RUN)
    record = read_row(encode(row), file)
    assert record.outcome.stage is FailureStage.SEED
    assert disposition_of(record, 1, DEFAULT_RULES) is Disposition.SETTLED


def test_vector_v5_a_timeout_without_a_status():
    ending = broken("TimeoutError", POSSIBLY, message="")
    row = saved_row(ending, STAMPS)[1]
    assert msgspec.json.decode(encode(row)) == STAMPS | {
        "_ng_failure_class": "agent_request_failed",
        "_ng_failure_type": "TimeoutError",
        "_ng_failure_message": "TimeoutError()",
        "_ng_failure_http_status": None,
        "_ng_failure_response_body": None,
        "_ng_failure_delivery": "possibly_delivered",
        "failure_kind": "transport_timeout",
    }
