"""Every observation of an exchange, and what it becomes."""

import msgspec
import pytest

from rollbook.outcomes.classify import cause_of, ending_of_reply, ending_of_send_failure, request_body
from rollbook.outcomes.verdict import as_evidence, ends_the_run
from rollbook.records.codec import encode, saved_row
from rollbook.records.exchange import Reply, SendFailed
from rollbook.records.failure_kinds import Delivery, FailureStage
from rollbook.records.identity import RolloutKey
from rollbook.records.outcome import Evidence, Failed, Interrupted, Masked, Scored, Unscored
from rollbook.records.reading import read_row
from rollbook.records.task import Rollout

FLAT = Rollout(RolloutKey(0, 1), b'{"x":1}', "env")
EPISODE = Rollout(
    RolloutKey(0, 1),
    b'{"task_id":{"taskset":"ts","task_id":"t1"},"task_input":{"q":1}}',
    "env",
    attempt=2,
    is_episode=True,
)
ASKED = {"episode_id": {"rollout_id": "0-1", "attempt": 2}, "task_id": {"taskset": "ts", "task_id": "t1"}}


def outcome_of(body, status=200, rollout=FLAT):
    raw = body if isinstance(body, bytes) else msgspec.json.encode(body)
    return ending_of_reply(Reply(status, raw), rollout).outcome


@pytest.mark.parametrize(
    ("body", "outcome"),
    [
        ({"reward": 0.5}, Scored(0.5)),
        ({"reward": False}, Scored(0.0)),
        ({"reward": 1, "mask_sample": True}, Masked(1.0)),
        ({"anything": 1}, Unscored()),
        ({"reward": None}, Unscored()),
        ({"_ng_no_persist": True}, Interrupted("kill_shaped")),
        ({"_ng_no_persist": True, "_ng_failure_class": "own", "error": "e"}, Interrupted("own", "e")),
        ({"_ng_dispatch_drained": True, "reward": 1.0}, Scored(1.0)),
        ({"_ng_omitted_rollout": True, "reward": 1.0}, Scored(1.0)),
        (
            {"_ng_failure_class": "judge_failed", "failure_reason": "r", "failure_kind": "judge_failed", "reward": 0.0},
            Failed("judge_failed", "r", "judge_failed"),
        ),
        (
            {"_ng_failure_class": "timeout_exceeded", "_ng_failure_terminal": True},
            Failed("timeout_exceeded", terminal=True),
        ),
    ],
)
def test_a_reply_ends_as_its_markers_say(body, outcome):
    assert outcome_of(body) == outcome


@pytest.mark.parametrize(
    ("status", "failure_class"), [(200, "agent_run_error"), (500, "agent_run_error"), (503, "agent_request_failed")]
)
def test_a_reply_that_breaks_off_after_its_status_did_run(status, failure_class):
    failure = SendFailed("cut", delivery=Delivery.DELIVERED, exception_type="ClientPayloadError", status=status)
    failed = ending_of_send_failure(failure).outcome
    assert (failed.failure_class, failed.http_status) == (failure_class, status)


@pytest.mark.parametrize("named", [5, True, ["x"], "", {"a": 1}])
def test_a_failure_class_of_any_type_is_no_result(named):
    ending = ending_of_reply(Reply(200, msgspec.json.encode({"reward": 1, "_ng_failure_class": named})), FLAT)
    assert isinstance(ending.outcome, Failed)
    file, row = saved_row(ending, {"_ng_task_index": 0, "_ng_rollout_index": 1})
    assert read_row(encode(row), file).outcome == msgspec.structs.replace(ending.outcome, response_body=None)


@pytest.mark.parametrize(
    "odd",
    [
        {"failure_kind": {"a": 1}},
        {"_ng_failure_http_status": "500"},
        {"_ng_failure_type": 5, "_ng_failure_class": "x"},
        {"_ng_failure_message": ["m"], "_ng_failure_class": "x"},
        {"agent_ref": "text", "mask_sample": "yes"},
    ],
)
def test_whatever_a_producer_wrote_reads_back(odd):
    ending = ending_of_reply(Reply(200, msgspec.json.encode({"reward": 1} | odd)), FLAT)
    file, row = saved_row(ending, {"_ng_task_index": 0, "_ng_rollout_index": 1})
    assert type(read_row(encode(row), file).outcome) is type(ending.outcome)


@pytest.mark.parametrize(
    "key", ["ng_perf", "ng_model_call_capture", "ng_policy_model_server", "_ng_environment_server"]
)
def test_what_only_the_collector_may_say_is_dropped_from_a_reply(key):
    ending = ending_of_reply(Reply(200, msgspec.json.encode({"reward": 1, key: "claimed"})), FLAT)
    assert key not in ending.payload


