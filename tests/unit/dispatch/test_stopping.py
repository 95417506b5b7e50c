"""A run that ends before its plan does: what is still done, what is cut, and what the ledger is told of it."""

import asyncio
import logging

import pytest

from rollbook.dispatch.dispatcher import Dispatched
from rollbook.dispatch.stop import Stop
from rollbook.errors import LedgerError, UnroutedRunError
from rollbook.records.event import AttemptEnded
from rollbook.records.exchange import Reply
from rollbook.testing.manual_clock import ManualClock
from rollbook.testing.scripted_transport import ScriptedTransport
from unit.dispatch.pages import BUSY, Pages, dispatcher, finished, rollouts, settled


class Under:
    """A run under way on a clock that stands still."""

    def __init__(self, transport=None, pages=None, observe=lambda _event: None, count=10, **policy):
        self.script = transport or ScriptedTransport()
        self.pages = pages or Pages()
        self.clock, self.stop = ManualClock(), Stop()
        dispatch = dispatcher(self.script, self.pages, observe, clock=self.clock, stop=self.stop, **policy)
        self.run = asyncio.create_task(dispatch.run(rollouts(count)))


def held():
    script = ScriptedTransport()
    script.hold()
    return script


async def nothing_is_left():
    await settled()
    return asyncio.all_tasks() == {asyncio.current_task()}


def test_the_first_request_names_the_reason_and_the_second_only_hurries():
    stop = Stop()
    assert (stop.why, stop.exit_code, stop.asked.is_set()) == (None, None, False)
    stop.request("SIGTERM", 143)
    assert (stop.asked.is_set(), stop.at_once.is_set()) == (True, False)
    stop.request("SIGINT", 130)
    assert (stop.why, stop.exit_code, stop.at_once.is_set()) == ("SIGTERM", 143, True)


async def test_a_stop_before_the_first_rollout_sends_nothing_and_reserves_nothing():
    under = Under()
    under.stop.request("SIGTERM")
    assert await finished(under.run) == Dispatched("SIGTERM", 0)
    assert under.script.sent == []
    assert under.pages.calls == [("stopped", "SIGTERM")]


async def test_what_is_in_flight_at_a_stop_may_finish_within_its_grace_and_nothing_else_is_sent():
    under = Under(held(), lanes=3, grace=20.0)
    await under.script.reached(3)
    under.stop.request("SIGTERM")
    await under.clock.asleep()
    under.clock.advance(19.9)
    await settled()
    assert not under.run.done()
    under.script.release()
    assert await finished(under.run) == Dispatched("SIGTERM", 0)
    assert sorted(under.pages.written) == [(0, 0), (1, 0), (2, 0)]
    assert under.pages.told("cut", "stopped") == [("stopped", "SIGTERM")]
    assert len(under.script.sent) == 3
    assert await nothing_is_left()


async def test_what_outlasts_the_grace_is_cancelled_and_told_as_cut_in_one_call():
    under = Under(held(), lanes=3, grace=20.0)
    await under.script.reached(3)
    under.stop.request("SIGUSR1")
    await under.clock.asleep()
    assert under.clock.sleeps == [20.0]
    under.clock.advance(20.0)
    assert await finished(under.run) == Dispatched("SIGUSR1", 3)
    assert [sent.body["n"] for sent in under.script.cancelled] == [0, 1, 2]
    assert under.pages.told("write", "refused") == []
    assert under.pages.calls[-2:] == [("cut", [(0, 0), (1, 0), (2, 0)], "SIGUSR1"), ("stopped", "SIGUSR1")]
    assert await nothing_is_left()


async def test_only_what_did_not_finish_within_the_grace_is_cut():
    script = ScriptedTransport()
    script.hold(lambda body: body["n"] == 1)
    under = Under(script, lanes=3, count=3)
    await script.reached(3)
    under.stop.request("SIGTERM")
    await under.clock.asleep()
    await settled()
    under.clock.advance(20.0)
    assert await finished(under.run) == Dispatched("SIGTERM", 1)
    assert sorted(under.pages.written) == [(0, 0), (2, 0)]
    assert under.pages.told("cut") == [("cut", [(1, 0)], "SIGTERM")]


async def test_a_second_request_ends_the_grace_at_once():
    under = Under(held(), lanes=2, grace=1e6)
    await under.script.reached(2)
    under.stop.request("SIGINT", 130)
    await under.clock.asleep()
    under.stop.request("SIGINT", 130)
    assert await finished(under.run) == Dispatched("SIGINT", 2)
    assert under.pages.told("cut") == [("cut", [(0, 0), (1, 0)], "SIGINT")]


