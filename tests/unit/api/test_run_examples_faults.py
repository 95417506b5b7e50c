"""Each fault of a server over sockets, told to every way of calling: eager or bounded, routed, sent again."""

import asyncio
import zlib
from dataclasses import dataclass

import pytest
from omegaconf import OmegaConf

from ports import free_ports
from rollbook.api.direct_call import DirectCall, Pacing, StartedWhenUsed
from rollbook.api.direct_rollouts import Handover
from rollbook.api.direct_rows import direct_rows
from rollbook.clock import SystemClock
from rollbook.config.types import BaseServerConfig
from rollbook.plan.directory import Directory
from rollbook.servers.serving.remote import RemoteDeployment
from stub import Stub
from unit.api.direct_calls import rows
from unit.servers_core.stand_ins import in_process
from unit.servers_wire.scripted import AT_ONCE, CLOSE, HOLD, RESET, Scripted

RAN, ASKED = "agent_run_error", "agent_request_failed"
MAYBE, SURELY, NOT = "possibly_delivered", "delivered", "not_sent"
MOST_BYTES = 100_000


def http(status, body=b"", *headers):
    length = b"Content-Length: %d" % len(body)
    return b"\r\n".join([b"HTTP/1.1 %d Said" % status, length, *headers, b"", body])


def status(code, failure_class, delivery):
    return f"{code}", http(code, b"why"), HOLD, (failure_class, "ClientResponseError", code, delivery)


