"""The time that a rollout has left, as a request says it: kept here, sent on, and ended when it is over.

Rules:
* The seconds count from a request's arrival. What is no number of seconds is as if it were not said.
* A handler whose time is over is cancelled, and its request answered 504 with a report of kind `agent_timeout`; once a
  reply began, it breaks off.
* What is sent on is rounded up, so that of two servers the one that was asked first ends first.
* A server that answers an expiry in a way of its own takes the limit over.

Source: servers.md §3.10; collection.md §3.8, §11.1.
"""

import asyncio
import contextvars
import math
import re
from dataclasses import dataclass
from typing import Final

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rollbook.records.exchange import DEADLINE_HEADER
from rollbook.records.failure_report import FAILURE_REPORT_HEADER, Boundary, FailureReport, header_of

TIMED_OUT_KIND: Final = "agent_timeout"
_GATEWAY_TIMEOUT: Final = 504
DEADLINE_HEADER_BYTES: Final = DEADLINE_HEADER.lower().encode()
_SECONDS: Final = re.compile(rb"[0-9]{1,12}(?:\.[0-9]{0,12})?")
_MILLISECONDS: Final = 1000
_TIMER_SECONDS: Final = 0.002
"""By how much the loop's timers may be early."""


@dataclass(frozen=True, slots=True)
class _Deadline:
    """When the running request's time is over, by its loop's clock, and what ends it then."""

    ends: float
    limit: asyncio.Timeout


_current: contextvars.ContextVar[_Deadline | None] = contextvars.ContextVar("rollbook_deadline", default=None)


def seconds_left() -> float | None:
    """Return how long the running handler may still take, not below 0; None when nothing was said."""
    deadline = _current.get()
    return None if deadline is None else max(0.0, deadline.ends - asyncio.get_running_loop().time())


def sent_on() -> str | None:
    """Return the header's value for a request that the running handler makes; None when it sends none."""
    if _current.get() is None:
        return None
    left = seconds_left() or 0.0
    return f"{math.ceil(left * _MILLISECONDS) / _MILLISECONDS:.3f}"


def take_over() -> float | None:
    """Return what is left, and leave it to the running handler to end in time; None when nothing was said."""
    deadline = _current.get()
    if deadline is not None and not deadline.limit.expired():
        deadline.limit.reschedule(None)
    return seconds_left()


def shorter(*limits: float | None) -> float | None:
    """Return the shortest of `limits`, of which None is no limit."""
    return min((limit for limit in limits if limit is not None), default=None)


class DeadlineMiddleware:
    """Ends requests whose time is over; `boundary` is whose failure that is."""

    def __init__(self, app: ASGIApp, boundary: Boundary) -> None:
        self.app = app
        self.boundary = boundary

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, within the seconds that it names."""
        seconds = _said(scope) if scope["type"] == "http" else None
        if seconds is None:
            await self.app(scope, receive, send)
            return
        begun = False

        async def noting(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        ends = asyncio.get_running_loop().time() + seconds
        limit = asyncio.timeout_at(ends)
        token = _current.set(_Deadline(ends, limit))
        try:
            async with limit:
                await self.app(scope, receive, noting)
        except TimeoutError:
            over = limit.expired() or asyncio.get_running_loop().time() >= ends - _TIMER_SECONDS
            if begun or not over:
                raise
            await self._over(seconds)(scope, receive, send)
        finally:
            _current.reset(token)

    def _over(self, seconds: float) -> JSONResponse:
        report = FailureReport().caused(self.boundary, TIMED_OUT_KIND, http_status=_GATEWAY_TIMEOUT)
        said = f"The rollout's time was over: {seconds:g} s were left when the request came"
        return JSONResponse(said, _GATEWAY_TIMEOUT, {FAILURE_REPORT_HEADER: header_of(report)})


def _said(scope: Scope) -> float | None:
    for name, value in scope["headers"]:
        if name == DEADLINE_HEADER_BYTES:
            return float(value) if _SECONDS.fullmatch(value) else None
    return None