async def test_two_requests_before_anybody_looked_leave_no_grace():
    under = Under(held(), lanes=2, grace=1e6)
    await under.script.reached(2)
    under.stop.request("SIGINT")
    under.stop.request("SIGINT")
    assert await finished(under.run) == Dispatched("SIGINT", 2)


async def test_a_number_that_was_reserved_while_the_stop_came_is_refused_and_not_sent():
    pages = Pages()
    gate = pages.hold("reserve")
    under = Under(pages=pages, lanes=2)
    await pages.begun["reserve"].wait()
    under.stop.request("SIGTERM")
    await settled()
    assert not under.run.done()
    gate.set()
    assert await finished(under.run) == Dispatched("SIGTERM", 0)
    assert under.script.sent == []
    refused = [("refused", task, 0, "stopped before it was sent") for task in (0, 1)]
    assert pages.told("refused", "cut", "stopped") == [*refused, ("stopped", "SIGTERM")]


@pytest.mark.parametrize("requests", [1, 2])
async def test_a_write_that_has_begun_is_waited_for_when_the_grace_is_over(requests):
    pages, seen = Pages(), []
    gate = pages.hold("write")
    under = Under(pages=pages, lanes=1, observe=seen.append)
    await pages.begun["write"].wait()
    for _ in range(requests):
        under.stop.request("SIGTERM")
    await settled()
    under.clock.advance(20.0)
    await settled()
    assert not under.run.done()
    gate.set()
    assert await finished(under.run) == Dispatched("SIGTERM", 0)
    assert pages.written == [(0, 0)]
    assert sum(isinstance(event, AttemptEnded) for event in seen) == 1
    assert pages.told("cut") == []


async def test_a_stop_ends_a_wait_before_a_retry_at_once_and_writes_nothing():
    under = Under(ScriptedTransport(lambda _body: BUSY), lanes=1, retry_for=600.0)
    await under.clock.asleep()
    under.stop.request("SIGTERM")
    assert await finished(under.run) == Dispatched("SIGTERM", 0)
    assert under.pages.calls == [
        ("reserve", 0, 0),
        ("refused", 0, 0, "503, message='Service Unavailable'"),
        ("stopped", "SIGTERM"),
    ]
    assert await nothing_is_left()


async def test_a_refusal_within_the_grace_is_told_and_neither_written_nor_tried_again():
    script = held()
    script.answer = lambda _body: BUSY
    under = Under(script, lanes=1, retry_for=600.0)
    await script.reached(1)
    under.stop.request("SIGTERM")
    await settled()
    script.release()
    assert await finished(under.run) == Dispatched("SIGTERM", 0)
    assert [call[0] for call in under.pages.calls] == ["reserve", "refused", "stopped"]


async def test_when_the_ledger_fails_the_others_are_cancelled_and_its_error_is_the_one_that_is_raised(caplog):
    pages, script = Pages(), ScriptedTransport()
    pages.broken = {"write", "cut", "stopped"}
    script.hold(lambda body: body["n"] != 0)
    under = Under(script, pages, lanes=3)
    with caplog.at_level(logging.ERROR), pytest.raises(LedgerError, match="disk full at write"):
        await finished(under.run)
    assert pages.begun["cut"].is_set()
    assert "disk full at write" in caplog.text
    assert "Traceback" not in caplog.text
    assert len(script.cancelled) == 2
    assert await nothing_is_left()


async def test_what_was_in_flight_when_the_ledger_failed_is_cut_with_the_reason_if_it_can_still_be_told():
    pages, script = Pages(), ScriptedTransport()
    pages.broken = {"write"}
    script.hold(lambda body: body["n"] == 1)
    under = Under(script, pages, lanes=2)
    with pytest.raises(LedgerError):
        await finished(under.run)
    why = "LedgerError: disk full at write"
    assert pages.calls[-2:] == [("cut", [(0, 0), (1, 0)], why), ("stopped", why)]


async def test_a_number_that_never_reached_the_disk_is_told_neither_as_refused_nor_as_cut():
    pages = Pages()
    pages.broken = {"reserve"}
    with pytest.raises(LedgerError):
        await finished(Under(pages=pages, lanes=1).run)
    assert pages.calls == [("stopped", "LedgerError: disk full at reserve")]


async def test_an_error_that_only_telling_brings_is_raised():
    pages = Pages()
    pages.broken = {"stopped"}
    under = Under(pages=pages)
    under.stop.request("SIGTERM")
    with pytest.raises(LedgerError, match="disk full at stopped"):
        await finished(under.run)


async def test_a_write_that_fails_while_the_run_is_stopping_is_raised():
    pages = Pages()
    gate = pages.hold("write")
    pages.broken = {"write"}
    under = Under(pages=pages, lanes=1, grace=0.0)
    await pages.begun["write"].wait()
    under.stop.request("SIGTERM")
    await settled()
    gate.set()
    with pytest.raises(LedgerError, match="disk full at write"):
        await finished(under.run)


