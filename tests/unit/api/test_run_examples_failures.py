"""What a row resolves to that was sent: its reply, a failure as a value, or the error itself."""

import asyncio
import json
import logging

import aiohttp
import pytest

from rollbook.api.direct_call import Pacing
from rollbook.api.direct_errors import InvalidRolloutResult
from rollbook.api.direct_rows import RunNaming
from rollbook.records.exchange import Reply, SendFailed
from rollbook.records.failure_kinds import Delivery
from rollbook.records.rollout_failure import RolloutFailure
from unit.api.direct_calls import LOST, UNREACHABLE, Call, reply, rows

HTML = Reply(200, b"<html>")


@pytest.fixture(autouse=True)
def _quiet(caplog):
    caplog.set_level(logging.ERROR)


async def with_clock(call, waiting):
    """Let the time pass that a call waits between two sends."""
    result = asyncio.ensure_future(waiting)
    for _ in range(200):
        await asyncio.sleep(0)
        if call.clock.sleeps:
            call.clock.advance(call.clock.sleeps[0])
        if result.done():
            break
    return await result


@pytest.mark.parametrize(
    "payload",
    [
        {"reward": 1.0, "response": {"output": []}, "_ng_task_index": 9, "_ng_run_id": "the server's own"},
        {"reward": "no number"},
        {"_ng_failure_class": "judge_failed", "response": {"output": [1]}, "reward": 0.0},
        {"_ng_no_persist": True, "_ng_failure_class": "kill_shaped", "reward": 0.0},
        {"anything": None},
    ],
)
@pytest.mark.parametrize("route", [True, False])
async def test_a_row_that_ran_resolves_to_its_reply_untouched(payload, route):
    assert await Call(reply(**payload), route_failures=route).only() == payload


async def test_v5_a_timeout_without_a_status_is_a_failed_request():
    failure = SendFailed("", delivery=Delivery.POSSIBLY_DELIVERED, exception_type="TimeoutError")
    result = await Call(failure, route_failures=True).only()
    assert result == {
        "_ng_failure_class": "agent_request_failed",
        "_ng_failure_type": "TimeoutError",
        "_ng_failure_message": "TimeoutError()",
        "_ng_failure_http_status": None,
        "_ng_failure_response_body": None,
        "_ng_failure_delivery": "possibly_delivered",
        "failure_kind": "transport_timeout",
    }


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (reply(500, error="x"), ("agent_run_error", "ClientResponseError", 500, "delivered")),
        (Reply(301, b"{}"), ("agent_run_error", "ClientResponseError", 301, "delivered")),
        (reply(404), ("agent_run_error", "ClientResponseError", 404, "delivered")),
        (reply(422), ("agent_run_error", "ClientResponseError", 422, "delivered")),
        (reply(503), ("agent_request_failed", "ClientResponseError", 503, "possibly_delivered")),
        (reply(429), ("agent_request_failed", "ClientResponseError", 429, "possibly_delivered")),
        (HTML, ("agent_run_error", "JSONDecodeError", 200, "delivered")),
        (Reply(204, b""), ("agent_run_error", "JSONDecodeError", 204, "delivered")),
        (Reply(200, b"[1]"), ("agent_run_error", "InvalidRolloutResult", 200, "delivered")),
        (Reply(200, b"NaN"), ("agent_run_error", "JSONDecodeError", 200, "delivered")),
        (LOST, ("agent_request_failed", "ServerDisconnectedError", None, "possibly_delivered")),
        (UNREACHABLE, ("agent_request_failed", "ClientConnectorError", None, "not_sent")),
    ],
)
@pytest.mark.parametrize("bounded", [None, 1])
async def test_a_failed_run_is_a_value_with_routing_on(answer, expected, bounded):
    result = await Call(answer, route_failures=True, pacing=Pacing(max_resident_tasks=bounded)).only()
    told = ("class", "type", "http_status", "delivery")
    assert tuple(result[f"_ng_failure_{key}"] for key in told) == expected
    assert not {"reward", "response"} & result.keys()


