"""The owed rollouts, handed to lanes: in order, and without holding anything else up."""

import asyncio
from itertools import pairwise

from rollbook.dispatch.ceilings import Ceilings
from rollbook.dispatch.stop import Stop
from rollbook.dispatch.supply import Supply
from rollbook.testing.manual_clock import ManualClock
from rollbook.testing.scripted_transport import ScriptedTransport
from unit.dispatch.pages import Pages, dispatcher, finished, rollouts


def supply_of(owed, stop=None):
    return Supply(owed, stop or Stop(), ManualClock(), Ceilings(100, auto=False))


def behind(nothing_found, count, looked=None):
    """Yield rollouts, each after so many times that none was found."""
    for rollout in rollouts(count):
        for _ in range(nothing_found):
            if looked is not None:
                looked.append(rollout.key.task)
            yield None
        yield rollout


async def test_whatever_else_the_process_does_has_its_turn_while_a_lane_looks_for_the_next_rollout():
    looked, turns = [], []

    async def something_else():
        while True:
            turns.append(len(looked))
            await asyncio.sleep(0)

    other = asyncio.create_task(something_else())
    supply = supply_of(behind(100, 1, looked))
    lanes = [asyncio.create_task(supply.take()) for _ in range(8)]
    taken = await asyncio.gather(*lanes)
    other.cancel()
    assert [rollout.key.task for rollout in taken if rollout is not None] == [0]
    assert max(after - before for before, after in pairwise(turns)) == 1


async def test_lanes_take_rollouts_in_the_order_of_the_plan_whatever_lies_between_them():
    script, pages = ScriptedTransport(), Pages()
    await finished(dispatcher(script, pages, lanes=3).run(behind(2, 20)))
    assert [told[1] for told in pages.told("reserve")] == list(range(20))


async def test_a_stop_ends_the_search_for_a_rollout():
    stop, looked = Stop(), []
    taking = asyncio.create_task(supply_of(behind(10**9, 1, looked), stop).take())
    await asyncio.sleep(0)
    stop.request("SIGTERM", 143)
    assert await taking is None
    assert len(looked) == 1


async def test_a_lane_that_is_cancelled_while_it_looks_takes_no_rollout_with_it():
    owed = behind(1, 3)
    supply = supply_of(owed)
    looking = asyncio.create_task(supply.take())
    await asyncio.sleep(0)
    looking.cancel()
    await asyncio.gather(looking, return_exceptions=True)
    assert [rollout.key.task for rollout in owed if rollout is not None] == [0, 1, 2]