def test_a_message_is_kept_to_two_thousand_characters():
    assert len(outcome_of({"_ng_failure_class": "x", "error": "e" * 9000}).message) == 2000


@pytest.mark.parametrize("reward", ["1", [1], {"a": 1}, 10**400])
def test_a_reward_that_is_no_number_is_a_stated_failure(reward):
    failed = outcome_of(b'{"reward":' + (str(reward).encode() if isinstance(reward, int) else encode(reward)) + b"}")
    assert isinstance(failed, Failed)
    assert (failed.failure_class, failed.kind, failed.stage) == (
        "agent_run_error",
        "verifier_error",
        FailureStage.VERIFICATION,
    )


@pytest.mark.parametrize(
    ("status", "failure_class", "delivery"),
    [
        (429, "agent_request_failed", "possibly_delivered"),
        (502, "agent_request_failed", "possibly_delivered"),
        (503, "agent_request_failed", "possibly_delivered"),
        (504, "agent_request_failed", "possibly_delivered"),
        (400, "agent_run_error", "delivered"),
        (404, "agent_run_error", "delivered"),
        (408, "agent_run_error", "delivered"),
        (422, "agent_run_error", "delivered"),
        (500, "agent_run_error", "delivered"),
        (599, "agent_run_error", "delivered"),
    ],
)
def test_a_status_decides_class_and_delivery(status, failure_class, delivery):
    failed = outcome_of(b"oops", status)
    assert (failed.failure_class, failed.delivery.value, failed.http_status) == (failure_class, delivery, status)
    assert failed.response_body == "oops"


@pytest.mark.parametrize(
    "body", [b"", b"not json", b"[1]", b"null", b'"x"', b'{"a":NaN}', b"[" * 200_000 + b"]" * 200_000, b"\xff"]
)
def test_a_body_that_is_no_json_object_is_a_failed_run_of_its_own_status(body):
    ending = ending_of_reply(Reply(200, body), FLAT)
    assert ending.run_failed
    assert isinstance(ending.outcome, Failed)
    assert (ending.outcome.failure_class, ending.outcome.http_status) == ("agent_run_error", 200)


@pytest.mark.parametrize("body", [rb'{"reward":1.0,"a":"\ud800"}', rb'{"\uDBFF":1}', rb'{"a":"\uDC00 and more text"}'])
@pytest.mark.parametrize("rollout", [FLAT, EPISODE], ids=["row", "episode"])
def test_half_of_a_surrogate_pair_is_told_as_what_it_is(body, rollout):
    assert "is half of a surrogate pair and no character" in outcome_of(body, rollout=rollout).message


def test_an_error_body_is_kept_to_two_thousand_characters():
    failed = outcome_of(b"x" * 5000, 500)
    assert failed.response_body == "x" * 2000 + "…"
    assert outcome_of(b"x" * 2000, 500).response_body == "x" * 2000


@pytest.mark.parametrize(
    ("failure", "kind", "message"),
    [
        (
            SendFailed("", delivery=Delivery.POSSIBLY_DELIVERED, exception_type="TimeoutError"),
            "transport_timeout",
            "TimeoutError()",
        ),
        (
            SendFailed("refused", delivery=Delivery.NOT_SENT, exception_type="ClientConnectorError"),
            "transport_unreachable",
            "refused",
        ),
        (
            SendFailed("gone", delivery=Delivery.POSSIBLY_DELIVERED, exception_type="ServerDisconnectedError"),
            "transport_peer_drop",
            "gone",
        ),
    ],
)
def test_a_request_without_a_reply_keeps_what_is_known_of_its_delivery(failure, kind, message):
    failed = ending_of_send_failure(failure).outcome
    assert (failed.failure_class, failed.kind, failed.message) == ("agent_request_failed", kind, message)
    assert failed.delivery is failure.delivery
    assert failed.http_status is None


NO_REPLIES = ("ReplyTooLarge", "ContentEncodingError", "ClientResponseError")


@pytest.mark.parametrize("kind", NO_REPLIES)
@pytest.mark.parametrize(("status", "named"), [(200, "agent_run_error"), (500, "agent_run_error"), (503, None)])
def test_a_reply_that_cannot_be_read_was_not_dropped_by_its_server(kind, status, named):
    failure = SendFailed("x", delivery=Delivery.DELIVERED, exception_type=kind, status=status)
    assert ending_of_send_failure(failure).outcome.kind == (named or "agent_request_failed")


