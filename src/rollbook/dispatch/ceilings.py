"""How many rollouts may be in flight: in all, and on each server.

Rules:
* A number is a hard ceiling and never exceeded. Without `auto` it is simply the limit, and None is none at all.
* With `auto` each server has a ceiling of its own, which moves by itself (`ceiling_growth`); what one server refuses
  leaves the others alone. The lag of the event loop and the model servers' queues (`ceiling_signals`) hold them all.
* A server that says when to come back is sent nothing before, though for an hour at most. One that refuses again and
  again at its lowest ceiling and names no time is left alone for half a second, twice as long each time up to 30 s.
* No ceiling is lower than `floor`, the size of a group that is scored together, unless the hard one is.
* Time is an argument, always monotonic seconds. Asking and counting cost the same whatever the number of rollouts.
"""

import sys
from collections import deque
from collections.abc import Callable
from enum import Enum
from math import inf
from typing import Final

from rollbook.dispatch.ceiling_growth import Growth
from rollbook.dispatch.ceiling_signals import Advice, Queues, Signals
from rollbook.records.event import ConcurrencyChanged

START: Final = 16
MOST: Final = 4096
LONGEST_HOLD: Final = 3600.0
_FIRST_PAUSE: Final = 0.5
_LONGEST_PAUSE: Final = 30.0
_OLDEST_KEPT: Final = 32
_NEWEST_KEPT: Final = 224
_UNLIMITED: Final = sys.maxsize

Told = Callable[[ConcurrencyChanged], None]


class Verdict(Enum):
    """What an attempt says of its server: it ran and ended well, ran and failed, was turned away, or never arrived."""

    OK = "ok"
    FAILED = "failed"
    REFUSED = "refused"
    UNREACHABLE = "unreachable"


class _Server:
    """What is in flight on one server, and what may be."""

    __slots__ = ("growth", "held_until", "in_flight", "is_told", "limit", "pauses")

    def __init__(self, limit: int, growth: Growth | None) -> None:
        self.in_flight = self.pauses = 0
        self.limit = limit
        self.growth = growth
        self.held_until = float("-inf")
        self.is_told = growth is None


