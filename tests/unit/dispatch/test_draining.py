"""A drain and a stop: who ends admission, who has how long, and whose word stands."""

import asyncio

import pytest

from rollbook.dispatch.dispatcher import Dispatched
from rollbook.dispatch.flights import GivenUp
from rollbook.dispatch.stop import Stop
from rollbook.records.identity import RolloutKey
from unit.dispatch.desk import Run, to_servers
from unit.dispatch.pages import BUSY, settled


async def draining(**policy):
    """Return a run of four rollouts of which two are out, and which is to drain."""
    run = Run(to_servers(*["env"] * 4), **{"lanes": 2, "grace": 20.0} | policy)
    await settled()
    run.stop.drain("enough")
    await settled()
    return run


def test_a_drain_closes_and_asks_nobody_to_hurry():
    stop = Stop()
    stop.drain("enough")
    assert (stop.closed.is_set(), stop.asked.is_set(), stop.at_once.is_set()) == (True, False, False)
    assert (stop.why, stop.exit_code) == ("enough", None)


@pytest.mark.parametrize("words", [["drain", "drain"], ["drain", "request"], ["request", "drain"]])
def test_what_was_said_first_stands(words):
    stop = Stop()
    for n, word in enumerate(words):
        getattr(stop, word)(f"said {n}")
    assert stop.why == "said 0"
    assert stop.asked.is_set() is ("request" in words)
    assert not stop.at_once.is_set()


def test_a_stop_after_a_drain_names_the_exit_code_and_one_more_leaves_no_grace():
    stop = Stop()
    stop.drain("enough")
    stop.request("SIGTERM", 143)
    assert (stop.why, stop.exit_code, stop.at_once.is_set()) == ("enough", 143, False)
    stop.request("SIGINT", 130)
    assert (stop.why, stop.exit_code, stop.at_once.is_set()) == ("enough", 143, True)


async def test_what_is_in_flight_at_a_drain_takes_as_long_as_it_needs_and_nothing_else_is_sent():
    run = await draining()
    await run.passes(1e6)
    assert not run.task.done()
    for call in run.desk.out:
        call.answer()
    assert await run.ends() == Dispatched("enough", 0)
    assert sorted(run.pages.written) == [(0, 0), (1, 0)]
    assert run.pages.told("cut", "stopped") == [("stopped", "enough")]
    assert [rollout.key.task for rollout in run.dispatcher.supply.left()] == [2, 3]


async def test_a_stop_after_a_drain_gives_what_is_in_flight_its_grace_and_cuts_it_with_the_first_word():
    run = await draining()
    await run.passes(1e6)
    run.stop.request("SIGTERM")
    await run.clock.asleep()
    assert run.clock.sleeps == [20.0]
    await run.passes(19.9)
    assert not run.task.done()
    await run.passes(0.1)
    assert await run.ends() == Dispatched("enough", 2)
    assert run.desk.cancelled == [0, 1]
    assert run.pages.calls[-2:] == [("cut", [(0, 0), (1, 0)], "enough"), ("stopped", "enough")]


async def test_two_stops_after_a_drain_cut_at_once():
    run = await draining(grace=1e6)
    run.stop.request("SIGINT")
    run.stop.request("SIGINT")
    assert await run.ends() == Dispatched("enough", 2)


async def test_a_drain_after_a_stop_gives_no_more_time():
    run = Run(to_servers("env", "env"), lanes=2, grace=20.0)
    await settled()
    run.stop.request("SIGTERM")
    run.stop.drain("enough")
    await run.clock.asleep()
    await run.passes(20.0)
    assert await run.ends() == Dispatched("SIGTERM", 2)


async def test_what_is_refused_while_the_run_drains_is_told_and_not_sent_again():
    run = await draining(retry_for=600.0)
    for call in run.desk.out:
        call.answer(BUSY)
    assert await run.ends() == Dispatched("enough", 0)
    assert len(run.desk.calls) == 2
    assert [call[0] for call in run.pages.calls] == ["reserve", "reserve", "refused", "refused", "stopped"]


def left(run):
    return [rollout.key.task for rollout in run.dispatcher.supply.left()]


async def test_what_was_refused_and_is_not_sent_again_is_left_as_it_was_in_the_plan():
    run = await draining(retry_for=600.0)
    run.desk.out[1].answer(BUSY)
    await settled()
    run.desk.out[0].answer()
    assert await run.ends() == Dispatched("enough", 0)
    rest = list(run.dispatcher.supply.left())
    assert [(rollout.key.task, rollout.attempt) for rollout in rest] == [(1, 0), (2, 0), (3, 0)]


