"""When rows start: in their order, under a limit, a caller's semaphore and a budget."""

import asyncio

import pytest

from rollbook.api.direct_call import DirectCall, Pacing
from rollbook.api.direct_errors import DirectCallError
from rollbook.api.direct_rollouts import Handover
from rollbook.api.direct_rows import direct_rows
from rollbook.dispatch.completion_budget import DispatchLatencyTracker
from rollbook.testing.manual_clock import ManualClock
from unit.api.direct_calls import LOST, Call, directory, reply, rows

EXHAUSTED = {
    "_ng_failure_class": "cancelled",
    "_ng_no_persist": True,
    "_ng_dispatch_drained": True,
    "error_message": "not dispatched: dispatch budget exhausted",
}


def tasks_of(call):
    return [sent.body["_ng_task_index"] for sent in call.transport.sent]


@pytest.mark.parametrize("limit", [None, 1, 2])
async def test_rows_start_in_the_order_given(limit):
    examples = rows(4)[::-1]
    call = Call(examples=examples, pacing=Pacing(max_resident_tasks=limit))
    await call.all()
    assert tasks_of(call) == [3, 2, 1, 0]
    assert call.transport.most_in_flight <= (limit or 4)


async def test_a_semaphore_of_the_callers_own_bounds_what_is_in_flight():
    semaphore = asyncio.Semaphore(2)
    call = Call(examples=rows(6), pacing=Pacing(semaphore))
    await call.all()
    assert call.transport.most_in_flight == 2
    assert not semaphore.locked()


async def test_v4_a_budget_of_nothing_starts_nothing_and_says_so():
    tracker = DispatchLatencyTracker()
    call = Call(examples=rows(2), pacing=Pacing(budget=0, tracker=tracker), route_failures=True)
    assert [result for _, result in await call.all()] == [EXHAUSTED, EXHAUSTED]
    assert (call.transport.sent, tracker.drained, tracker.count) == ([], 2, 0)


async def test_v4_a_rollout_that_would_not_end_in_time_is_not_started():
    call = Call(pacing=Pacing(budget=3, margin=10))
    said = "not dispatched: 3s left in dispatch budget, below the 10s drain margin"
    assert await call.only() == EXHAUSTED | {"error_message": said}
    assert list(EXHAUSTED) == ["_ng_failure_class", "_ng_no_persist", "_ng_dispatch_drained", "error_message"]


async def test_the_time_that_is_left_is_looked_at_once_the_semaphore_is_held():
    call = Call(examples=rows(2), pacing=Pacing(asyncio.Semaphore(1), budget=5))
    call.transport.hold()
    waiting = [asyncio.ensure_future(awaitable) for awaitable in call.results]
    await call.transport.reached(1)
    call.clock.advance(6)
    call.transport.release()
    assert [result for _, result in await asyncio.gather(*waiting)] == [{"reward": 1.0}, EXHAUSTED]
    assert tasks_of(call) == [0]


async def test_a_budget_counts_from_the_call_and_not_from_the_first_use():
    call = Call(pacing=Pacing(budget=5))
    call.clock.advance(5)
    assert await call.only() == EXHAUSTED


async def test_after_five_rollouts_their_upper_quartile_is_the_margin():
    tracker, clock = DispatchLatencyTracker(), ManualClock()
    call = Call(
        examples=rows(7),
        clock=clock,
        pacing=Pacing(asyncio.Semaphore(1), budget=11, max_resident_tasks=1, tracker=tracker),
    )
    call.transport.hold()
    results = []
    for number, awaitable in enumerate(call.results):
        waiting = asyncio.ensure_future(awaitable)
        if number < 5:
            await call.transport.reached(number + 1)
            clock.advance(2)
            call.transport.release()
            results.append(await waiting)
            call.transport.hold()
        else:
            results.append(await waiting)
    said = "not dispatched: 1s left in dispatch budget, below the 2s drain margin"
    assert [result.get("error_message") for _, result in results] == [None] * 5 + [said] * 2
    assert (tracker.count, tracker.quantile(0.75), tracker.drained) == (5, 2, 2)


class Timed:
    """Every request takes a second."""

    def __init__(self, clock):
        self.clock, self.began, self.running, self.most = clock, [], 0, 0

    async def send(self, *_request):
        self.began.append(self.clock.monotonic())
        self.running += 1
        self.most = max(self.most, self.running)
        await self.clock.sleep(1)
        self.running -= 1
        return reply()

    async def aclose(self):
        pass


@pytest.mark.parametrize("limit", [None, 4])
async def test_rc_54_no_rollout_starts_with_less_than_the_margin_left(limit):
    clock = ManualClock(0)
    wire = Timed(clock)
    pacing = Pacing(asyncio.Semaphore(2), limit, budget=5, margin=1.5)
    results = DirectCall(wire, clock, 0, pacing, Handover()).results(direct_rows(rows(20), directory()))
    waiting = [asyncio.ensure_future(awaitable) for awaitable in results]
    while not all(one.done() for one in waiting):
        for _ in range(100):
            await asyncio.sleep(0)
        clock.advance(0.5)
    told = [one.result()[1].get("_ng_dispatch_drained", False) for one in waiting]
    assert (max(wire.began), wire.most) == (3, 2)
    assert (len(wire.began), told.count(True)) == (8, 12)


async def test_a_tracker_takes_down_successes_alone():
    tracker = DispatchLatencyTracker()
    call = Call(
        reply(500),
        LOST,
        reply(),
        examples=rows(3),
        pacing=Pacing(max_resident_tasks=1, tracker=tracker),
        route_failures=True,
    )
    await call.all()
    assert (tracker.count, tracker.drained) == (1, 0)


async def test_the_connections_are_closed_after_the_last_rollout_and_with_the_iterator():
    ended, closed = Call(examples=rows(2)), Call(examples=rows(2))
    await ended.all()
    assert ended.transport.closed == 1
    await closed.results.aclose()
    await closed.results.aclose()
    assert (closed.transport.closed, closed.transport.sent) == (1, [])


@pytest.mark.parametrize("limit", [0, -1, 1.5, True, "2"])
def test_a_limit_of_residents_is_a_whole_number_from_1_on(limit):
    with pytest.raises(DirectCallError, match="max_resident_tasks"):
        Pacing(max_resident_tasks=limit)


@pytest.mark.parametrize("seconds", [-1, float("nan"), float("inf")])
@pytest.mark.parametrize(("name", "option"), [("budget", "dispatch_budget_s"), ("margin", "drain_margin_s")])
def test_a_time_is_a_number_of_seconds_from_0_on(name, option, seconds):
    with pytest.raises(DirectCallError, match=option):
        Pacing(**{name: seconds})
