"""A run that is told what to do while it goes on: its limit, its pauses, and rollouts that run again."""

import pytest

from rollbook.dispatch.ceilings import Ceilings
from rollbook.dispatch.controls import ControlStatus, Requeued
from rollbook.dispatch.dispatcher import Dispatched
from rollbook.dispatch.policy import Limits
from rollbook.dispatch.steering import Steering
from rollbook.records.event import AttemptCut, AttemptEnded, AttemptRefused, AttemptStarted, ConcurrencyChanged, Waiting
from rollbook.records.identity import RolloutKey
from rollbook.records.outcome import Scored
from unit.dispatch.desk import Run, to_servers
from unit.dispatch.pages import BUSY, settled

KEYS = [RolloutKey(n, 0) for n in range(10)]


async def steered(count=4, **policy):
    run = Run(to_servers(*["env"] * count), **{"lanes": 2} | policy)
    await settled()
    return run, Steering(run.dispatcher)


async def over(run):
    """Answer what is out until the run ends."""
    for _ in range(100):
        for call in list(run.desk.out):
            call.answer()
        await settled()
        run.clock.advance(60.0)
        await settled()
    return await run.ends()


# Running again.


async def test_an_attempt_that_is_run_again_is_cut_and_told_and_a_new_number_is_sent():
    run, steering = await steered(1)
    assert steering.requeue([KEYS[0]]) == (Requeued(KEYS[0], 0),)
    await settled()
    assert run.desk.cancelled == [0]
    assert [call.task for call in run.desk.out] == [0]
    assert await over(run) == Dispatched(None, 0)
    assert run.pages.calls == [
        ("reserve", 0, 0),
        ("cut", [(0, 0)], "run again: asked for"),
        ("reserve", 0, 1),
        ("write", 0, 1),
    ]
    assert run.outcomes == {0: Scored(1.0)}
    started = [event.attempt for event in run.seen if isinstance(event, AttemptStarted)]
    assert started == [0, 1]
    cut = [(event.key, event.attempt, event.why) for event in run.seen if isinstance(event, AttemptCut)]
    assert cut == [(KEYS[0], 0, "run again: asked for")]
    assert [event.record.attempt for event in run.seen if isinstance(event, AttemptEnded)] == [1]


async def test_each_rollout_that_is_asked_for_gets_an_answer_in_order_and_says_why_it_is_not_in_flight():
    run, steering = await steered(3)
    run.desk.calls[0].answer()
    await settled()
    not_there = "it is not in flight"
    assert steering.requeue([KEYS[0], KEYS[2], KEYS[9], KEYS[1]]) == (
        Requeued(KEYS[0], None, not_there),
        Requeued(KEYS[2], 0),
        Requeued(KEYS[9], None, not_there),
        Requeued(KEYS[1], 0),
    )
    assert steering.requeue([]) == ()
    await over(run)


async def test_a_rollout_that_waits_to_be_sent_again_is_not_in_flight():
    run, steering = await steered(1, retry_for=600.0)
    run.desk.calls[0].answer(BUSY)
    await settled()
    assert steering.requeue([KEYS[0]]) == (Requeued(KEYS[0], None, "it is not in flight"),)
    await over(run)


async def test_asking_twice_at_once_runs_it_again_once():
    run, steering = await steered(1)
    steering.requeue([KEYS[0], KEYS[0]])
    steering.requeue([KEYS[0]])
    await over(run)
    assert [call[0] for call in run.pages.calls] == ["reserve", "cut", "reserve", "write"]


async def test_a_rollout_may_be_run_again_any_number_of_times_and_its_lane_goes_on():
    run, steering = await steered(2, lanes=1)
    for number in range(5):
        assert steering.requeue([KEYS[0]]) == (Requeued(KEYS[0], number),)
        await settled()
    await over(run)
    assert run.pages.written == [(0, 5), (1, 0)]


async def test_running_again_counts_as_no_refusal():
    run, steering = await steered(1, retry_for=1.0)
    steering.requeue([KEYS[0]])
    await settled()
    run.desk.out[0].answer(BUSY)
    await settled()
    assert [event.retry_in for event in run.seen if isinstance(event, AttemptRefused)] == [0.5]
    await over(run)


async def test_what_was_told_to_run_again_does_not_once_the_run_drains():
    run, steering = await steered(1)
    steering.requeue([KEYS[0]])
    steering.drain("enough")
    assert await run.ends() == Dispatched("enough", 0)
    assert len(run.desk.calls) == 1
    assert run.pages.calls[1:] == [("cut", [(0, 0)], "run again: asked for"), ("stopped", "enough")]


async def test_what_runs_again_waits_while_the_run_is_paused():
    run, steering = await steered(1)
    steering.pause()
    steering.requeue([KEYS[0]])
    await settled()
    assert run.desk.out == []
    steering.resume()
    await settled()
    assert len(run.desk.out) == 1
    await over(run)


