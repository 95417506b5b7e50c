"""The owed rollouts, handed to whichever lane is free, as far as there is room for them.

Rules:
* Rollouts are handed out in the order in which they come, and none once nothing more is to be sent. One whose server
  has no room is passed over, and goes first once it has; only so many are passed over.
* Looking for the next one holds nothing up: where an iterator yields None it has found none for a while, and whatever
  else the process does has its turn. One lane looks at a time.
* A lane that is cancelled while it looks takes no rollout with it.
* A budget that is used up ends admission for all that is left, and whoever looks on is told.

Source: collection.md §3.1, §3.4, §3.5.
"""

import asyncio
from collections import deque
from collections.abc import Iterator
from heapq import merge
from itertools import count
from typing import Final

from rollbook.clock import Clock
from rollbook.dispatch.budget import Spending
from rollbook.dispatch.ceilings import Ceilings
from rollbook.dispatch.stop import Stop
from rollbook.dispatch.waiting import first_of
from rollbook.records.event import Observe, RunNoted, observe_nothing
from rollbook.records.task import Rollout

_NOTHING: Final = object()


class Supply:
    """What the lanes of one run share. At most `look_ahead` rollouts (one or more) are passed over."""

    def __init__(
        self,
        owed: Iterator[Rollout | None],
        stop: Stop,
        clock: Clock,
        ceilings: Ceilings,
        *,
        spending: Spending | None = None,
        look_ahead: int = 1,
        whole_tasks: bool = False,
        observe: Observe = observe_nothing,
    ) -> None:
        self._owed = owed
        self._stop = stop
        self._clock = clock
        self._ceilings = ceilings
        self._look_ahead = look_ahead
        self._whole_tasks = whole_tasks
        self._spending = spending
        self._observe = observe
        self._looking = asyncio.Lock()
        self._changed = asyncio.Event()
        self._passed_over: dict[str, deque[tuple[int, Rollout]]] = {}
        self._place = count()
        self._is_read = False
        self._waiting = 0
        self._retrying = 0
        self.paused = False

    def has_changed(self) -> None:
        """Note that there may be room now where there was none."""
        if self._waiting:
            self._changed.set()
            self._changed = asyncio.Event()

    async def take(self) -> Rollout | None:
        """Return the next rollout, or None when there is none, or none is to be sent any more."""
        async with self._looking:
            while self._may_start():
                is_held = self.paused or (self._whole_tasks and self._retrying > 0)
                rollout = None if is_held else self._again_in_turn() or self._next_in_plan()
                if rollout is not None:
                    self._ceilings.began(rollout.server)
                    return rollout
                if self._is_read and not self._passed_over:
                    return None
                await (self._wait() if is_held or self._is_full() else self._clock.sleep(0))
        return None

    async def admitted(self, server: str, after: float) -> bool:
        """Wait `after` seconds, and until another attempt may be sent to `server`; False when none is any more."""
        self._retrying += 1
        try:
            if after > 0:
                await first_of(self._stop.closed.wait(), self._clock.sleep(after))
            while self._may_start():
                if not self.paused and self._has_room(server):
                    self._ceilings.began(server)
                    return True
                await self._wait()
        finally:
            self._retrying -= 1
            self.has_changed()
        return False

    def left(self) -> Iterator[Rollout | None]:
        """Yield what was not handed out, once nothing is handed out any more."""
        for _, rollout in merge(*self._passed_over.values()):
            yield rollout
        yield from self._owed

    def _may_start(self) -> bool:
        if self._spending is not None and not self._stop.closed.is_set():
            refusal = self._spending.refusal(self._clock.monotonic())
            if refusal is not None and self._has_more():
                self._stop.drain(refusal)
                self._observe(RunNoted(f"{refusal}: nothing further is started; what is in flight runs to its end"))
        return not self._stop.closed.is_set()

    def _has_more(self) -> bool:
        """Whether anything is left that a refusal would keep from starting; what is found for that is kept."""
        while not self._is_read and not self._passed_over:
            rollout = next(self._owed, _NOTHING)
            if rollout is _NOTHING:
                self._is_read = True
            elif isinstance(rollout, Rollout):
                self._pass_over(rollout)
        return bool(self._passed_over) or self._retrying > 0

    def _again_in_turn(self) -> Rollout | None:
        """Return the first of those that were passed over and have room now."""
        have_room = [waiting for server, waiting in self._passed_over.items() if self._has_room(server)]
        if not have_room:
            return None
        first = min(have_room, key=lambda waiting: waiting[0][0])
        _, rollout = first.popleft()
        if not first:
            del self._passed_over[rollout.server]
        return rollout

    def _next_in_plan(self) -> Rollout | None:
        """Return the next rollout of the plan that has room, or None when the plan has none for a while."""
        while not self._is_full():
            try:
                rollout = next(self._owed)
            except StopIteration:
                self._is_read = True
                break
            if rollout is None or (rollout.server not in self._passed_over and self._has_room(rollout.server)):
                return rollout
            self._pass_over(rollout)
        return None

    def _pass_over(self, rollout: Rollout) -> None:
        self._passed_over.setdefault(rollout.server, deque()).append((next(self._place), rollout))

    def _is_full(self) -> bool:
        """Whether looking further into the plan is of no use now."""
        return self._is_read or sum(map(len, self._passed_over.values())) >= self._look_ahead

    def _has_room(self, server: str) -> bool:
        return self._ceilings.has_room(server, self._clock.monotonic())

    async def _wait(self) -> None:
        """Return when something may have changed: an ending, a limit, a stop, or the time that a server asked for."""
        now = self._clock.monotonic()
        times = [self._ceilings.room_at(now), None if self._spending is None else self._spending.deadline]
        sleeps = [self._clock.sleep(max(0.0, at - now)) for at in times if at is not None]
        self._waiting += 1
        try:
            await first_of(self._changed.wait(), self._stop.closed.wait(), *sleeps)
        finally:
            self._waiting -= 1
