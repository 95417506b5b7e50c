"""What happens to a request on its way: it waits, and it may meet a fault.

Rules:
* Waits and faults follow from the seed, the attempt and the request; the nth sending of one request meets its own.
* A fault happens for real: a stalled request is never answered, a dropped one loses its connection in mid-reply.
* Only model calls are touched; health checks always answer.
"""

import asyncio
import math
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from enum import StrEnum
from statistics import NormalDist
from typing import Final

import orjson
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from responses_api_models.simulated_model.chance import Chance, digest_of
from responses_api_models.simulated_model.settings import Distribution, FaultSettings, LatencySettings
from rollbook import current_rollout_id

_REMEMBERED: Final = 100_000
_PROMISED: Final = b"1000"
_NORMAL: Final = NormalDist()


class Fault(StrEnum):
    """What goes wrong with one request."""

    NONE = "none"
    RATE_LIMITED = "rate_limited"
    SERVER_ERROR = "server_error"
    STALL = "stall"
    DROP = "drop"
    TRUNCATED = "truncated"


def fault_of(settings: FaultSettings, chance: Chance) -> Fault:
    """Return the fault that a request meets."""
    rates: dict[Fault, float] = {fault: float(getattr(settings, fault)) for fault in Fault if fault is not Fault.NONE}
    return chance.weighted({**rates, Fault.NONE: max(0.0, 1 - sum(rates.values()))}, "fault")


def latency_of(settings: LatencySettings, chance: Chance) -> float:
    """Return how long a request waits, in seconds."""
    mean, share = settings.mean_seconds, chance.share("latency")
    match settings.distribution:
        case Distribution.CONSTANT:
            seconds = mean
        case Distribution.UNIFORM:
            seconds = 2 * mean * share
        case Distribution.EXPONENTIAL:
            seconds = -mean * math.log1p(-share)
        case Distribution.LOGNORMAL:
            deviation = _NORMAL.inv_cdf(max(share, 1e-12)) * settings.sigma
            seconds = mean * math.exp(deviation - settings.sigma**2 / 2)
    return min(seconds, settings.max_seconds)


class Times:
    """Counts how often each key was asked for; the oldest keys are forgotten beyond a bound."""

    def __init__(self, remembered: int = _REMEMBERED) -> None:
        self._remembered = remembered
        self._counts: OrderedDict[str, int] = OrderedDict()

    def next(self, key: str) -> int:
        """Return how often `key` was asked for before."""
        count = self._counts.pop(key, 0)
        self._counts[key] = count + 1
        if len(self._counts) > self._remembered:
            self._counts.popitem(last=False)
        return count


class Unreliable:
    """ASGI middleware that lets the model calls of `app` wait and fail."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        seed: int,
        latency: LatencySettings,
        faults: FaultSettings,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.app = app
        self._seed = seed
        self._latency = latency
        self._faults = faults
        self._sleep = sleep
        self._times = Times()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http" or scope["method"] != "POST" or not scope["path"].startswith("/v1/"):
            await self.app(scope, receive, send)
            return
        body = await _whole_body(receive)
        chance = self._chance(scope["path"], body)
        fault = fault_of(self._faults, chance)
        refusal = self._refusal(fault)
        if refusal is not None:
            await refusal(scope, receive, send)
            return
        await self._sleep(latency_of(self._latency, chance))
        await self._answer(fault, scope, _given_back(body, receive), send)

    def _chance(self, path: str, body: bytes) -> Chance:
        key = digest_of(self._seed, path, current_rollout_id(), body.hex())
        return Chance(digest_of("unreliable", key, self._times.next(key)))

    def _refusal(self, fault: Fault) -> Response | None:
        if fault is Fault.RATE_LIMITED:
            wait = str(self._faults.retry_after_seconds)
            return _error(
                429, "rate_limit_exceeded", f"simulated rate limit: try again in {wait} s", {"Retry-After": wait}
            )
        if fault is Fault.SERVER_ERROR:
            return _error(500, "server_error", "simulated server error", {})
        return None

    async def _answer(self, fault: Fault, scope: Scope, receive: Receive, send: Send) -> None:
        match fault:
            case Fault.STALL:
                await asyncio.get_running_loop().create_future()
            case Fault.DROP:
                headers = [(b"content-type", b"application/json"), (b"content-length", _PROMISED)]
                await send({"type": "http.response.start", "status": 200, "headers": headers})
            case Fault.TRUNCATED:
                await _send_half(self.app, scope, receive, send)
            case _:
                await self.app(scope, receive, send)


def _error(status: int, code: str, message: str, headers: dict[str, str]) -> Response:
    body = {"error": {"message": message, "type": code, "param": None, "code": code}}
    return Response(orjson.dumps(body), status, headers, "application/json")


async def _whole_body(receive: Receive) -> bytes:
    parts: list[bytes] = []
    while True:
        message = await receive()
        parts.append(message.get("body", b""))
        if message["type"] != "http.request" or not message.get("more_body", False):
            return b"".join(parts)


def _given_back(body: bytes, receive: Receive) -> Receive:
    """Return a `receive` that gives `body` once, and then what comes after it."""
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def again() -> Message:
        return messages.pop() if messages else await receive()

    return again


async def _send_half(app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
    """Send the reply of `app` with the second half of its body missing, as if it were whole."""
    sent: list[Message] = []

    async def keep(message: Message) -> None:
        sent.append(message)

    await app(scope, receive, keep)
    body = b"".join(message.get("body", b"") for message in sent)
    half = body[: len(body) // 2]
    for message in sent:
        if message["type"] == "http.response.start":
            headers = [entry for entry in message["headers"] if entry[0].lower() != b"content-length"]
            await send({**message, "headers": [*headers, (b"content-length", str(len(half)).encode())]})
    await send({"type": "http.response.body", "body": half})
