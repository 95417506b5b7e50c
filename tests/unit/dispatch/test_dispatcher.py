"""Lanes: what is sent, in which order, and what becomes of what comes back."""

import asyncio

import pytest

from rollbook.dispatch.dispatcher import Dispatched
from rollbook.errors import LedgerError, UnroutedRunError
from rollbook.records.event import AttemptEnded, AttemptStarted
from rollbook.records.exchange import Reply
from rollbook.records.outcome import Evidence, Scored
from rollbook.testing.scripted_transport import ScriptedTransport, Sent
from unit.dispatch.pages import UNREACHABLE, Pages, dispatcher, finished, rollouts, settled


async def test_every_rollout_is_sent_once_in_plan_order_to_run():
    script, pages = ScriptedTransport(), Pages()
    assert await dispatcher(script, pages, lanes=1).run(rollouts(10)) == Dispatched(None, 0)
    assert script.sent == [Sent("env", "/run", {"n": n}) for n in range(10)]
    assert [outcome for _, outcome in pages.endings] == [Scored(1.0)] * 10


async def test_no_more_than_the_lanes_are_in_flight_and_all_lanes_are_busy():
    script = ScriptedTransport()
    await dispatcher(script, Pages(), lanes=4).run(rollouts(40))
    assert script.most_in_flight == 4


async def test_the_plan_is_read_only_as_far_as_lanes_are_free():
    script, pages = ScriptedTransport(), Pages()
    script.hold()
    taken = []
    plan = (taken.append(rollout.key.task) or rollout for rollout in rollouts(100))
    run = asyncio.create_task(dispatcher(script, pages, lanes=3).run(plan))
    await script.reached(3)
    await settled()
    assert taken == [0, 1, 2]
    script.release()
    await run
    assert len(pages.endings) == 100


async def test_a_number_is_reserved_and_the_start_observed_before_anything_is_sent():
    script, pages, seen = ScriptedTransport(), Pages(), []

    def observe(event):
        seen.append((type(event), len(pages.told("reserve")), len(script.sent)))

    await dispatcher(script, pages, observe, lanes=1).run(rollouts(2))
    assert [entry for entry in seen if entry[0] is AttemptStarted] == [(AttemptStarted, 1, 0), (AttemptStarted, 2, 1)]


async def test_what_is_sent_and_written_is_the_attempt_that_the_ledger_handed_out():
    pages = Pages()
    pages.numbers = {rollout.key: 7 for rollout in rollouts(1)}
    await dispatcher(ScriptedTransport(), pages).run(rollouts(1))
    assert pages.written == [(0, 7)]


async def test_a_failed_run_is_written_and_the_run_goes_on():
    answers = {0: Reply(200, b'{"reward":0.0}'), 1: Reply(500, b"boom"), 2: UNREACHABLE, 3: Reply(200, b"{}")}
    pages = Pages()
    script = ScriptedTransport(lambda body: answers[body["n"]])
    await finished(dispatcher(script, pages).run(rollouts(4)))
    classes = {key.task: getattr(outcome, "failure_class", None) for key, outcome in pages.endings}
    assert classes == {0: None, 1: "agent_run_error", 2: "agent_request_failed", 3: None}


async def test_a_run_that_ends_of_itself_tells_the_ledger_of_no_stop():
    pages = Pages()
    await dispatcher(ScriptedTransport(), pages).run(rollouts(4))
    assert pages.told("refused", "cut", "stopped") == []


async def test_without_routing_the_run_ends_after_the_evidence_is_written():
    pages = Pages()
    script = ScriptedTransport(lambda body: Reply(500, b"boom") if body["n"] == 1 else Reply(200, b'{"reward":0.0}'))
    with pytest.raises(UnroutedRunError, match="route_failures_to_sidecar"):
        await dispatcher(script, pages, lanes=1, route_failures=False).run(rollouts(4))
    assert isinstance(pages.endings[-1][1], Evidence)
    assert len(script.sent) == 2


async def test_an_ending_is_observed_after_it_was_written():
    pages, seen = Pages(), []

    def observe(event):
        if isinstance(event, AttemptEnded):
            assert pages.endings[-1][0] == event.record.key
        seen.append(type(event))

    await dispatcher(ScriptedTransport(), pages, observe, lanes=1).run(rollouts(2))
    assert seen == [AttemptStarted, AttemptEnded] * 2


async def test_an_observer_that_raises_never_reaches_the_run():
    calls = []

    def observe(event):
        calls.append(event)
        raise RuntimeError("screen is gone")

    pages = Pages()
    await dispatcher(ScriptedTransport(), pages, observe).run(rollouts(5))
    assert len(pages.endings) == 5
    assert len(calls) == 1


@pytest.mark.parametrize("call", ["reserve", "write"])
async def test_a_ledger_that_fails_stops_dispatch(call):
    script, pages = ScriptedTransport(), Pages()
    pages.broken = {call}
    with pytest.raises(LedgerError, match=f"disk full at {call}"):
        await dispatcher(script, pages, lanes=2).run(rollouts(100))
    assert len(script.sent) <= 4


async def test_a_bug_is_not_taken_for_an_ending():
    pages = Pages()
    with pytest.raises(ZeroDivisionError):
        await dispatcher(ScriptedTransport(lambda _body: ZeroDivisionError("ours")), pages, lanes=1).run(rollouts(3))
    assert pages.told("write", "cut") == [("cut", [(0, 0)], "ZeroDivisionError: ours")]


async def test_a_plan_that_breaks_while_it_is_read_ends_the_run():
    def plan():
        yield from rollouts(1)
        raise ValueError("line 2 is no JSON")

    with pytest.raises(ValueError, match="line 2"):
        await dispatcher(ScriptedTransport(), Pages(), lanes=1).run(plan())
