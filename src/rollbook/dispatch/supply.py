"""The owed rollouts, handed to whichever lane is free, as far as there is room for them.

Rules:
* Rollouts are handed out in the order in which they come, and none once nothing more is to be sent. One whose server
  has no room is passed over, and goes first once it has; only so many are passed over.
* Looking for the next one holds nothing up: where an iterator yields None it has found none for a while, and whatever
  else the process does has its turn. One lane looks at a time.
* A lane that is cancelled while it looks takes no rollout with it. What was handed out and never ran is left, like what
  was never handed out, whatever ended its lane.
* A budget that is used up ends admission for all that is left, and whoever looks on is told.
* With `whole_tasks` the plan is gone through strictly in order, and a task has begun once its first rollout was handed
  out. Its others wait for it on their server: a budget, a drain or a pause that a drain follows ends admission between
  two tasks, and only a stop ends it within one. Nothing is handed out while one of them waits to be sent again: its
  place is kept for it, whatever the ceiling has become.

Source: collection.md §3.1, §3.4, §3.5.
"""

import asyncio
import math
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from heapq import merge
from itertools import count
from typing import Final

from rollbook.clock import Clock
from rollbook.dispatch.budget import Spending
from rollbook.dispatch.ceilings import Ceilings
from rollbook.dispatch.stop import Stop
from rollbook.dispatch.waiting import first_of
from rollbook.records.event import Observe, RunNoted, observe_nothing
from rollbook.records.identity import RolloutKey
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
        self._look_ahead = 1 if whole_tasks else look_ahead
        self._whole_tasks = whole_tasks
        self._spending = spending
        self._observe = observe
        self._over = stop.asked if whole_tasks else stop.closed
        self._task: int | None = None
        self._in_hand: dict[RolloutKey, Rollout] = {}
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
            while self._goes_on(now := self._clock.monotonic()):
                rollout = self._again_in_turn(now) or self._next_in_plan(now)
                if rollout is not None:
                    return self._handed_out(rollout)
                if not self._may_come():
                    return None
                await (self._wait(now) if self._is_full() else self._clock.sleep(0))
        return None

    def may_leave(self) -> bool:
        """Whether a rollout that was handed out may be sent now."""
        refusal = self._refusal(self._clock.monotonic())
        if refusal is not None and not self._whole_tasks:
            self._drain(refusal)
        return not self._over.is_set()

    def sent(self, rollout: Rollout) -> None:
        """Note that an attempt of `rollout` is about to leave."""
        self._in_hand.pop(rollout.key, None)

    @contextmanager
    def again(self, rollout: Rollout, *, never_ran: bool) -> Iterator[None]:
        """Keep the place of `rollout`, whose attempt is over, until another one was admitted or is none to come."""
        if never_ran:
            self._in_hand[rollout.key] = rollout
        self._retrying += 1
        try:
            yield
        finally:
            self._retrying -= 1
            self.has_changed()

    async def admitted(self, server: str, after: float) -> bool:
        """Wait `after` seconds, and until another attempt may be sent to `server`; False when none is any more."""
        await self._put_off(after)
        while self._goes_on(now := self._clock.monotonic()):
            if not self._is_paused() and self._has_room_again(server, now):
                self._ceilings.began(server)
                return True
            await self._wait(now)
        return False

    async def _put_off(self, seconds: float) -> None:
        """Wait `seconds`, or until nothing is sent any more: a budget that is spent meanwhile ends admission."""
        now = self._clock.monotonic()
        while seconds > 0 and self._goes_on(now):
            spent = self._until_spent(now)
            await first_of(self._over.wait(), self._clock.sleep(min(seconds, spent)))
            before, now = now, self._clock.monotonic()
            seconds = 0.0 if seconds <= spent else seconds - (now - before)

    def _until_spent(self, now: float) -> float:
        """Return the seconds until the budget ends admission for all that is left; infinity where it will not."""
        if self._spending is None or self._whole_tasks or self._spending.deadline <= now:
            return math.inf
        return self._spending.deadline - now

    def left(self) -> Iterator[Rollout | None]:
        """Yield what nothing ran of, once nothing is handed out any more."""
        yield from self._in_hand.values()
        for _, rollout in merge(*self._passed_over.values()):
            yield rollout
        yield from self._owed

    def _handed_out(self, rollout: Rollout) -> Rollout:
        self._ceilings.began(rollout.server)
        self._in_hand[rollout.key] = rollout
        self._task = rollout.key.task
        return rollout

    def _goes_on(self, now: float) -> bool:
        """Whether admission goes on; a budget that is used up ends it where it keeps something from starting."""
        refusal = self._refusal(now)
        if refusal is not None and self._has_more():
            self._drain(refusal)
        return not self._over.is_set()

    def _refusal(self, now: float) -> str | None:
        """Return why the budget lets nothing start any more, where nobody was told so yet."""
        return None if self._spending is None or self._stop.closed.is_set() else self._spending.refusal(now)

    def _drain(self, refusal: str) -> None:
        self._stop.drain(refusal)
        self._observe(RunNoted(f"{refusal}: nothing further is started; what is in flight runs to its end"))

    def _has_more(self) -> bool:
        """Whether anything is left that a refusal would keep from starting; what is found for that is kept."""
        while not self._is_read and not self._passed_over:
            rollout = next(self._owed, _NOTHING)
            if rollout is _NOTHING:
                self._is_read = True
            elif isinstance(rollout, Rollout):
                self._pass_over(rollout)
        if self._whole_tasks:
            return bool(self._passed_over) and not self._has_begun_one()
        return bool(self._passed_over) or self._retrying > 0

    def _may_come(self) -> bool:
        """Whether another rollout may be handed out, now or later."""
        if not self._passed_over:
            return not self._is_read
        return not self._stop.closed.is_set() or self._has_begun_one()

    def _has_begun_one(self) -> bool:
        """Whether the task of a rollout that was passed over has begun."""
        return any(self._has_begun(waiting[0][1]) for waiting in self._passed_over.values())

    def _has_begun(self, rollout: Rollout) -> bool:
        return self._whole_tasks and rollout.key.task == self._task

    def _again_in_turn(self, now: float) -> Rollout | None:
        """Return the first of those that were passed over and have room now."""
        have_room = [waiting for waiting in self._passed_over.values() if self._has_room(waiting[0][1], now)]
        if not have_room:
            return None
        first = min(have_room, key=lambda waiting: waiting[0][0])
        _, rollout = first.popleft()
        if not first:
            del self._passed_over[rollout.server]
        return rollout

    def _next_in_plan(self, now: float) -> Rollout | None:
        """Return the next rollout of the plan that has room, or None when the plan has none for a while."""
        while not self._is_full():
            try:
                rollout = next(self._owed)
            except StopIteration:
                self._is_read = True
                break
            if rollout is None or (rollout.server not in self._passed_over and self._has_room(rollout, now)):
                return rollout
            self._pass_over(rollout)
        return None

    def _pass_over(self, rollout: Rollout) -> None:
        self._passed_over.setdefault(rollout.server, deque()).append((next(self._place), rollout))

    def _is_full(self) -> bool:
        """Whether looking further into the plan is of no use now."""
        return self._is_read or sum(map(len, self._passed_over.values())) >= self._look_ahead

    def _is_paused(self) -> bool:
        """Whether sending waits for somebody; a drain waits for nobody."""
        return self.paused and not self._stop.closed.is_set()

    def _has_room(self, rollout: Rollout, now: float) -> bool:
        """Whether `rollout`, which was not handed out yet, may be now."""
        if self._is_paused() or (self._whole_tasks and self._retrying > 0):
            return False
        if self._stop.closed.is_set() and not self._has_begun(rollout):
            return False
        return self._ceilings.has_room(rollout.server, now)

    def _has_room_again(self, server: str, now: float) -> bool:
        """Whether another attempt may be sent to `server`; with whole tasks the place of the one before was kept."""
        return not self._ceilings.is_held(server, now) if self._whole_tasks else self._ceilings.has_room(server, now)

    async def _wait(self, looked_at: float) -> None:
        """Return when something may have changed since `looked_at`: an ending, a limit, a stop, or a time that came."""
        is_closed = self._stop.closed.is_set()
        times = [self._ceilings.room_at(looked_at)]
        if self._spending is not None and not is_closed and self._spending.deadline > looked_at:
            times.append(self._spending.deadline)
        now = self._clock.monotonic()
        sleeps = [self._clock.sleep(max(0.0, at - now)) for at in times if at is not None]
        closing = self._over if is_closed else self._stop.closed
        self._waiting += 1
        try:
            await first_of(self._changed.wait(), closing.wait(), *sleeps)
        finally:
            self._waiting -= 1
