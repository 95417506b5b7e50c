"""A transport without a network: it answers as told, keeps what it was sent, and holds replies back on demand.

Rules:
* One call is one request; it takes down each before it answers.
* A request that is cancelled while it is held back is in `cancelled`, and in no other way answered.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import msgspec

from rollbook.records.exchange import Exchange, Phase, Reply, Upload

Answer = Callable[[Mapping[str, object]], Reply | Exception]


@dataclass(frozen=True, slots=True)
class Sent:
    """One request that left: where to, and its decoded body."""

    server: str
    path: str
    body: Mapping[str, object]


def one_reward(_body: Mapping[str, object]) -> Reply:
    """Answer with a reward of 1."""
    return Reply(200, b'{"reward":1.0}')


def every_request(_body: Mapping[str, object]) -> bool:
    """Choose each."""
    return True


@dataclass(slots=True)
class ScriptedTransport:
    """A `Transport` whose replies `answer` makes; an exception that it returns is raised."""

    answer: Answer = one_reward
    sent: list[Sent] = field(default_factory=list)
    cancelled: list[Sent] = field(default_factory=list)
    in_flight: int = 0
    most_in_flight: int = 0
    _holds: Callable[[Mapping[str, object]], bool] = every_request
    _open: asyncio.Event = field(default_factory=asyncio.Event)
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        """Begin with no reply held back."""
        self._open.set()

    def hold(self, which: Callable[[Mapping[str, object]], bool] = every_request) -> None:
        """Keep the replies to those requests back until `release`."""
        self._holds = which
        self._open.clear()

    def release(self) -> None:
        """Let the replies go."""
        self._open.set()

    async def reached(self, requests: int) -> None:
        """Return when at least `requests` requests were sent in all."""
        while len(self.sent) < requests:
            self._changed.clear()
            await self._changed.wait()

    async def send(self, server: str, path: str, body: bytes | Upload, exchange: Exchange | None = None) -> Reply:
        """Take the request down, and answer it when replies may go."""
        whole = body if isinstance(body, bytes) else b"".join(body.pieces())
        request = Sent(server, path, msgspec.json.decode(whole, type=dict[str, object]))
        self._take(request)
        if exchange is not None:
            exchange.host = server
            exchange.enter(Phase.WAITING)
        try:
            await asyncio.sleep(0)
            if self._holds(request.body):
                await self._open.wait()
        except asyncio.CancelledError:
            self.cancelled.append(request)
            raise
        finally:
            self.in_flight -= 1
        outcome = self.answer(request.body)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def _take(self, request: Sent) -> None:
        self.sent.append(request)
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        self._changed.set()