async def test_an_unrouted_failure_cuts_what_else_is_in_flight_and_keeps_its_own_evidence():
    script, pages = ScriptedTransport(lambda _body: Reply(500, b"boom")), Pages()
    script.hold(lambda body: body["n"] != 2)
    under = Under(script, pages, lanes=4, route_failures=False)
    with pytest.raises(UnroutedRunError) as raised:
        await finished(under.run)
    assert pages.written == [(2, 0)]
    why = f"UnroutedRunError: {raised.value}"
    assert pages.told("cut", "stopped") == [("cut", [(0, 0), (1, 0), (3, 0)], why), ("stopped", why)]
    assert len(script.cancelled) == 3


async def test_a_run_that_is_cancelled_tells_what_it_cut_and_stays_cancelled():
    under = Under(held(), lanes=2)
    await under.script.reached(2)
    under.run.cancel("time is up")
    with pytest.raises(asyncio.CancelledError):
        await finished(under.run)
    assert under.run.cancelled()
    assert under.pages.calls[-2:] == [
        ("cut", [(0, 0), (1, 0)], "CancelledError: time is up"),
        ("stopped", "CancelledError: time is up"),
    ]
    assert await nothing_is_left()


async def test_a_cancelled_run_whose_ledger_fails_stays_cancelled():
    pages = Pages()
    pages.broken = {"cut"}
    under = Under(held(), pages, lanes=1)
    await under.script.reached(1)
    under.run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await finished(under.run)


@pytest.mark.parametrize("call", ["write", "cut", "stopped"])
async def test_cancelling_again_and_again_never_cuts_a_call_of_the_ledger(call):
    pages = Pages()
    gate = pages.hold(call)
    under = Under(ScriptedTransport() if call == "write" else held(), pages, lanes=1)
    await settled()
    for _ in range(3):
        under.run.cancel()
        await settled()
    assert pages.begun[call].is_set()
    assert not under.run.done()
    gate.set()
    with pytest.raises(asyncio.CancelledError):
        await finished(under.run)
    assert pages.told(call) != []
    assert pages.calls[-1][0] == "stopped"
    assert await nothing_is_left()


async def test_a_lane_that_is_cancelled_while_it_writes_an_ending_sends_nothing_further():
    pages = Pages()
    gate = pages.hold("write")
    under = Under(pages=pages, lanes=1)
    await pages.begun["write"].wait()
    under.run.cancel()
    await settled()
    gate.set()
    with pytest.raises(asyncio.CancelledError):
        await finished(under.run)
    assert (pages.told("reserve"), pages.written) == ([("reserve", 0, 0)], [(0, 0)])


async def test_a_number_that_was_reserved_while_the_run_was_cancelled_is_refused_and_not_cut():
    pages = Pages()
    gate = pages.hold("reserve")
    under = Under(pages=pages, lanes=1)
    await pages.begun["reserve"].wait()
    under.run.cancel()
    await settled()
    gate.set()
    with pytest.raises(asyncio.CancelledError):
        await finished(under.run)
    assert under.script.sent == []
    assert pages.told("refused", "cut", "stopped") == [
        ("refused", 0, 0, "stopped before it was sent"),
        ("stopped", "CancelledError"),
    ]


async def test_a_request_that_cancels_itself_ends_the_run_and_not_only_its_lane():
    class Torn(ScriptedTransport):
        async def send(self, server, path, body, exchange=None):
            reply = await super().send(server, path, body)
            if body == b'{"n":0}':
                raise asyncio.CancelledError
            return reply

    under = Under(Torn(), lanes=2, count=1000)
    with pytest.raises(asyncio.CancelledError):
        await finished(under.run)
    assert len(under.script.sent) < 10
    assert (0, 0) in under.pages.told("cut")[0][1]


def test_a_stop_that_the_run_came_to_by_itself_hurries_nobody_and_is_nobodys_first_request():
    stop = Stop()
    stop.end("three rollouts failed in a row")
    stop.end("and a fourth")
    assert (stop.asked.is_set(), stop.at_once.is_set(), stop.why) == (True, False, "three rollouts failed in a row")
    stop.request("SIGTERM", 143)
    assert (stop.at_once.is_set(), stop.exit_code, stop.why) == (False, 143, "three rollouts failed in a row")
    stop.request("SIGTERM", 143)
    assert stop.at_once.is_set()


async def test_lanes_are_added_as_work_needs_them_and_not_as_the_limit_allows():
    script, pages = ScriptedTransport(), Pages()
    run = dispatcher(script, pages, lanes=1_000_000).over(rollouts(40))
    await finished(run.run())
    assert len(pages.endings) == 40
    assert len(run.lanes) <= 80
