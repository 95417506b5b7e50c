"""The time in which rollouts may start: when it is used up, what is said then, and what a run makes of it."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollbook.dispatch.budget import Spending, UpperQuartile
from rollbook.dispatch.dispatcher import Dispatched
from rollbook.dispatch.policy import Budget
from rollbook.records.event import RunNoted
from rollbook.records.exchange import Reply
from unit.dispatch.desk import Run, to_servers
from unit.dispatch.pages import BUSY, UNREACHABLE, settled

EXHAUSTED = "dispatch budget exhausted"


@pytest.mark.parametrize(
    ("left", "margin", "took", "said"),
    [
        (100.0, None, [], None),
        (0.1, None, [], None),
        (0.0, None, [], EXHAUSTED),
        (-1.0, None, [], EXHAUSTED),
        (0.0, 0.0, [], EXHAUSTED),
        (-1.0, 10.0, [], EXHAUSTED),
        (3.0, 10.0, [], "3s left in dispatch budget, below the 10s drain margin"),
        (2.6, 9.6, [], "3s left in dispatch budget, below the 10s drain margin"),
        (9.99, 10.0, [], "10s left in dispatch budget, below the 10s drain margin"),
        (10.0, 10.0, [], None),
        (0.1, 0.0, [9.0] * 9, None),
        (3.0, None, [9.0] * 4, None),
        (3.0, None, [9.0] * 5, "3s left in dispatch budget, below the 9s drain margin"),
        (3.0, None, [1.0, 2.0, 3.0, 4.0, 5.0], "3s left in dispatch budget, below the 4s drain margin"),
        (4.0, None, [5.0, 4.0, 3.0, 2.0, 1.0], None),
        (3.0, 2.0, [9.0] * 9, None),
    ],
)
def test_v4_what_is_said_when_too_little_time_is_left(left, margin, took, said):
    spending = Spending(Budget(60.0, margin), 1000.0)
    for seconds in took:
        spending.took(seconds)
    assert spending.refusal(1060.0 - left) == said


@given(st.lists(st.floats(0.0, 1e6), min_size=1, max_size=60))
def test_the_upper_quartile_is_that_of_a_sorted_list_after_every_number(numbers):
    quartile, known = UpperQuartile(), []
    for number in numbers:
        quartile.add(number)
        known = sorted([*known, number])
        place = 0.75 * (len(known) - 1)
        below, above = known[math.floor(place)], known[math.ceil(place)]
        assert quartile.value() == pytest.approx(below + (above - below) * (place - math.floor(place)))
        assert len(quartile) == len(known)


async def test_a_budget_of_nothing_starts_nothing():
    run = Run(to_servers("env", "env"), budget=Budget(0.0))
    assert await run.ends() == Dispatched(EXHAUSTED, 0)
    assert run.desk.calls == []
    assert run.pages.calls == [("stopped", EXHAUSTED)]
    assert [rollout.key.task for rollout in run.dispatcher.supply.left()] == [0, 1]


async def test_a_run_with_nothing_to_start_is_not_stopped_by_a_budget_of_nothing():
    run = Run([], budget=Budget(0.0))
    assert await run.ends() == Dispatched(None, 0)
    assert run.pages.calls == []


async def test_pauses_in_the_plan_are_nothing_to_start():
    run = Run([None, None], budget=Budget(0.0))
    assert await run.ends() == Dispatched(None, 0)


async def test_a_budget_that_is_spent_when_everything_has_started_stops_nothing():
    run = Run(to_servers("env", "env"), lanes=3, budget=Budget(10.0))
    await settled()
    await run.passes(20.0)
    for call in run.desk.calls:
        call.answer()
    assert await run.ends() == Dispatched(None, 0)
    assert run.pages.told("stopped") == []


async def test_what_is_in_flight_when_the_budget_is_spent_runs_to_its_end_and_the_rest_is_left():
    run = Run(to_servers(*["env"] * 4), lanes=2, budget=Budget(10.0), grace=0.0)
    await settled()
    await run.passes(11.0)
    run.desk.calls[0].answer()
    await run.passes(1e6)
    assert len(run.desk.calls) == 2
    run.desk.calls[1].answer()
    assert await run.ends() == Dispatched(EXHAUSTED, 0)
    assert sorted(run.pages.written) == [(0, 0), (1, 0)]
    assert run.pages.told("cut", "stopped") == [("stopped", EXHAUSTED)]
    assert [rollout.key.task for rollout in run.dispatcher.supply.left()] == [2, 3]
    assert [type(event) for event in run.seen].count(RunNoted) == 1


async def test_a_rollout_that_waits_for_room_ends_waiting_when_the_budget_is_spent():
    run = Run(to_servers("env", "env"), lanes=2, budget=Budget(10.0))
    run.dispatcher.ceilings.change(1, 1000.0, auto=False)
    await settled()
    await run.passes(10.0)
    run.desk.calls[0].answer()
    assert await run.ends() == Dispatched(EXHAUSTED, 0)
    assert [rollout.key.task for rollout in run.dispatcher.supply.left()] == [1]


@pytest.mark.parametrize(
    ("late", "said"), [(5.0, None), (5.1, "5s left in dispatch budget, below the 5s drain margin")]
)
async def test_a_rollout_whose_number_is_late_on_disk_is_sent_only_with_the_margin_left(late, said):
    run = Run(to_servers("env", "env"), lanes=2, budget=Budget(10.0, 5.0))
    reserving = run.pages.hold("reserve")
    await settled()
    run.clock.advance(late)
    reserving.set()
    await settled()
    assert len(run.desk.calls) == (0 if said else 2)
    for call in run.desk.calls:
        call.answer()
    assert await run.ends() == Dispatched(said, 0)
    assert len(run.pages.told("refused")) == (2 if said else 0)
    assert [rollout.key.task for rollout in run.dispatcher.supply.left()] == ([0, 1] if said else [])
    assert [type(event) for event in run.seen].count(RunNoted) == (1 if said else 0)


@pytest.mark.parametrize("asked", [100.0, 10.0])
async def test_a_rollout_that_waits_to_be_sent_again_ends_waiting_when_the_budget_is_spent(asked):
    run = Run(to_servers("env"), lanes=1, budget=Budget(10.0), retry_for=600.0)
    await settled()
    run.desk.calls[0].answer(Reply(503, b"busy", {"retry-after": f"{asked:g}"}))
    await settled()
    await run.passes(9.0)
    assert not run.stop.closed.is_set()
    await run.passes(1.0)
    assert await run.ends() == Dispatched(EXHAUSTED, 0)
    assert len(run.desk.calls) == 1
    assert [rollout.key.task for rollout in run.dispatcher.supply.left()] == [0]


async def test_a_task_that_is_sent_whole_waits_for_its_retry_past_the_end_of_the_budget():
    run = Run(to_servers("env"), lanes=1, budget=Budget(10.0), retry_for=600.0, whole_tasks=True)
    await settled()
    run.desk.calls[0].answer(Reply(503, b"busy", {"retry-after": "100"}))
    await settled()
    await run.passes(99.0, every=9.0)
    assert len(run.desk.calls) == 1
    await run.passes(1.0)
    run.desk.calls[1].answer()
    assert await run.ends() == Dispatched(None, 0)


async def test_a_retry_is_a_start_too():
    run = Run(to_servers("env"), lanes=1, budget=Budget(10.0), retry_for=600.0)
    await settled()
    await run.passes(9.75)
    run.desk.calls[0].answer(BUSY)
    await settled()
    await run.passes(0.5)
    assert await run.ends() == Dispatched(EXHAUSTED, 0)
    assert run.pages.calls[-1] == ("stopped", EXHAUSTED)


@pytest.mark.parametrize(
    ("answer", "goes_on"),
    [
        (Reply(200, b'{"reward":1.0}'), False),
        (Reply(200, b'{"note":1}'), False),
        (Reply(500, b"boom"), True),
        (Reply(200, b'{"_ng_failure_class":"transient"}'), True),
        (BUSY, True),
        (UNREACHABLE, True),
    ],
    ids=["scored", "unscored", "failed", "reported", "busy", "unreachable"],
)
async def test_only_results_say_how_long_a_rollout_takes(answer, goes_on):
    run = Run(to_servers(*["env"] * 6), lanes=1, budget=Budget(100.0))
    for _ in range(5):
        await settled()
        await run.passes(18.0)
        run.desk.out[0].answer(answer)
    await settled()
    assert len(run.desk.calls) == (6 if goes_on else 5)
    for call in run.desk.out:
        call.answer()
    said = None if goes_on else "10s left in dispatch budget, below the 18s drain margin"
    assert await run.ends() == Dispatched(said, 0)
