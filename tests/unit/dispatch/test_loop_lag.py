"""What is taken for the event loop's lag."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from rollbook.dispatch.loop_lag import LoopLag
from rollbook.testing.manual_clock import ManualClock


@asynccontextmanager
async def watching(clock):
    lag = LoopLag(clock)
    task = asyncio.create_task(lag.watch())
    yield lag
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def looks(clock, *late):
    for seconds in late:
        await clock.asleep()
        clock.advance(0.1 + seconds)
    await clock.asleep()


async def test_there_is_no_lag_before_the_first_look():
    assert LoopLag(ManualClock()).p99 == 0.0


@pytest.mark.parametrize(
    ("late", "p99"),
    [
        ([0.0] * 5, 0.0),
        ([0.0, 0.3, 0.0], 0.3),
        ([0.0] * 79 + [0.2] + [0.0] * 10, 0.2),
        ([0.0] * 90 + [0.02] + [0.3], 0.3),
    ],
)
async def test_the_lag_is_what_a_look_came_late(late, p99):
    clock = ManualClock()
    async with watching(clock) as lag:
        await looks(clock, *late)
        assert lag.p99 == pytest.approx(p99)


async def test_one_late_look_in_a_hundred_is_passed_over():
    clock = ManualClock()
    async with watching(clock) as lag:
        await looks(clock, *[0.0] * 60, 0.001, *[0.0] * 39)
        assert lag.p99 == pytest.approx(0.0, abs=1e-9)


async def test_lag_is_forgotten_after_ten_seconds():
    clock = ManualClock()
    async with watching(clock) as lag:
        await looks(clock, 5.0)
        assert lag.p99 == pytest.approx(5.0)
        await looks(clock, *[0.0] * 102)
        assert lag.p99 == pytest.approx(0.0)
