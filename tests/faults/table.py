"""Every fault of a server, and what is told of a rollout that meets it.

Rules:
* `requests` is how often its request arrives at a server when nothing is sent again, `retried` when it may be.
* What a fault with `ends=False` is told as is what a time limit makes of it: such a reply ends by nothing else, and
  `run_examples` has no limit.
* Addresses in a configuration are http alone, so TLS fails where a server speaks nothing else.
"""

import gzip
from collections.abc import Iterator
from dataclasses import dataclass, field

from aiohttp import (
    ClientConnectionError,
    ClientOSError,
    ClientPayloadError,
    ClientResponseError,
    ServerDisconnectedError,
)

from faults.raw_server import NO_HOST, REFUSED, SCRIPTED, TLS_ALONE, Says, Then, reply
from rollbook.api.direct_errors import InvalidRolloutResult

MOST_BYTES = 200_000
"""The bound of replies under which the bomb is one."""
RAN, ASKED = "agent_run_error", "agent_request_failed"
DROP, LATE, NOT_UP = "transport_peer_drop", "transport_timeout", "transport_unreachable"
NOT_SENT, MAYBE, SURELY = "not_sent", "possibly_delivered", "delivered"
_GATEWAY = {429, 502, 503, 504}


@dataclass(frozen=True, slots=True)
class Told:
    """What a failure says, and the error that it is where failures are not routed."""

    failure_class: str
    kind: str
    exception_type: str
    status: int | None
    delivery: str
    raised: type[Exception]

    @property
    def fields(self) -> dict:
        return {
            "_ng_failure_class": self.failure_class,
            "_ng_failure_delivery": self.delivery,
            "_ng_failure_type": self.exception_type,
            "_ng_failure_http_status": self.status,
            "failure_kind": self.kind,
        }


@dataclass(frozen=True, slots=True)
class Fault:
    name: str
    says: Says = field(default_factory=Says)
    told: Told | None = None
    """None: a result, which is `result`."""
    result: dict | None = None
    requests: int = 1
    retried: int = 1
    server: str = SCRIPTED
    ends: bool = True


def lost(kind: str, exception_type: str, raised: type[Exception], status: int | None = None) -> Told:
    """A request without a whole reply."""
    ran = status is not None and status not in _GATEWAY
    delivery = NOT_SENT if kind == NOT_UP else SURELY if ran else MAYBE
    return Told(RAN if ran else ASKED, kind, exception_type, status, delivery, raised)


def unusable(exception_type: str, raised: type[Exception], status: int = 200) -> Told:
    """A reply that came and is no result."""
    return Told(RAN, RAN, exception_type, status, SURELY, raised)


def answered(status: int, told: Told, *headers: bytes) -> Fault:
    return Fault(str(status), Says(reply(b"why", *headers, status=b"%d Said" % status)), told)


def refusals() -> Iterator[Fault]:
    for status in (401, 403, 404, 408, 413, 422, 500):
        yield answered(status, Told(RAN, RAN, "ClientResponseError", status, SURELY, ClientResponseError))
    for status in sorted(_GATEWAY):
        yield answered(status, Told(ASKED, ASKED, "ClientResponseError", status, MAYBE, ClientResponseError))


def deep(levels: int) -> dict:
    nested: dict = {"end": 1}
    for _ in range(levels - 1):
        nested = {"a": nested}
    return nested


DEEP = b'{"a":' * 299 + b'{"end":1}' + b"}" * 299
BOMB = gzip.compress(b'{"reward":1.0,"a":"' + bytes(100 * MOST_BYTES))
JSON_FAULT = unusable("JSONDecodeError", ValueError)
LOST = lost(DROP, "ServerDisconnectedError", ServerDisconnectedError)
CUT = lost(DROP, "ClientPayloadError", ClientPayloadError, 200)
LATE_BODY = lost(LATE, "TimeoutError", TimeoutError, 200)
LATE_REFUSAL = lost(LATE, "TimeoutError", TimeoutError, 503)
HTTP = b"HTTP/1.1 200 OK\r\n"
CHUNKS = HTTP + b"Transfer-Encoding: chunked\r\n\r\n"
WHOLE = {"reward": 1.0}
ONE = b'{"reward":1.0}'

