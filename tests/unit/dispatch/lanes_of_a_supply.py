"""Lanes over one supply, without a dispatcher: who was handed what, and what is left."""

import asyncio
from collections import Counter
from math import inf

from rollbook.dispatch.ceilings import Ceilings
from rollbook.dispatch.stop import Stop
from rollbook.dispatch.supply import Supply
from rollbook.testing.manual_clock import ManualClock
from unit.dispatch.pages import settled


class Servers:
    """Lanes that take from one supply, and hold what they took until it is ended."""

    def __init__(self, owed, lanes, ceilings, *, look_ahead=1, refused_once=(), **options):
        self.clock, self.stop, self.ceilings = ManualClock(), Stop(), ceilings
        self.read, self.handed, self.out, self.again, self.over = [], [], {}, [], []
        self._refused_once = set(refused_once)
        counted = (rollout and (self.read.append(rollout.key.task) or rollout) for rollout in owed)
        self.supply = Supply(counted, self.stop, self.clock, ceilings, look_ahead=look_ahead, **options)
        self.look_ahead = look_ahead
        self.lanes = [asyncio.create_task(self._lane()) for _ in range(lanes)]

    async def _lane(self):
        while (rollout := await self.supply.take()) is not None:
            task = rollout.key.task
            self.handed.append(task)
            assert len(self.read) - len(self.handed) <= self.look_ahead
            await self._carried(rollout)
            if task in self._refused_once:
                with self.supply.again(rollout, never_ran=True):
                    if not await self.supply.admitted(rollout.server, 0.0):
                        continue
                self.again.append(task)
                await self._carried(rollout)
            self.over.append(task)

    async def _carried(self, rollout):
        self.supply.sent(rollout)
        limit = self.ceilings.limit
        assert limit is None or self.ceilings.in_flight <= limit
        self.out[rollout.key.task] = ended = asyncio.Event()
        await ended.wait()
        del self.out[rollout.key.task]
        self.ceilings.withdrawn(rollout.server)
        self.supply.has_changed()

    async def end(self, *tasks):
        for task in tasks:
            self.out[task].set()
        await settled()

    async def end_all(self):
        """End what is out until nothing comes any more; whatever still waits then waits for ever."""
        await settled()
        while self.out:
            await self.end(*self.out)
        assert all(lane.done() for lane in self.lanes), "a lane waits for something that does not come"
        for lane in self.lanes:
            lane.result()

    @property
    def left(self):
        return [rollout.key.task for rollout in self.supply.left() if rollout is not None]


class Room(Ceilings):
    """Ceilings under which each named server takes as many as is said here."""

    def __init__(self, limits):
        super().__init__(100, auto=False)
        self.limits, self.on = limits, Counter()

    def has_room(self, server, now):
        return super().has_room(server, now) and self.on[server] < self.limits[server]

    def began(self, server):
        super().began(server)
        self.on[server] += 1

    def withdrawn(self, server, began=inf):
        super().withdrawn(server, began)
        self.on[server] -= 1


def room(**limits):
    return Room(limits)
