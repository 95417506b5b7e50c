"""Tasks whose repeats wait for each other on their server: sent to the end once they have begun."""

import asyncio
from collections import Counter, defaultdict

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rollbook.dispatch.budget import Spending
from rollbook.dispatch.ceilings import Ceilings, Verdict
from rollbook.dispatch.dispatcher import Dispatched
from rollbook.dispatch.policy import Budget
from rollbook.dispatch.stop import Stop
from rollbook.dispatch.supply import Supply
from rollbook.records.identity import RolloutKey
from rollbook.records.task import Rollout
from rollbook.testing.manual_clock import ManualClock
from thoroughness import examples
from unit.dispatch.desk import Run
from unit.dispatch.pages import BUSY, settled


def grouped(tasks, size=4, server=lambda _n: "env"):
    """Yield `tasks` tasks of `size` rollouts, numbered as they come."""
    for n in range(tasks * size):
        yield Rollout(RolloutKey(*divmod(n, size)), msgspec.json.encode({"n": n}), server(n))


async def begun(tasks=3, lanes=6, **policy):
    """Return a run of tasks of four: without more said the first is out whole, and half of the second."""
    run = Run(grouped(tasks), **{"lanes": lanes, "whole_tasks": True, "retry_for": 600.0, "grace": 20.0} | policy)
    await settled()
    return run


async def answer(run, *tasks, reply=None):
    for call in list(run.desk.out):
        if call.task in tasks:
            call.answer() if reply is None else call.answer(reply)
    await settled()


def left(run):
    return [(rollout.key.task, rollout.key.rollout) for rollout in run.dispatcher.supply.left()]


async def test_a_repeat_that_was_refused_goes_again_though_the_ceiling_has_halved_since():
    run = await begun(tasks=4, ceilings=Ceilings(None, auto=True, floor=4))
    await answer(run, 3, 7, 11, 15, reply=BUSY)
    assert run.dispatcher.ceilings.limit == 8
    await run.passes(0.5)
    assert run.desk.tasks[16:] == [3, 7, 11, 15]
    await answer(run, *range(16))
    assert await run.ends() == Dispatched(None, 0)


async def test_a_repeat_that_was_refused_leaves_a_server_alone_that_asked_for_it():
    run = await begun(tasks=1, ceilings=Ceilings(None, auto=True, floor=4))
    run.dispatcher.ceilings.began("env")
    run.dispatcher.ceilings.ended("env", 1.0, Verdict.REFUSED, run.clock.monotonic(), 7.0)
    await answer(run, 3, reply=BUSY)
    await run.passes(6.9)
    assert run.desk.tasks == [0, 1, 2, 3]
    await run.passes(0.1)
    assert run.desk.tasks == [0, 1, 2, 3, 3]
    await answer(run, *range(4))
    await run.ends()


async def test_the_place_of_a_repeat_that_was_refused_is_kept_while_its_refusal_is_written():
    run = await begun(lanes=5, ceilings=Ceilings(4, auto=False))
    writing = run.pages.hold("refused")
    await answer(run, 3, reply=BUSY)
    assert run.desk.tasks == [0, 1, 2, 3]
    writing.set()
    await settled()
    await run.passes(0.5)
    assert run.desk.tasks == [0, 1, 2, 3, 3]
    for task in range(3):
        await answer(run, *range(task * 4, task * 4 + 4))
    assert await run.ends() == Dispatched(None, 0)


async def test_repeats_that_were_refused_go_again_whatever_lower_limit_was_set_meanwhile():
    run = await begun(tasks=2, lanes=8)
    await answer(run, 3, 7, reply=BUSY)
    run.dispatcher.ceilings.change(4, run.clock.monotonic(), auto=False)
    await run.passes(0.5)
    assert run.desk.tasks[8:] == [3, 7]
    await answer(run, *range(8))
    await run.ends()


async def test_nothing_new_goes_before_a_repeat_that_was_refused():
    run = await begun(tasks=2, lanes=8, ceilings=Ceilings(5, auto=False))
    await answer(run, 3, reply=BUSY)
    await answer(run, 4)
    assert run.desk.tasks == [0, 1, 2, 3, 4]
    await run.passes(0.5)
    assert run.desk.tasks == [0, 1, 2, 3, 4, 3, 5]
    await answer(run, *range(8))
    await answer(run, *range(8))
    await run.ends()


