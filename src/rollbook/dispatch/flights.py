"""The table of what is in flight: how far each request has come, and which has used up its time.

Rules:
* One look over the table serves all limits and the report of a run that stalls; no request has a timer of its own.
* A flight that is given up ends its lane's wait, and nothing else: its lane says then how the attempt ended.
* A rollout's clock starts when its request can be sent: connecting, which has limits of its own, does not count.
* A server is told the limit of the whole rollout, and has a moment beyond it to say itself that the time is over: it
  knows where the time went.

Source: collection.md §3.2, §3.6, §19; cases RC-35, RC-37.
"""

import asyncio
from collections.abc import Callable, Iterable
from enum import Enum, auto
from heapq import nsmallest
from typing import Final

from rollbook.dispatch.policy import Limits
from rollbook.records.event import RunStalled, Waiting
from rollbook.records.exchange import Exchange, Phase
from rollbook.records.identity import RolloutKey
from rollbook.records.task import Rollout

LONGEST_SHOWN: Final = 20
LAST_WORD_SECONDS: Final = 0.25


class GivenUp(Enum):
    """Why a flight is ended from outside."""

    OUT_OF_TIME = auto()
    RUN_AGAIN = auto()


class Flight:
    """One attempt that is out; `began` is when it was sent off."""

    __slots__ = ("_task", "attempt", "began", "exchange", "given_up", "why")

    def __init__(self, attempt: Rollout, exchange: Exchange, began: float) -> None:
        self.attempt = attempt
        self.exchange = exchange
        self.began = began
        self.given_up: GivenUp | None = None
        self.why = ""
        self._task = asyncio.current_task()

    def give_up(self, reason: GivenUp, why: str) -> None:
        """End the wait for the reply; once."""
        if self.given_up is None and self._task is not None:
            self.given_up, self.why = reason, why
            self._task.cancel()

    def was_given_up(self) -> bool:
        """Whether a cancellation that reached the wait was ours, and nobody else's as well."""
        return self.given_up is not None and self.take_back() == 0

    def take_back(self) -> int:
        """Withdraw what giving up asked of the lane's task, once; return how many cancellations of it are left."""
        task, self._task = self._task, None
        if task is None:
            return 0
        return task.cancelling() if self.given_up is None else task.uncancel()


class Flights:
    """Every flight of a run."""

    def __init__(self, limits: Limits, now: Callable[[], float]) -> None:
        self._limits = limits
        self._now = now
        self._out: dict[RolloutKey, Flight] = {}
        self._moved = now()
        self._told = self._moved

    def __len__(self) -> int:
        """Return how many are out."""
        return len(self._out)

    def begin(self, attempt: Rollout, began: float) -> Flight:
        """Note that `attempt` is sent off by the running task."""
        if not self._out:
            self._moved = self._now()
        flight = Flight(attempt, Exchange(self._now, self._limits.rollout), began)
        self._out[attempt.key] = flight
        return flight

    def end(self, flight: Flight) -> None:
        """Note that `flight` is over."""
        flight.take_back()
        del self._out[flight.attempt.key]
        self._moved = self._now()

    def find(self, key: RolloutKey) -> Flight | None:
        """Return the flight of a rollout that is out."""
        return self._out.get(key)

    def sweep(self) -> None:
        """Give up every flight that has used up one of its limits."""
        now = self._now()
        for flight in self._out.values():
            over = _over(flight, self._limits, now)
            if over is not None:
                flight.give_up(GivenUp.OUT_OF_TIME, over)

    def stalled(self, after: float) -> RunStalled | None:
        """Return who is waited for when nothing ended for `after` seconds, and every `after` seconds from then on."""
        now = self._now()
        if not self._out or now - max(self._moved, self._told) < after:
            return None
        self._told = now
        return RunStalled(now - self._moved, len(self._out), self.longest(LONGEST_SHOWN))

    def longest(self, most: int) -> tuple[Waiting, ...]:
        """Return the `most` rollouts that are out for the longest time."""
        now = self._now()
        first: Iterable[Flight] = nsmallest(most, self._out.values(), key=lambda flight: flight.began)
        return tuple(
            Waiting(
                flight.attempt.key,
                now - flight.began,
                flight.attempt.server,
                flight.exchange.host,
                flight.exchange.phase.value,
            )
            for flight in first
        )


def _over(flight: Flight, limits: Limits, now: float) -> str | None:
    """Return what to say of the limit that `flight` has used up, if it has."""
    exchange = flight.exchange
    if exchange.phase is Phase.CONNECTING:
        return None
    part, allowed = ("first line", limits.response) if exchange.phase is Phase.WAITING else ("end", limits.body)
    if allowed is not None and now - exchange.since >= allowed:
        return f"the reply's {part} did not come within {allowed:g} s"
    if limits.rollout is not None and now - (exchange.sent_at or now) >= limits.rollout + LAST_WORD_SECONDS:
        return f"the rollout took longer than its limit of {limits.rollout:g} s"
    return None
