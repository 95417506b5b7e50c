"""The owed rollouts, handed to lanes: in order, and without holding anything else up."""

import asyncio
import itertools
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rollbook.dispatch.budget import Spending
from rollbook.dispatch.ceilings import Ceilings, Verdict
from rollbook.dispatch.policy import Budget
from rollbook.dispatch.stop import Stop
from rollbook.dispatch.supply import Supply
from rollbook.testing.manual_clock import ManualClock
from rollbook.testing.scripted_transport import ScriptedTransport
from thoroughness import examples
from unit.dispatch.desk import to_servers
from unit.dispatch.lanes_of_a_supply import Servers, room
from unit.dispatch.pages import Pages, dispatcher, finished, rollouts, settled


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


# Room on each server.


async def test_a_rollout_of_a_full_server_is_passed_over_and_goes_first_once_there_is_room():
    servers = Servers(to_servers(*"aaabab"), 4, room(a=1, b=2), look_ahead=8)
    await settled()
    assert servers.handed == [0, 3, 5]
    await servers.end(3)
    assert servers.handed == [0, 3, 5]
    await servers.end(0)
    assert servers.handed == [0, 3, 5, 1]
    await servers.end(1)
    await servers.end_all()
    assert servers.handed == [0, 3, 5, 1, 2, 4]
    assert servers.left == []


@pytest.mark.parametrize("look_ahead", [1, 2, 3])
async def test_no_more_than_so_many_are_passed_over(look_ahead):
    servers = Servers(to_servers(*"aaaab"), 3, room(a=1, b=1), look_ahead=look_ahead)
    await settled()
    assert servers.handed == ([0, 4] if look_ahead > 3 else [0])
    assert servers.read == [*range(1 + look_ahead)]
    servers.stop.request("SIGTERM")
    await servers.end_all()
    assert servers.left == [1, 2, 3, 4]


async def test_rollouts_that_wait_for_room_in_all_go_in_the_order_of_the_plan_whatever_their_servers():
    servers = Servers(to_servers(*"ababab"), 3, Ceilings(1, auto=False), look_ahead=8)
    for n in range(6):
        await settled()
        assert servers.handed == [*range(n + 1)]
        await servers.end(n)
    await servers.end_all()


async def test_what_is_left_comes_in_the_order_of_the_plan_whatever_was_passed_over():
    servers = Servers(to_servers(*"abababab"), 3, Ceilings(1, auto=False), look_ahead=4)
    await settled()
    servers.stop.request("SIGTERM")
    await servers.end_all()
    assert servers.left == [1, 2, 3, 4, 5, 6, 7]


async def test_nothing_is_handed_out_while_the_run_is_paused_and_all_of_it_afterwards():
    servers = Servers(to_servers(*"aaaa"), 2, room(a=2))
    await settled()
    servers.supply.paused = True
    await servers.end(0, 1)
    assert servers.handed == [0, 1]
    servers.supply.paused = False
    servers.supply.has_changed()
    await servers.end_all()
    assert servers.handed == [0, 1, 2, 3]


async def test_a_run_that_is_paused_with_nothing_left_to_start_ends():
    servers = Servers(to_servers(*"aa"), 3, room(a=2))
    await settled()
    servers.supply.paused = True
    await servers.end_all()
    assert servers.handed == [0, 1]


@pytest.mark.parametrize("lanes", [1, 2])
async def test_a_run_that_is_paused_while_every_lane_is_busy_with_the_last_rollouts_ends(lanes):
    servers = Servers(to_servers(*"a" * lanes), lanes, room(a=2))
    await settled()
    servers.supply.paused = True
    await servers.end_all()
    assert servers.over == [*range(lanes)]


async def test_a_run_that_is_paused_while_its_plan_finds_nothing_for_a_while_ends_once_the_plan_does():
    servers = Servers([*to_servers("a"), None, None], 1, room(a=2))
    await settled()
    servers.supply.paused = True
    await servers.end_all()
    assert servers.over == [0]