async def test_no_task_begins_before_the_one_before_it_is_out_whatever_room_its_server_has():
    plan, ceilings = grouped(2, 2, lambda n: "aabb"[n]), Ceilings(9, auto=False)
    ceilings.began("a")
    ceilings.ended("a", 1.0, Verdict.REFUSED, ManualClock().monotonic(), 7.0)
    run = Run(plan, ceilings, lanes=4, whole_tasks=True, look_ahead=3)
    await settled()
    assert run.desk.tasks == []
    await run.passes(7.0)
    assert run.desk.tasks == [0, 1, 2, 3]
    await answer(run, *range(4))
    await run.ends()


def drained(run):
    run.stop.drain("enough")


def paused_and_drained(run):
    run.dispatcher.supply.paused = True
    run.dispatcher.supply.has_changed()
    run.stop.drain("enough")


@pytest.mark.parametrize("drain", [drained, paused_and_drained])
async def test_a_drain_within_a_task_lets_it_be_sent_to_its_end_and_no_other(drain):
    run = await begun()
    assert run.desk.tasks == [*range(6)]
    drain(run)
    await settled()
    await answer(run, *range(4))
    assert run.desk.tasks == [*range(8)]
    await answer(run, *range(4, 8))
    assert await run.ends() == Dispatched("enough", 0)
    assert left(run) == [(2, 0), (2, 1), (2, 2), (2, 3)]


async def test_a_budget_that_ends_within_a_task_lets_it_be_sent_to_its_end_and_no_other():
    run = await begun(budget=Budget(10.0))
    await run.passes(10.0)
    await answer(run, *range(4))
    assert run.desk.tasks == [*range(8)]
    await answer(run, *range(4, 8))
    assert await run.ends() == Dispatched("dispatch budget exhausted", 0)
    assert left(run) == [(2, 0), (2, 1), (2, 2), (2, 3)]


async def test_a_budget_that_ends_within_the_last_task_stops_nothing():
    run = await begun(tasks=2, budget=Budget(10.0))
    await run.passes(10.0)
    await answer(run, *range(4))
    await answer(run, *range(4, 8))
    assert await run.ends() == Dispatched(None, 0)
    assert left(run) == []


async def test_a_budget_of_nothing_begins_no_task():
    run = await begun(budget=Budget(0.0))
    assert await run.ends() == Dispatched("dispatch budget exhausted", 0)
    assert run.desk.calls == []


async def test_a_repeat_that_is_refused_while_the_run_drains_goes_again_and_the_loop_rests_meanwhile():
    run = await begun(lanes=4, budget=Budget(10.0))
    await run.passes(10.0)
    await answer(run, 3, reply=BUSY)
    run.stop.drain("enough")
    await run.clock.asleep()
    assert run.clock.sleeps == [0.5]
    await run.passes(0.5)
    assert run.desk.tasks == [0, 1, 2, 3, 3]
    await answer(run, *range(4))
    assert (await run.ends()).cut == 0
    assert sorted(run.pages.written) == [(0, 0), (0, 0), (0, 0), (0, 1)]


class Looked(ManualClock):
    """A clock that counts who looks at it."""

    looks = 0

    def monotonic(self):
        self.looks += 1
        return super().monotonic()


@pytest.mark.parametrize("drains", [True, False])
async def test_who_waits_to_go_on_with_a_task_after_the_budget_ended_rests_until_something_changes(drains):
    clock, stop, ceilings = Looked(), Stop(), Ceilings(2, auto=False)
    spending = Spending(Budget(10.0), clock.monotonic())
    supply = Supply(grouped(1), stop, clock, ceilings, spending=spending, whole_tasks=True)
    for _ in range(2):
        await supply.take()
    taking = asyncio.create_task(supply.take())
    await settled()
    clock.advance(10.0)
    if drains:
        stop.drain("enough")
    await settled()
    looks = clock.looks
    await settled()
    assert clock.looks == looks
    ceilings.withdrawn("env")
    supply.has_changed()
    await settled()
    assert taking.done()
    assert (await taking).key == RolloutKey(0, 2)


