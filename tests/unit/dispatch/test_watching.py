"""What the clock does in a run: limits, lanes, reports of a stall, and that it ends with the run."""

import asyncio

from rollbook.dispatch.ceilings import Ceilings
from rollbook.dispatch.dispatcher import Dispatched
from rollbook.dispatch.policy import Limits
from rollbook.dispatch.steering import Steering
from rollbook.dispatch.watch import STALLED_SECONDS, SWEEP_SECONDS, watched
from rollbook.records.event import Admission, AdmissionChanged, RunNoted, RunStalled
from rollbook.records.exchange import Reply
from unit.dispatch.desk import Run, to_servers
from unit.dispatch.pages import settled


async def pass_time(run, seconds):
    """Let time pass as the watch looks: in steps of its own."""
    for _ in range(round(seconds / SWEEP_SECONDS)):
        run.clock.advance(SWEEP_SECONDS)
        for _ in range(8):
            await asyncio.sleep(0)


async def test_a_limit_is_noticed_at_the_first_look_after_it_is_used_up():
    run = Run(to_servers("env"), lanes=1, limits=Limits(response=1.1))
    async with watched(run.dispatcher):
        await settled()
        run.desk.calls[0].sent()
        await pass_time(run, 1.0)
        assert run.desk.cancelled == []
        await pass_time(run, SWEEP_SECONDS)
        assert run.desk.cancelled == [0]
        assert await run.ends() == Dispatched(None, 0)


async def test_a_run_that_stalls_tells_its_observer_every_thirty_seconds_until_something_ends():
    run = Run(to_servers("env", "env"), lanes=2)
    async with watched(run.dispatcher):
        await settled()
        await pass_time(run, STALLED_SECONDS - SWEEP_SECONDS)
        assert stalls(run) == []
        await pass_time(run, SWEEP_SECONDS + STALLED_SECONDS)
        assert stalls(run) == [(30.0, 2), (60.0, 2)]
        run.desk.calls[0].answer()
        await settled()
        await pass_time(run, STALLED_SECONDS)
        assert stalls(run) == [(30.0, 2), (60.0, 2), (30.0, 1)]
        run.desk.calls[1].answer()
        await run.ends()


def stalls(run):
    return [(event.seconds, event.count) for event in run.seen if isinstance(event, RunStalled)]


async def test_an_observer_that_fails_at_a_stall_leaves_the_limits_in_force():
    def fails(_event):
        raise RuntimeError("screen is gone")

    run = Run(to_servers("env"), observe=fails, lanes=1, limits=Limits(response=STALLED_SECONDS + 5))
    async with watched(run.dispatcher):
        await settled()
        run.desk.calls[0].sent()
        await pass_time(run, STALLED_SECONDS + 5)
        assert run.desk.cancelled == [0]
        await run.ends()


async def test_ceilings_that_move_take_lanes_with_them():
    ceilings = Ceilings(2, auto=False)
    run = Run(to_servers(*["env"] * 6), ceilings, lanes=2)
    async with watched(run.dispatcher):
        await settled()
        assert len(run.desk.out) == 2
        ceilings.change(5, run.clock.monotonic(), auto=False)
        await settled()
        assert len(run.desk.out) == 2
        await pass_time(run, SWEEP_SECONDS)
        await settled()
        assert len(run.desk.out) == 5
        for _ in range(2):
            for call in list(run.desk.out):
                call.answer()
            await settled()
        assert await run.ends() == Dispatched(None, 0)


async def test_the_watch_ends_with_the_run_and_leaves_nothing_behind():
    run = Run(to_servers("env"), lanes=1)
    async with watched(run.dispatcher):
        await settled()
        run.desk.calls[0].answer()
        await run.ends()
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_a_run_that_fails_ends_its_watch_as_well():
    run = Run(to_servers("env"), lanes=1)
    try:
        async with watched(run.dispatcher):
            await settled()
            run.desk.calls[0].answer(ZeroDivisionError("ours"))
            await run.ends()
    except ZeroDivisionError:
        pass
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_it_is_told_once_which_server_is_left_alone():
    run = Run(to_servers("env", "env"), lanes=1, retry_for=1000.0)
    async with watched(run.dispatcher):
        await settled()
        run.desk.calls[0].answer(refused_for(100))
        await settled()
        await pass_time(run, SWEEP_SECONDS)
        assert notes(run) == ["'env' refused what it was sent and is left alone for 100 s; 0 in flight there"]
        await pass_time(run, STALLED_SECONDS)
        assert len(notes(run)) == 1
        run.dispatcher.stop.request("enough")
        await run.ends()


async def test_it_is_told_of_each_server_that_is_left_alone():
    run = Run(to_servers("one", "other", "third"), lanes=3, retry_for=1000.0)
    async with watched(run.dispatcher):
        await settled()
        for call, seconds in ((0, 90), (1, 92)):
            run.desk.calls[call].answer(refused_for(seconds))
            await settled()
        await pass_time(run, 2 * SWEEP_SECONDS)
        assert [note.partition(" refused")[0] for note in notes(run)] == ["'one'", "'other'"]
        run.desk.calls[2].answer()
        run.dispatcher.stop.request("enough")
        await run.ends()


def refused_for(seconds):
    return Reply(503, b"", {"retry-after": str(seconds)})


async def test_it_is_told_when_sending_pauses_goes_on_drains_and_stops():
    run = Run(to_servers("env", "env"), lanes=2)
    steering = Steering(run.dispatcher)
    async with watched(run.dispatcher):
        await settled()
        for change in (steering.pause, steering.resume, lambda: steering.drain("enough")):
            change()
            await pass_time(run, SWEEP_SECONDS)
        run.dispatcher.stop.request("now")
        await pass_time(run, SWEEP_SECONDS)
        run.desk.calls[0].answer()
        run.desk.calls[1].answer()
        await run.ends()
    told = [event.admission for event in run.seen if isinstance(event, AdmissionChanged)]
    assert told == [Admission.PAUSED, Admission.OPEN, Admission.DRAINING, Admission.STOPPING]


def notes(run):
    return [event.text for event in run.seen if isinstance(event, RunNoted)]