@pytest.mark.parametrize("asked_first", [True, False])
async def test_a_rollout_that_runs_out_of_time_while_it_is_asked_for_has_one_ending(asked_first):
    run, steering = await steered(1, limits=Limits(response=10.0))
    run.desk.calls[0].sent()
    run.clock.advance(10.0)
    moves = [lambda: steering.requeue([KEYS[0]]), run.dispatcher.flights.sweep]
    for move in moves if asked_first else reversed(moves):
        move()
    await settled()
    assert [call[0] for call in run.pages.calls[1:]] == (["cut", "reserve"] if asked_first else ["write"])
    await over(run)


# How many.


async def test_a_higher_limit_sends_more_at_once():
    run, steering = await steered(6)
    steering.set_limit(5)
    await settled()
    assert [call.task for call in run.desk.out] == [0, 1, 2, 3, 4]
    await over(run)
    assert run.desk.most == {"env": 5}


async def test_a_lower_limit_lets_what_is_out_run_to_its_end_and_sends_no_more_than_it_allows():
    run, steering = await steered(8, lanes=4)
    steering.set_limit(1)
    await settled()
    assert len(run.desk.out) == 4
    for left in (3, 2, 1, 1, 1):
        run.desk.out[0].answer()
        await settled()
        assert len(run.desk.out) == left
    steering.set_limit(3)
    await settled()
    assert len(run.desk.out) == 3
    assert await over(run) == Dispatched(None, 0)
    assert sorted(run.pages.written) == [(n, 0) for n in range(8)]


async def test_a_limit_that_a_person_sets_stays_whatever_decided_before():
    told = []
    ceilings = Ceilings(None, auto=True, start=2, told=told.append)
    run = Run(to_servers(*["env"] * 9), ceilings, lanes=2)
    await settled()
    Steering(run.dispatcher).set_limit(3)
    for _ in range(40):
        ceilings.tick(run.clock.monotonic())
        await run.passes(1.0)
    assert (ceilings.limit, len(run.desk.out)) == (3, 3)
    assert ConcurrencyChanged(3, "asked for", 1000.0) in told
    await over(run)


async def test_a_run_that_is_given_the_reins_back_finds_its_limit_again():
    ceilings = Ceilings(40, auto=True, start=2)
    run = Run(to_servers(*["env"] * 9), ceilings, lanes=2)
    await settled()
    steering = Steering(run.dispatcher, hard=40)
    steering.set_limit(1)
    assert ceilings.limit == 1
    assert steering.set_limit(None) is None
    assert ceilings.history[-1].limit == ceilings.limit < 40
    await over(run)


async def test_a_limit_that_is_set_before_the_run_begins_counts():
    run = Run(to_servers(*["env"] * 9), lanes=2)
    Steering(run.dispatcher).set_limit(4)
    await settled()
    assert len(run.desk.out) == 4
    await over(run)


# What is told.


async def test_a_status_says_how_the_run_is():
    run, steering = await steered(4)
    run.desk.calls[1].sent()
    await run.passes(5.0)
    assert steering.status() == ControlStatus(
        in_flight=2,
        limit=2,
        waiting=(
            Waiting(KEYS[0], 5.0, "env", "", "connecting"),
            Waiting(KEYS[1], 5.0, "env", "env:80", "waiting for the reply"),
        ),
    )
    steering.pause()
    assert (steering.status().paused, steering.status().draining) == (True, False)
    steering.resume()
    steering.drain("enough")
    says = steering.status()
    assert (says.paused, says.draining, says.stop_reason) == (False, True, "enough")
    await over(run)
    assert (steering.status().in_flight, steering.status().waiting) == (0, ())


async def test_a_paused_run_sends_nothing_and_goes_on_where_it_was():
    run, steering = await steered(4)
    steering.pause()
    for call in list(run.desk.out):
        call.answer()
    await settled()
    assert (run.desk.tasks, run.task.done()) == ([0, 1], False)
    steering.resume()
    assert await over(run) == Dispatched(None, 0)
    assert run.desk.tasks == [0, 1, 2, 3]


async def test_a_drain_ends_a_paused_run():
    run, steering = await steered(4)
    steering.pause()
    for call in list(run.desk.out):
        call.answer()
    await settled()
    steering.drain("enough")
    assert await run.ends() == Dispatched("enough", 0)


async def test_no_limit_is_lower_than_a_task_whose_repeats_are_scored_together():
    run, _ = await steered(4, lanes=4)
    steering = Steering(run.dispatcher, floor=3)
    assert "3 rollouts that are scored together" in steering.set_limit(2)
    assert steering.set_limit(3) is None
    assert steering.status().limit == 3
    await over(run)


async def test_nothing_is_run_again_once_nothing_more_is_sent():
    run, steering = await steered(2)
    steering.drain("enough")
    (answer,) = steering.requeue([KEYS[0]])
    assert answer.attempt is None
    assert "nothing more is sent" in answer.why
    assert run.desk.cancelled == []
    await over(run)