async def test_a_budget_that_is_spent_while_the_run_is_paused_ends_admission():
    spending = Spending(Budget(10.0), 1000.0)
    servers = Servers(to_servers(*"a"), 1, room(a=1), spending=spending)
    servers.supply.paused = True
    await settled()
    servers.clock.advance(20.0)
    await settled()
    assert servers.stop.why == "dispatch budget exhausted"
    await servers.end_all()
    assert servers.left == [0]


async def test_nothing_is_sent_to_a_server_before_the_time_that_it_named():
    ceilings = Ceilings(10, auto=False)
    servers = Servers(to_servers(*"aab"), 1, ceilings, look_ahead=4)
    await settled()
    ceilings.began("a")
    ceilings.ended("a", 1.0, Verdict.REFUSED, servers.clock.monotonic(), 7.0)
    await servers.end(0)
    assert servers.handed == [0, 2]
    await servers.end(2)
    assert servers.clock.sleeps == [7.0]
    servers.clock.advance(6.9)
    await settled()
    assert servers.handed == [0, 2]
    servers.clock.advance(0.1)
    await settled()
    assert servers.handed == [0, 2, 1]
    await servers.end_all()


class Hasty(ManualClock):
    """A clock on which each look takes a second."""

    def monotonic(self):
        self.advance(1.0)
        return super().monotonic()


@pytest.mark.parametrize("spent_at", [*range(1, 9)])
async def test_a_budget_that_is_spent_between_two_looks_at_the_clock_is_seen(spent_at):
    clock, stop, ceilings = Hasty(), Stop(), Ceilings(1, auto=False)
    ceilings.began("a")
    spending = Spending(Budget(float(spent_at)), clock.monotonic())
    supply = Supply(to_servers("a"), stop, clock, ceilings, spending=spending)
    taking = asyncio.create_task(supply.take())
    await settled()
    clock.advance(1.0)
    await settled()
    clock.advance(10.0)
    await settled()
    assert taking.done()
    assert await taking is None
    assert stop.why == "dispatch budget exhausted"


@pytest.mark.parametrize("held_for", [*range(1, 9)])
async def test_a_hold_that_ends_between_two_looks_at_the_clock_is_seen(held_for):
    clock, ceilings = Hasty(), Ceilings(9, auto=False)
    supply = Supply(to_servers("a"), Stop(), clock, ceilings)
    ceilings.began("a")
    ceilings.ended("a", 1.0, Verdict.REFUSED, clock.monotonic(), float(held_for))
    taking = asyncio.create_task(supply.take())
    await settled()
    clock.advance(10.0)
    await settled()
    assert taking.done()
    assert (await taking).key.task == 0


# What was handed out and never ran.


async def test_what_was_handed_out_and_never_left_is_left_before_the_rest():
    supply = supply_of(rollouts(4))
    first, second, _ = [await supply.take() for _ in range(3)]
    supply.sent(second)
    assert [rollout.key.task for rollout in supply.left()] == [0, 2, 3]
    assert first.attempt == 0


@pytest.mark.parametrize(("never_ran", "left"), [(True, [0, 1]), (False, [1])])
async def test_what_waits_to_be_sent_again_is_left_if_nothing_of_it_ran(never_ran, left):
    stop = Stop()
    supply = supply_of(rollouts(2), stop)
    rollout = await supply.take()
    supply.sent(rollout)
    stop.drain("enough")
    with supply.again(rollout, never_ran=never_ran):
        assert not await supply.admitted(rollout.server, 60.0)
    assert [rollout.key.task for rollout in supply.left()] == left