TIMED_OUT = SendFailed("too late", delivery=Delivery.NOT_SENT, exception_type="ConnectionTimeoutError")
CUT_SHORT = SendFailed("short", delivery=Delivery.DELIVERED, exception_type="ClientPayloadError", status=200)
PLAIN_TIMEOUT = SendFailed("", delivery=Delivery.POSSIBLY_DELIVERED, exception_type="TimeoutError")
LOST_LINE = SendFailed("odd", delivery=Delivery.POSSIBLY_DELIVERED, exception_type="LocalResourceError")


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (reply(500), aiohttp.ClientResponseError),
        (reply(503), aiohttp.ClientResponseError),
        (Reply(301, b"{}"), aiohttp.ClientResponseError),
        (HTML, json.JSONDecodeError),
        (Reply(200, b"[1]"), InvalidRolloutResult),
        (LOST, aiohttp.ServerDisconnectedError),
        (LOST_LINE, aiohttp.ClientConnectionError),
        (UNREACHABLE, aiohttp.ClientOSError),
        (TIMED_OUT, aiohttp.ServerTimeoutError),
        (PLAIN_TIMEOUT, TimeoutError),
        (CUT_SHORT, aiohttp.ClientPayloadError),
    ],
)
async def test_rc_31_without_routing_the_error_is_raised_to_its_own_awaitable_alone(answer, error):
    call = Call(reply(), answer, reply(), examples=rows(3))
    outcomes = []
    for awaitable in call.results:
        outcomes += await asyncio.gather(awaitable, return_exceptions=True)
    raised = [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
    assert [isinstance(one, error) for one in raised] == [True]
    assert [outcome[1] for outcome in outcomes if isinstance(outcome, tuple)] == [{"reward": 1.0}] * 2


async def test_the_error_for_a_status_carries_it_with_the_body_and_the_address():
    with pytest.raises(aiohttp.ClientResponseError) as caught:
        await Call(reply(500, detail="the verifier broke")).only()
    assert (caught.value.status, caught.value.message) == (500, "Internal Server Error")
    assert b"the verifier broke" in caught.value.response_content
    assert str(caught.value.request_info.url) == "http://adder_environment_server/run"


async def test_the_error_of_the_clients_own_is_raised_as_it_is():
    own = aiohttp.ServerDisconnectedError("gone")
    failure = SendFailed("gone", delivery=Delivery.POSSIBLY_DELIVERED, exception_type="ServerDisconnectedError")
    failure.__cause__ = own
    with pytest.raises(aiohttp.ServerDisconnectedError) as caught:
        await Call(failure).only()
    assert caught.value is own


async def test_a_defect_is_raised_with_routing_on_as_well():
    with pytest.raises(ZeroDivisionError):
        await Call(ZeroDivisionError("ours"), route_failures=True).only()


async def test_an_attempt_whose_request_may_be_lost_is_sent_three_times_in_all_and_says_so():
    call = Call(LOST, sends=3, route_failures=True)
    result = await with_clock(call, call.only())
    assert len(call.transport.sent) == 3
    assert len({json.dumps(dict(sent.body)) for sent in call.transport.sent}) == 1
    assert [one["delivery"] for one in result["_ng_failure_sends"]] == ["possibly_delivered"] * 3
    assert [one["exception_type"] for one in result["_ng_failure_sends"]] == ["ServerDisconnectedError"] * 3


async def test_without_retries_nothing_is_sent_twice():
    call = Call(LOST, sends=1, route_failures=True)
    result = await call.only()
    assert len(call.transport.sent) == 1
    assert "_ng_failure_sends" not in result


async def test_the_first_reply_ends_the_sends():
    call = Call(LOST, reply(reward=0.5), sends=3)
    assert await with_clock(call, call.only()) == {"reward": 0.5}
    assert len(call.transport.sent) == 2


@pytest.mark.parametrize("answer", [reply(500), reply(503), HTML, UNREACHABLE, CUT_SHORT])
async def test_only_what_may_be_lost_on_the_way_is_sent_again(answer):
    call = Call(answer, sends=3, route_failures=True)
    await call.only()
    assert len(call.transport.sent) == 1


async def test_an_attempt_that_may_have_been_delivered_once_is_not_told_as_unsent():
    call = Call(LOST, UNREACHABLE, sends=3, route_failures=True)
    result = await with_clock(call, call.only())
    assert result["_ng_failure_delivery"] == "possibly_delivered"
    assert [one["delivery"] for one in result["_ng_failure_sends"]] == ["possibly_delivered", "not_sent"]


async def test_the_sends_before_a_bad_status_are_listed_beside_it():
    call = Call(LOST, reply(500), sends=3, route_failures=True)
    result = await with_clock(call, call.only())
    assert (result["_ng_failure_http_status"], result["_ng_failure_delivery"]) == (500, "delivered")
    assert len(result["_ng_failure_sends"]) == 2


async def test_enriched_rows_get_the_identity_that_their_reply_lacks_and_failures_are_typed():
    call = Call(
        reply(reward=1.0, _ng_task_index=77),
        reply(500),
        examples=rows(2),
        run=RunNaming("r1"),
        route_failures=True,
        typed=True,
    )
    (_, plain), (row, failure) = await call.all()
    assert plain == {"reward": 1.0, "_ng_task_index": 77}
    assert isinstance(failure, RolloutFailure)
    assert (failure.run_id, failure.episode_id.rollout_id, failure.http_status) == ("r1", "1-0", 500)
    assert row["_ng_run_id"] == "r1"