DEEP = b'{"a":' * 300 + b"1" + b"}" * 300
BOMB = http(200, zlib.compress(b"0" * 10 * MOST_BYTES), b"Content-Encoding: deflate")
FAULTS = [
    ("close before reading", b"", AT_ONCE, (ASKED, None, None, MAYBE)),
    ("close after reading", b"", CLOSE, (ASKED, "ServerDisconnectedError", None, MAYBE)),
    ("reset after reading", b"", RESET, (ASKED, None, None, MAYBE)),
    ("close mid-status", b"HTTP/1.1 2", CLOSE, (ASKED, None, None, MAYBE)),
    ("close mid-headers", b"HTTP/1.1 200 OK\r\nConte", CLOSE, (RAN, None, 200, SURELY)),
    ("garbage", b"\x00\xff nothing\r\n\r\n", CLOSE, (ASKED, None, None, MAYBE)),
    ("close mid-body", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{", CLOSE, (RAN, None, 200, SURELY)),
    ("503 cut short", b"HTTP/1.1 503 No\r\nContent-Length: 9\r\n\r\n{", CLOSE, (ASKED, None, 503, MAYBE)),
    ("empty", http(200), HOLD, (RAN, "JSONDecodeError", 200, SURELY)),
    ("no JSON", http(200, b"<html>"), HOLD, (RAN, "JSONDecodeError", 200, SURELY)),
    ("NaN", http(200, b'{"reward":NaN}'), HOLD, (RAN, "JSONDecodeError", 200, SURELY)),
    ("lone surrogate", http(200, b'{"a":"\\ud800"}'), HOLD, (RAN, "JSONDecodeError", 200, SURELY)),
    ("no object", http(200, b"[]"), HOLD, (RAN, "InvalidRolloutResult", 200, SURELY)),
    ("too large", http(200, b"0" * (MOST_BYTES + 1)), HOLD, (RAN, None, 200, SURELY)),
    ("bomb", BOMB, HOLD, (RAN, None, 200, SURELY)),
    ("deep", http(200, DEEP), HOLD, None),
    ("long body", http(200, b'{"reward":1}') + b"more", HOLD, None),
    ("100 first", b"HTTP/1.1 100 Continue\r\n\r\n" + http(200, b'{"reward":1}'), HOLD, None),
    ("204", b"HTTP/1.1 204 No\r\n\r\n", HOLD, (RAN, "JSONDecodeError", 204, SURELY)),
    ("301", http(301, b"", b"Location: /elsewhere"), HOLD, (RAN, "ClientResponseError", 301, SURELY)),
    *(status(code, RAN, SURELY) for code in (401, 403, 404, 408, 413, 422, 500)),
    *(status(code, ASKED, MAYBE) for code in (429, 502, 503, 504)),
]


@dataclass(frozen=True, slots=True)
class Way:
    """One way to call: `again` is whether requests that may be lost are sent again."""

    limit: int | None
    routed: bool
    again: bool

    def __str__(self):
        return f"{'eager' if self.limit is None else 'bounded'} {self.routed=} {self.again=}".replace("self.", "")


WAYS = [Way(limit, routed, again) for limit in (None, 1) for routed in (True, False) for again in (True, False)]


class Hurried(SystemClock):
    async def sleep(self, _seconds):
        await asyncio.sleep(0)


def called(url, way):
    stub = Stub()
    stub.port = int(url.rpartition(":")[2])
    config = OmegaConf.create(stub.config())
    head = BaseServerConfig(host="127.0.0.1", port=stub.port)
    deployment = RemoteDeployment(head, known=config, connect_grace=0, max_reply_bytes=MOST_BYTES)
    call = DirectCall(
        StartedWhenUsed(deployment),
        Hurried(),
        0.0,
        Pacing(max_resident_tasks=way.limit),
        Handover(way.routed),
        3 if way.again else 1,
    )
    return call.results(direct_rows(rows(), Directory(config)))


async def outcome_of(results):
    (awaitable,) = results
    try:
        return (await awaitable)[1]
    except Exception as error:  # noqa: BLE001  whatever is raised is looked at
        return error


def is_told(expected, result):
    found = tuple(result[f"_ng_failure_{key}"] for key in ("class", "type", "http_status", "delivery"))
    return all(one in {None, other} for one, other in zip(expected, found, strict=True)) and found[2] == expected[2]


@pytest.fixture(autouse=True)
async def nothing_is_left_behind():
    before = asyncio.all_tasks()
    yield
    assert asyncio.all_tasks() <= before | {asyncio.current_task()}


@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize(("says", "then", "expected"), [row[1:] for row in FAULTS], ids=[row[0] for row in FAULTS])
async def test_every_fault_is_told_as_what_it_is_and_sent_as_often_as_it_may_be(says, then, expected, way):
    server = Scripted(says, then)
    async with server.running() as url:
        outcome = await outcome_of(called(url, way))
        await server.all_closed()
    lost = expected is not None and expected[2:] == (None, MAYBE)
    assert server.opened == (3 if lost and way.again else 1)
    if expected is None:
        assert isinstance(outcome, dict)
        assert "_ng_failure_class" not in outcome
    elif way.routed:
        assert is_told(expected, outcome)
        assert len(outcome.get("_ng_failure_sends", [])) == (3 if lost and way.again else 0)
    else:
        assert isinstance(outcome, Exception)


@pytest.mark.parametrize("way", WAYS, ids=str)
async def test_a_reply_of_this_process_that_breaks_off_is_told_as_one_from_a_socket_and_not_sent_again(way):
    asked = []

    async def broken(scope, receive, send):
        asked.append(scope["path"])
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"{", "more_body": True})

    async with in_process(broken, *free_ports(1)) as url:
        outcome = await outcome_of(called(url, way))
    assert asked == ["/run"]
    if way.routed:
        assert is_told((RAN, "ClientPayloadError", 200, SURELY), outcome)
        assert "_ng_failure_sends" not in outcome
    else:
        assert isinstance(outcome, Exception)


@pytest.mark.parametrize("way", WAYS, ids=str)
async def test_a_connection_that_is_refused_is_not_sent_however_often_it_may_be(way):
    async with Scripted().running() as url:
        pass
    outcome = await outcome_of(called(url, way))
    if way.routed:
        assert is_told((ASKED, "ClientConnectorError", None, NOT), outcome)
        assert "_ng_failure_sends" not in outcome
    else:
        assert isinstance(outcome, OSError)