@pytest.mark.parametrize(
    ("kind", "status", "unusable"),
    [
        *((kind, 200, True) for kind in NO_REPLIES),
        *((kind, 500, False) for kind in NO_REPLIES),
        *((kind, 503, False) for kind in NO_REPLIES),
        ("ClientResponseError", None, True),
        ("ClientPayloadError", 200, False),
        ("ServerDisconnectedError", None, False),
        ("TimeoutError", 200, False),
    ],
)
def test_a_whole_answer_that_can_be_no_result_is_against_the_protocol(kind, status, unusable):
    failure = SendFailed("x", delivery=Delivery.POSSIBLY_DELIVERED, exception_type=kind, status=status)
    assert ending_of_send_failure(failure).unusable is unusable


def test_a_flat_row_travels_byte_for_byte_and_an_episode_names_its_attempt():
    assert request_body(FLAT) is FLAT.line
    assert msgspec.json.decode(request_body(EPISODE)) == {
        "episode_id": {"rollout_id": "0-1", "attempt": 2},
        "task": {"task_id": {"taskset": "ts", "task_id": "t1"}, "task_input": {"q": 1}},
    }


@pytest.mark.parametrize(
    ("reply", "outcome"),
    [
        (ASKED | {"result": {"reward": 1.0}, "failure": None}, Scored(1.0)),
        (ASKED | {"result": {"x": {"reward": 1.0}}, "failure": None}, Unscored()),
        (
            ASKED
            | {
                "failure": {
                    "failure_reason": "late",
                    "terminal": True,
                    "stage": "agent",
                    "failure_kind": "agent_timeout",
                }
            },
            Failed("environment_server_failed", "late", "agent_timeout", FailureStage.AGENT, terminal=True),
        ),
    ],
)
def test_an_episode_ends_as_its_reply_says(reply, outcome):
    assert outcome_of(reply, rollout=EPISODE) == outcome


@pytest.mark.parametrize(
    ("reply", "named"),
    [
        ({"reward": 1.0}, "no episode reply"),
        (ASKED | {"result": {}, "failure": {}}, "one of"),
        (ASKED | {"result": None, "failure": None}, "one of"),
        (ASKED | {"result": [1]}, "no object"),
        (ASKED | {"episode_id": {"rollout_id": "0-2", "attempt": 2}, "result": {}}, "another episode"),
        (ASKED | {"result": {"_ng_task_index": 5}}, "_ng_task_index"),
        (ASKED | {"result": {"ng_perf": {}}}, "ng_perf"),
    ],
)
def test_an_episode_reply_that_breaks_the_protocol_is_a_failure_that_names_the_fault(reply, named):
    failed = outcome_of(reply, rollout=EPISODE)
    assert failed.failure_class == "environment_server_failed"
    assert named in failed.message


def test_only_a_failed_run_ends_an_unrouted_run_and_leaves_evidence():
    failed_run = ending_of_reply(Reply(500, b"x"), FLAT)
    reported = ending_of_reply(Reply(200, b'{"_ng_failure_class":"own"}'), FLAT)
    assert ends_the_run(failed_run, route_failures=False)
    assert not ends_the_run(failed_run, route_failures=True)
    assert not ends_the_run(reported, route_failures=False)
    evidence = as_evidence(failed_run)
    assert isinstance(evidence.outcome, Evidence)
    assert "500" in evidence.outcome.message


INNER = 'Hit an exception in M___m calling an inner server: b\'{"detail": "model is \\\\"busy\\\\""}\''

KEY = "host='127.0.0.1', port=8009, is_ssl=False, ssl=<SSLContext (TLS) at 0x1>, proxy=None, proxy_auth=None"
UNREACHED = f"ClientConnectorError(ConnectionKey({KEY}), ConnectionRefusedError(111, 'Connection refused'))"


@pytest.mark.parametrize(
    ("body", "cause"),
    [
        (b"", None),
        (
            msgspec.json.encode(f"Hit an exception in A calling an inner server: {msgspec.json.encode(UNREACHED)!r}"),
            "ClientConnectorError(127.0.0.1:8009, ConnectionRefusedError(111, 'Connection refused'))",
        ),
        (b'"ValueError(1)"', "ValueError(1)"),
        (msgspec.json.encode(INNER), '{"detail": "model is "busy""}'),
        (msgspec.json.encode(f"Hit an exception in A calling an inner server: {msgspec.json.encode(INNER)!r}"), "busy"),
        (b"x" * 9000, "x" * 200),
    ],
)
def test_the_cause_is_what_the_innermost_server_said(body, cause):
    found = cause_of(ending_of_reply(Reply(500, body), FLAT))
    assert found == cause or (cause is not None and cause in found)
    assert found is None or ("inner server" not in found and len(found) <= 200)