FAULTS = (
    Fault(
        "connect refused",
        told=lost(NOT_UP, "ClientConnectorError", ClientOSError),
        requests=0,
        retried=0,
        server=REFUSED,
    ),
    Fault(
        "DNS failure",
        told=lost(NOT_UP, "ClientConnectorDNSError", ClientOSError),
        requests=0,
        retried=0,
        server=NO_HOST,
    ),
    Fault("TLS failure", told=LOST, retried=3, server=TLS_ALONE),
    Fault("close before reading", Says(then=Then.UNREAD), lost(DROP, "ClientOSError", ClientOSError), retried=3),
    Fault("close after reading", Says(then=Then.CLOSE), LOST, retried=3),
    Fault(
        "close mid-headers",
        Says(HTTP + b"Content-Le", Then.CLOSE),
        lost(DROP, "ServerDisconnectedError", ClientPayloadError, 200),
    ),
    Fault("close mid-body", Says(CHUNKS + b'e\r\n{"rew', Then.CLOSE), CUT),
    Fault("short body", Says(reply(ONE[:-1], length=len(ONE)), Then.CLOSE), CUT),
    Fault("long body", Says(reply(ONE + b"more", length=len(ONE))), result=WHOLE),
    Fault("trickle", Says(HTTP + b"X: ", Then.TRICKLE), LATE_BODY, ends=False),
    Fault("never answer", Says(), lost(LATE, "TimeoutError", TimeoutError), ends=False),
    Fault(
        "garbage",
        Says(b"\x00\xff no HTTP\r\n\r\n", Then.CLOSE),
        lost(DROP, "ClientResponseError", ClientConnectionError),
        retried=3,
    ),
    Fault("200 empty", Says(reply(b"")), JSON_FAULT),
    Fault("200 not JSON", Says(reply(b"<html>")), JSON_FAULT),
    Fault("200 wrong shape", Says(reply(b"[1]")), unusable("InvalidRolloutResult", InvalidRolloutResult)),
    Fault("100-continue", Says(b"HTTP/1.1 100 Continue\r\n\r\n" + reply(ONE)), result=WHOLE),
    Fault("204", Says(b"HTTP/1.1 204 Nothing\r\n\r\n"), unusable("JSONDecodeError", ValueError, 204)),
    answered(301, Told(RAN, RAN, "ClientResponseError", 301, SURELY, ClientResponseError), b"Location: /run"),
    *refusals(),
    Fault(
        "gzip bomb",
        Says(reply(BOMB, b"Content-Encoding: gzip")),
        unusable("ReplyTooLarge", ClientPayloadError),
    ),
    Fault(
        "503 cut short",
        Says(reply(b"no", status=b"503 No", length=9), Then.CLOSE),
        lost(DROP, "ClientPayloadError", ClientPayloadError, 503),
    ),
    Fault("300-deep JSON", Says(reply(DEEP)), result=deep(300)),
    Fault("NaN", Says(reply(b'{"reward":NaN}')), JSON_FAULT),
    Fault("lone surrogate", Says(reply(b'{"reward":1.0,"a":"\\ud800"}')), JSON_FAULT),
)
BY_A_LIMIT = (
    *(fault for fault in FAULTS if not fault.ends),
    Fault("short body, kept open", Says(reply(ONE[:-1], length=len(ONE))), LATE_BODY),
    Fault("trickled body", Says(reply(b"{", length=1 << 16), Then.TRICKLE), LATE_BODY),
    Fault("trickled 503", Says(reply(b"no", status=b"503 No", length=1 << 16), Then.TRICKLE), LATE_REFUSAL),
)
"""What only a limit ends."""
REPLIES = {fault.name: fault.says for fault in (*FAULTS, *BY_A_LIMIT)}