async def test_what_waits_to_be_sent_again_when_its_lane_is_cut_is_left():
    run = Run(to_servers("env", "env"), lanes=2, retry_for=600.0, grace=0.0)
    await settled()
    run.desk.calls[0].answer(BUSY)
    await run.clock.asleep()
    run.task.cancel()
    await asyncio.gather(run.task, return_exceptions=True)
    assert left(run) == [0]


@pytest.mark.parametrize("end", ["drain", "request", "cancel"])
async def test_what_was_reserved_and_not_sent_is_left(end):
    run = Run(to_servers("env", "env", "env"), lanes=2)
    reserving = run.pages.hold("reserve")
    await settled()
    run.task.cancel() if end == "cancel" else getattr(run.stop, end)("enough")
    await settled()
    reserving.set()
    await asyncio.gather(run.task, return_exceptions=True)
    assert run.desk.calls == []
    assert left(run) == [0, 1, 2]


async def test_what_was_reserved_and_not_sent_is_refused_at_once_whatever_is_still_in_flight():
    run = Run(to_servers("env", "env"), lanes=1)
    await settled()
    reserving = run.pages.hold("reserve")
    run.dispatcher.ceilings.change(2, 0.0, auto=False)
    run.dispatcher.adjust()
    await settled()
    run.stop.drain("enough")
    reserving.set()
    await settled()
    assert [call.task for call in run.desk.out] == [0]
    assert run.pages.told("refused") == [("refused", 1, 0, "stopped before it was sent")]
    run.desk.out[0].answer()
    assert await run.ends() == Dispatched("enough", 0)


@pytest.mark.parametrize("then", [[], [BUSY]], ids=["cut", "cut and refused"])
async def test_what_was_cut_to_run_again_was_started_and_is_not_left(then):
    run = Run(to_servers("env", "env"), lanes=1, retry_for=600.0)
    await settled()
    run.dispatcher.supply.paused = not then
    run.dispatcher.flights.find(RolloutKey(0, 0)).give_up(GivenUp.RUN_AGAIN, "asked for")
    await settled()
    for reply in then:
        run.desk.out[0].answer(reply)
        await settled()
    run.stop.drain("enough")
    assert await run.ends() == Dispatched("enough", 0)
    assert left(run) == [1]


async def test_a_drain_ends_a_wait_before_a_retry_at_once():
    run = Run(to_servers("env"), lanes=1, retry_for=600.0)
    await settled()
    run.desk.calls[0].answer(BUSY)
    await run.clock.asleep()
    run.stop.drain("enough")
    assert await run.ends() == Dispatched("enough", 0)


async def test_a_drain_with_nothing_in_flight_ends_the_run_at_once():
    run = Run(to_servers("env", "env"), lanes=2)
    run.dispatcher.supply.paused = True
    await settled()
    run.stop.drain("enough")
    assert await run.ends() == Dispatched("enough", 0)
    assert run.desk.calls == []


@pytest.mark.parametrize("turns", range(12))
async def test_a_drain_at_any_moment_of_a_reservation_sends_all_of_an_attempt_or_none_of_it(turns):
    run = Run(to_servers("env", "env"), lanes=2)
    for _ in range(turns):
        await asyncio.sleep(0)
    run.stop.drain("enough")
    await settled()
    for call in list(run.desk.out):
        call.answer()
    assert await run.ends() == Dispatched("enough", 0)
    sent = {(call.task, 0) for call in run.desk.calls}
    refused = {(task, number) for _, task, number, _ in run.pages.told("refused")}
    assert {(task, number) for _, task, number in run.pages.told("reserve")} == sent | refused
    assert set(run.pages.written) == sent
    assert not sent & refused
    assert run.dispatcher.ceilings.in_flight == 0


@pytest.mark.parametrize("told", ["refused", "cut", "unsent"])
async def test_what_a_lane_tells_of_its_attempt_is_told_once_however_it_is_cancelled_meanwhile(told):
    run = Run(to_servers("env"), lanes=1, retry_for=600.0)
    reserving = run.pages.hold("reserve")
    call = "cut" if told == "cut" else "refused"
    telling = run.pages.hold(call)
    await settled()
    if told == "unsent":
        run.stop.drain("enough")
    reserving.set()
    await settled()
    if told == "refused":
        run.desk.out[0].answer(BUSY)
    elif told == "cut":
        run.dispatcher.flights.find(RolloutKey(0, 0)).give_up(GivenUp.RUN_AGAIN, "asked for")
    await run.pages.begun[call].wait()
    run.task.cancel()
    await settled()
    telling.set()
    await asyncio.gather(run.task, return_exceptions=True)
    assert [name for name in run.pages.asked if name in {"refused", "cut"}] == [call]
    assert [name for name, *_ in run.pages.told("refused", "cut")] == [call]