async def test_a_retry_waits_for_room_as_well():
    servers = Servers(to_servers(*"aa"), 2, room(a=1), refused_once={0}, look_ahead=2)
    await settled()
    servers.ceilings.limits["a"] = 0
    await servers.end(0)
    assert (servers.handed, servers.again) == ([0], [])
    servers.ceilings.limits["a"] = 2
    servers.supply.has_changed()
    await servers.end_all()
    assert (servers.handed, servers.again) == ([0, 1], [0])


async def test_a_retry_that_waits_for_room_is_ended_by_a_stop_and_sends_nothing():
    servers = Servers(to_servers(*"a"), 1, room(a=1), refused_once={0})
    await settled()
    servers.supply.paused = True
    await servers.end(0)
    servers.stop.drain("asked for")
    await servers.end_all()
    assert servers.again == []
    assert servers.ceilings.in_flight == 0


async def test_a_lane_that_is_cancelled_while_it_waits_for_room_loses_nothing_and_another_takes_its_place():
    servers = Servers(to_servers(*"aaab"), 3, room(a=1, b=0), look_ahead=3)
    await settled()
    assert servers.handed == [0]
    waiting = [lane for lane in servers.lanes if not lane.done()][1]
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    servers.lanes.remove(waiting)
    await servers.end(0)
    assert servers.handed == [0, 1]
    servers.ceilings.limits["b"] = 1
    await servers.end_all()
    assert sorted(servers.handed) == [0, 1, 2, 3]


# No wake-up is lost.


MOVES = ("end first", "end last", "limit 1", "limit 3", "pause", "resume", "drain", "time")


async def holds(moves, turns, plan="abaab", lanes=2, look_ahead=2):
    """Play `moves`, `turns` of the loop after each, then give everything room: the run ends, and nothing is lost."""
    servers = Servers(to_servers(*plan), lanes, Ceilings(2, auto=False), look_ahead=look_ahead, refused_once={1, 2})
    for move in moves:
        for _ in range(turns):
            await asyncio.sleep(0)
        played(servers, move)
    servers.supply.paused = False
    servers.ceilings.change(100, servers.clock.monotonic(), auto=False)
    servers.supply.has_changed()
    await settled()
    servers.clock.advance(10.0)
    await servers.end_all()
    assert sorted([*servers.over, *servers.left]) == [*range(len(plan))]
    for server in set(plan):
        of_it = [task for task in servers.handed if plan[task] == server]
        assert of_it == sorted(of_it)
    if not servers.stop.closed.is_set():
        assert sorted(servers.handed) == [*range(len(plan))]
        assert sorted(servers.again) == [1, 2]


def played(servers, move):
    supply, now = servers.supply, servers.clock.monotonic()
    if move.startswith("end") and servers.out:
        [*servers.out.values()][0 if move == "end first" else -1].set()
    elif move.startswith("limit"):
        servers.ceilings.change(int(move[-1]), now, auto=False)
        supply.has_changed()
    elif move == "pause":
        supply.paused = True
    elif move == "resume":
        supply.paused = False
        supply.has_changed()
    elif move == "drain":
        servers.stop.drain("asked for")
    elif move == "time":
        servers.ceilings.began("a")
        servers.ceilings.ended("a", 1.0, Verdict.REFUSED, now, 5.0)
        servers.clock.advance(1.0)


@pytest.mark.parametrize("turns", [0, 1, 2, 5, 12])
async def test_whatever_three_things_happen_in_whatever_order_the_run_ends_and_loses_nothing(turns):
    for moves in itertools.product(MOVES, repeat=3):
        await holds(moves, turns)


@settings(max_examples=examples(60), deadline=None)
@given(
    moves=st.lists(st.sampled_from(MOVES), min_size=4, max_size=16),
    turns=st.integers(0, 12),
    plan=st.text("abc", min_size=3, max_size=9),
    lanes=st.integers(1, 4),
    look_ahead=st.integers(1, 4),
)
def test_a_longer_story_loses_nothing_either(moves, turns, plan, lanes, look_ahead):
    asyncio.run(holds(moves, turns, plan, lanes, look_ahead))