class Ceilings:
    """The ceilings of one run; `told` hears of each change."""

    def __init__(
        self,
        hard: int | None,
        *,
        auto: bool,
        start: int = START,
        most: int = MOST,
        floor: int = 1,
        told: Told = lambda _change: None,
    ) -> None:
        self._start, self._most, self._wanted_floor = start, most, max(1, floor)
        self._told = told
        self._auto = auto
        self._cap = self._floor = 1
        self._bound(hard)
        self._in_flight = 0
        self._servers: dict[str, _Server] = {}
        self._signals = Signals()
        self._oldest: list[ConcurrencyChanged] = []
        self._newest: deque[ConcurrencyChanged] = deque(maxlen=_NEWEST_KEPT)

    def has_room(self, server: str, now: float) -> bool:
        """Whether a rollout may be sent to `server` now."""
        its = self._servers.get(server) or self._meet(server)
        return self._in_flight < self._cap and its.in_flight < its.limit and now >= its.held_until

    def is_held(self, server: str, now: float) -> bool:
        """Whether `server` is to be left alone now, whatever room there is."""
        its = self._servers.get(server)
        return its is not None and now < its.held_until

    def began(self, server: str) -> None:
        """Count an attempt that is about to leave."""
        its = self._servers.get(server) or self._meet(server)
        its.in_flight += 1
        self._in_flight += 1

    def ended(
        self, server: str, seconds: float, verdict: Verdict, now: float, retry_after: float | None = None
    ) -> None:
        """Count an attempt that ended `seconds` after it began; `retry_after` in seconds, where a refusal names it.

        Raises:
            ValueError: nothing is in flight there.

        """
        its = self._servers.get(server)
        if its is None or its.in_flight == 0:
            raise ValueError(f"no attempt is in flight on {server}; `began` comes before `ended`")
        if verdict is Verdict.REFUSED:
            self._refused(server, its, seconds, now, retry_after)
        elif its.growth is not None:
            if verdict is Verdict.UNREACHABLE:
                its.growth.unreachable(now - seconds)
            else:
                its.growth.ended(seconds, now, its.in_flight, ok=verdict is Verdict.OK)
        its.in_flight -= 1
        self._in_flight -= 1

    def withdrawn(self, server: str, began: float = inf) -> None:
        """Count an attempt out that says nothing of its server: it was sent at `began` and cut, or never sent."""
        its = self._servers[server]
        if its.growth is not None:
            its.growth.withdrawn(began)
        its.in_flight -= 1
        self._in_flight -= 1

    def heard(self, queues: Queues, now: float) -> None:
        """Take down a sample of the model servers' queues."""
        self._signals.heard(queues, now)

    def tick(self, now: float, lag: float = 0.0) -> None:
        """Let every ceiling move; called every second or more often. `lag` of the event loop in seconds, p99."""
        advice = self._signals.advice(lag, now)
        for server, its in self._servers.items():
            if its.growth is None:
                continue
            if not its.is_told:
                self._moved(server, its, now, "start")
            if advice is Advice.SHRINK:
                why = self._signals.why if its.growth.shrink(now, its.in_flight) else None
            else:
                why = its.growth.tick(now, its.in_flight, may_grow=advice is Advice.GROW)
            if why is not None:
                self._moved(server, its, now, why)

    def change(self, hard: int | None, now: float, *, auto: bool) -> None:
        """Put another hard ceiling in place of the one there was; what is in flight above it runs to its end."""
        self._auto = auto
        self._bound(hard)
        for its in self._servers.values():
            self._rebound(its)
        self._say(ConcurrencyChanged(self.limit or self._cap, "asked for", now))

    def room_at(self, now: float) -> float | None:
        """Return when the first server that is held off takes requests again; None when none is."""
        return min((its.held_until for its in self._servers.values() if its.held_until > now), default=None)

    def held(self, now: float) -> tuple[tuple[str, float, int], ...]:
        """Return each server that is held off: its name, until when, and how many attempts are in flight there."""
        return tuple(
            (server, its.held_until, its.in_flight) for server, its in self._servers.items() if its.held_until > now
        )

    @property
    def in_flight(self) -> int:
        """Attempts that began and did not end."""
        return self._in_flight

    @property
    def limit(self) -> int | None:
        """How many rollouts may be in flight, in all; None for any number."""
        if not self._auto:
            return None if self._cap == _UNLIMITED else self._cap
        if not self._servers:
            return max(self._floor, min(self._start, self._cap))
        return min(self._cap, sum(its.limit for its in self._servers.values()))

    def limit_of(self, server: str) -> int | None:
        """How many rollouts may be in flight on `server`; None for any number."""
        its = self._servers.get(server) or self._meet(server)
        return None if its.limit == _UNLIMITED else its.limit

    @property
    def history(self) -> tuple[ConcurrencyChanged, ...]:
        """The changes of the run in order, the first 32 and the last 224 of them."""
        return (*self._oldest, *self._newest)

    def _bound(self, hard: int | None) -> None:
        if hard is not None and hard < 1:
            raise ValueError(f"{hard} rollouts at a time is no concurrency; give 1 or more")
        self._cap = hard if hard is not None else self._most if self._auto else _UNLIMITED
        self._floor = min(self._wanted_floor, self._cap)

    def _meet(self, server: str) -> _Server:
        growth = Growth(self._start, self._floor, self._cap) if self._auto else None
        its = self._servers[server] = _Server(self._cap if growth is None else growth.limit, growth)
        return its

    def _rebound(self, its: _Server) -> None:
        if not self._auto:
            its.growth = None
        elif its.growth is None:
            its.growth = Growth(self._start, self._floor, self._cap)
        else:
            its.growth.bound(self._floor, self._cap, its.in_flight)
        its.limit = self._cap if its.growth is None else its.growth.limit

    def _refused(self, server: str, its: _Server, seconds: float, now: float, retry_after: float | None) -> None:
        pause = 0.0 if retry_after is None else min(retry_after, LONGEST_HOLD)
        if its.growth is not None:
            lowest = its.limit == its.growth.floor
            in_a_row = its.growth.refused(seconds, now, its.in_flight, pause)
            if its.growth.limit != its.limit:
                self._moved(server, its, now, "refused")
            if in_a_row > 0:
                its.pauses = its.pauses + 1 if lowest and in_a_row > 1 else 0
                if its.pauses and retry_after is None:
                    pause = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2.0 ** min(its.pauses - 1, 16))
        if pause > 0:
            its.held_until = max(its.held_until, now + pause)

    def _moved(self, server: str, its: _Server, now: float, why: str) -> None:
        if its.growth is not None:
            its.limit = its.growth.limit
        its.is_told = True
        self._say(ConcurrencyChanged(its.limit, why, now, server))

    def _say(self, change: ConcurrencyChanged) -> None:
        if len(self._oldest) < _OLDEST_KEPT:
            self._oldest.append(change)
        else:
            self._newest.append(change)
        self._told(change)