@pytest.mark.parametrize("before", [drained, lambda _run: None])
async def test_a_stop_within_a_task_ends_it_there(before):
    run = await begun()
    before(run)
    await answer(run, 5, reply=BUSY)
    run.stop.request("SIGTERM")
    await answer(run, *range(4))
    assert run.desk.tasks == [*range(6)]
    await run.clock.asleep()
    await run.passes(20.0)
    assert (await run.ends()).cut == 1
    assert left(run) == [(1, 1), (1, 2), (1, 3), (2, 0), (2, 1), (2, 2), (2, 3)]


# Whatever happens, whoever waits for its peers gets them.


class Jury:
    """Lanes over one supply whose rollouts end only with all their peers, but for one refusal of some of them."""

    def __init__(self, tasks, size, ceilings, *, lanes, refused, server):
        self.size, self.clock, self.stop, self.ceilings = size, ManualClock(), Stop(), ceilings
        self.supply = Supply(
            grouped(tasks, size, server), self.stop, self.clock, ceilings, look_ahead=3, whole_tasks=True
        )
        self.out, self.refused = defaultdict(dict), set(refused)
        self.begun, self.over = set(), []
        self.lanes = [asyncio.create_task(self._lane()) for _ in range(lanes)]

    async def _lane(self):
        while (rollout := await self.supply.take()) is not None:
            self.begun.add(rollout.key.task)
            while not await self._carried(rollout):
                with self.supply.again(rollout, never_ran=True):
                    await asyncio.sleep(0)
                    if not await self.supply.admitted(rollout.server, 0.5):
                        break
            else:
                self.over.append(rollout.key.task)

    async def _carried(self, rollout):
        key = rollout.key
        self.supply.sent(rollout)
        self.out[key.task][key.rollout] = answered = asyncio.get_running_loop().create_future()
        verdict = await answered
        self.ceilings.ended(rollout.server, 1.0, verdict, self.clock.monotonic())
        self.supply.has_changed()
        return verdict is Verdict.OK

    def refuse(self, which=slice(None)):
        due = [(t, r) for t, members in self.out.items() for r in members if t * self.size + r in self.refused]
        for task, rollout in due[which]:
            self.refused.remove(task * self.size + rollout)
            self.out[task].pop(rollout).set_result(Verdict.REFUSED)

    def end(self):
        for members in self.out.values():
            if len(members) == self.size:
                for answered in members.values():
                    answered.set_result(Verdict.OK)
                members.clear()

    async def play(self, moves, turns):
        for move in moves:
            for _ in range(turns):
                await asyncio.sleep(0)
            self.played(move)
        self.supply.paused = False
        self.supply.has_changed()
        for _ in range(200):
            await settled()
            self.refuse()
            self.end()
            self.clock.advance(1.0)
            if all(lane.done() for lane in self.lanes):
                return
        raise AssertionError(f"somebody waits for ever: {dict(self.out)}")

    def played(self, move):
        now = self.clock.monotonic()
        if move == "refuse":
            self.refuse(slice(1))
        elif move == "end":
            self.end()
        elif move == "drain":
            self.stop.drain("enough")
        elif move == "limit":
            self.ceilings.change(self.size, now, auto=False)
            self.supply.has_changed()
        elif move == "time":
            self.clock.advance(1.0)
        else:
            self.supply.paused = move == "pause"
            self.supply.has_changed()


@settings(max_examples=examples(150), deadline=None)
@given(
    moves=st.lists(st.sampled_from(["refuse", "end", "drain", "limit", "pause", "resume", "time"]), max_size=12),
    turns=st.integers(0, 6),
    size=st.integers(1, 4),
    extra=st.integers(0, 5),
    auto=st.booleans(),
    servers=st.integers(1, 2),
    refused=st.sets(st.integers(0, 15), max_size=8),
)
def test_whatever_happens_a_task_that_has_begun_ends_and_one_that_has_not_is_left_whole(
    *, moves, turns, size, extra, auto, servers, refused
):
    async def story():
        hard = size + extra
        ceilings = Ceilings(hard, auto=auto, start=size + 1, floor=size)
        jury = Jury(4, size, ceilings, lanes=hard, refused=refused, server=lambda n: "ab"[n % servers])
        await jury.play(moves, turns)
        assert Counter(jury.over) == dict.fromkeys(jury.begun, size)
        rest = Counter(rollout.key.task for rollout in jury.supply.left())
        assert rest == dict.fromkeys(set(range(4)) - jury.begun, size)
        assert ceilings.in_flight == 0
        assert not rest or "drain" in moves

    asyncio.run(story())
