"""A clock that moves when it is told to."""

import asyncio

from rollbook.clock import Clock
from rollbook.testing.manual_clock import ManualClock


async def test_it_stands_still_until_it_is_advanced():
    clock: Clock = ManualClock(at=5.0)
    assert (clock.monotonic(), clock.now()) == (5.0, 5.0)
    clock.advance(2.5)
    assert (clock.monotonic(), clock.now()) == (7.5, 7.5)


async def test_a_sleeper_wakes_when_its_time_has_come_and_not_before():
    clock, woken = ManualClock(), []

    async def sleep(seconds):
        await clock.sleep(seconds)
        woken.append(seconds)

    sleepers = [asyncio.create_task(sleep(seconds)) for seconds in (3.0, 1.0)]
    await clock.asleep(2)
    assert clock.sleeps == [1.0, 3.0]
    clock.advance(1.0)
    await sleepers[1]
    assert (woken, clock.sleeps) == ([1.0], [2.0])
    clock.advance(9.0)
    await sleepers[0]
    assert woken == [1.0, 3.0]


async def test_a_sleeper_that_was_cancelled_is_not_counted():
    clock = ManualClock()
    sleeper = asyncio.create_task(clock.sleep(1.0))
    await clock.asleep()
    sleeper.cancel()
    await asyncio.gather(sleeper, return_exceptions=True)
    assert clock.sleeps == []
    clock.advance(2.0)
