"""What each ending says of its server, and that what is counted in is counted out, whatever happens."""

import asyncio
from collections import Counter
from math import inf

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rollbook.dispatch.ceilings import Ceilings, Verdict
from rollbook.dispatch.dispatcher import Dispatched
from rollbook.dispatch.flights import GivenUp
from rollbook.dispatch.policy import Limits
from rollbook.dispatch.steering import Steering
from rollbook.dispatch.traffic import verdict_of
from rollbook.errors import LedgerError, UnroutedRunError
from rollbook.outcomes.classify import ending_of_reply, ending_of_send_failure
from rollbook.records.exchange import Reply, SendFailed
from rollbook.records.failure_kinds import Delivery
from rollbook.records.identity import RolloutKey
from thoroughness import examples
from unit.dispatch.desk import OK, Run, to_servers
from unit.dispatch.pages import BUSY, UNREACHABLE, rollouts, settled

(ROLLOUT,) = rollouts(1)


def lost(delivery, status=None):
    return SendFailed("gone", delivery=delivery, exception_type="TimeoutError", status=status)


def ending_of(answer):
    return ending_of_send_failure(answer) if isinstance(answer, SendFailed) else ending_of_reply(answer, ROLLOUT)


@pytest.mark.parametrize(
    ("answer", "verdict"),
    [
        (OK, Verdict.OK),
        (Reply(200, b'{"mask_sample":true}'), Verdict.OK),
        (Reply(200, b"{}"), Verdict.OK),
        (Reply(200, b'{"_ng_no_persist":true}'), Verdict.OK),
        (Reply(200, b'{"_ng_failure_class":"transient"}'), Verdict.FAILED),
        (Reply(200, b'{"_ng_failure_class":"transient","_ng_failure_http_status":503}'), Verdict.FAILED),
        (Reply(200, b'{"_ng_failure_class":"transient","_ng_failure_delivery":"not_sent"}'), Verdict.FAILED),
        (Reply(200, b"no JSON"), Verdict.FAILED),
        (Reply(400, b""), Verdict.FAILED),
        (Reply(500, b""), Verdict.FAILED),
        (Reply(502, b""), Verdict.FAILED),
        (Reply(504, b""), Verdict.FAILED),
        (Reply(429, b""), Verdict.REFUSED),
        (Reply(503, b""), Verdict.REFUSED),
        (lost(Delivery.NOT_SENT), Verdict.UNREACHABLE),
        (lost(Delivery.POSSIBLY_DELIVERED), Verdict.FAILED),
        (lost(Delivery.POSSIBLY_DELIVERED, 503), Verdict.REFUSED),
        (lost(Delivery.DELIVERED, 200), Verdict.FAILED),
    ],
)
def test_what_an_ending_says_of_its_server(answer, verdict):
    assert verdict_of(ending_of(answer)) is verdict


class Told(Ceilings):
    """Ceilings that keep what they are told."""

    def __init__(self):
        super().__init__(4, auto=False)
        self.calls, self.began_at = [], []

    def ended(self, server, seconds, verdict, now, retry_after=None):
        super().ended(server, seconds, verdict, now, retry_after)
        self.calls.append((server, seconds, verdict, retry_after))

    def withdrawn(self, server, began=inf):
        super().withdrawn(server, began)
        self.began_at.append(began)
        self.calls.append((server, "withdrawn"))


async def test_ceilings_are_told_how_long_an_attempt_took_and_what_its_server_asked_for():
    told = Told()
    run = Run(to_servers("a", "b"), told, lanes=2, retry_for=60.0)
    await settled()
    await run.passes(3.0)
    run.desk.calls[0].answer(Reply(503, b"", {"retry-after": "7"}))
    run.desk.calls[1].answer()
    await settled()
    assert told.calls == [("a", 3.0, Verdict.REFUSED, 7.0), ("b", 3.0, Verdict.OK, None)]
    assert told.in_flight == 0
    await run.passes(7.0)
    run.desk.calls[2].answer()
    await run.ends()


async def test_what_is_cut_or_run_again_says_nothing_of_its_server():
    told = Told()
    run = Run(to_servers("a", "b"), told, lanes=2)
    await settled()
    sent_at = run.clock.monotonic()
    await run.passes(3.0)
    Steering(run.dispatcher).requeue([RolloutKey(0, 0)])
    await settled()
    assert (told.calls, told.began_at) == ([("a", "withdrawn")], [sent_at])
    for _ in range(2):
        run.stop.request("SIGTERM")
    assert await run.ends() == Dispatched("SIGTERM", 2)
    assert sorted(told.calls[1:]) == [("a", "withdrawn"), ("b", "withdrawn")]


async def test_an_ending_after_which_nothing_is_of_use_stops_the_run_once_it_is_written():
    def further(server, ending):
        assert run.pages.written
        return f"{server} is of no use" if ending.run_failed else None

    run = Run(to_servers(*"aaaa"), lanes=1, further=further)
    await settled()
    run.desk.calls[0].answer()
    await settled()
    run.desk.calls[1].answer(Reply(500, b"boom"))
    assert await run.ends() == Dispatched("a is of no use", 0)
    assert run.pages.written == [(0, 0), (1, 0)]


@pytest.mark.parametrize("call", ["reserve", "write", "refused", "cut"])
async def test_a_ledger_that_fails_leaves_nothing_counted_in(call):
    run = Run(to_servers(*"aabb"), lanes=3, retry_for=60.0)
    run.pages.broken = {call}
    await settled()
    Steering(run.dispatcher).requeue([RolloutKey(1, 0)])
    for number, out in enumerate(list(run.desk.out)):
        out.answer(BUSY if number else OK)
    with pytest.raises(LedgerError, match=f"disk full at {call}"):
        await run.ends()
    assert run.dispatcher.ceilings.in_flight == 0


@pytest.mark.parametrize("turns", range(12))
async def test_a_run_that_is_cancelled_at_any_moment_leaves_nothing_counted_in(turns):
    run = Run(to_servers(*"aabb"), lanes=3)
    for _ in range(turns):
        await asyncio.sleep(0)
    run.task.cancel()
    await asyncio.gather(run.task, return_exceptions=True)
    assert run.task.cancelled()
    assert run.dispatcher.ceilings.in_flight == 0
    assert len(run.dispatcher.flights) == 0


# Any run.

ANSWERS = {
    "ok": OK,
    "failed": Reply(500, b"boom"),
    "busy": BUSY,
    "later": Reply(429, b"", {"retry-after": "3"}),
    "unreachable": UNREACHABLE,
    "drop": lost(Delivery.POSSIBLY_DELIVERED),
    "bug": ZeroDivisionError("ours"),
}
WORDS = (
    *(f"{name} {which}" for name in ANSWERS for which in (0, -1)),
    *("again", "late", "pause", "resume", "limit 1", "limit 4", "drain", "stop", "cancel"),
    *("hold reserve", "hold write", "free", "break write", "break reserve", "break cut", "time", "time"),
)


def play(run, word):
    kind, _, rest = word.partition(" ")
    steering = Steering(run.dispatcher)
    if kind in ANSWERS:
        if run.desk.out:
            run.desk.out[int(rest)].answer(ANSWERS[kind])
        return
    moves = {
        "again": lambda: give_up(run, GivenUp.RUN_AGAIN),
        "late": lambda: give_up(run, GivenUp.OUT_OF_TIME),
        "pause": steering.pause,
        "resume": steering.resume,
        "limit": lambda: steering.set_limit(int(rest)),
        "drain": lambda: steering.drain("drain"),
        "stop": lambda: run.stop.request("stop"),
        "cancel": run.task.cancel,
        "hold": lambda: run.pages.gates.get(rest) or run.pages.hold(rest),
        "free": lambda: free(run),
        "break": lambda: run.pages.broken.add(rest),
        "time": lambda: run.clock.advance(1.0),
    }
    moves[kind]()


def give_up(run, reason):
    flights = run.dispatcher.flights
    for waiting in flights.longest(1):
        flights.find(waiting.key).give_up(reason, "told to")


def free(run):
    for gate in run.pages.gates.values():
        gate.set()
    run.pages.gates.clear()


async def story(words, turns, plan, *, route_failures):
    ceilings = Ceilings(3, auto=False)
    policy = {"lanes": 3, "retry_for": 20.0, "look_ahead": 3, "limits": Limits(rollout=5.0)}
    run = Run(to_servers(*plan), ceilings, route_failures=route_failures, **policy)
    for word in words:
        for _ in range(turns):
            await asyncio.sleep(0)
        play(run, word)
    for _ in range(200):
        free(run)
        Steering(run.dispatcher).resume()
        for call in list(run.desk.out):
            call.answer()
        await settled()
        if run.task.done():
            break
        run.clock.advance(5.0)
    assert run.task.done(), "the run waits for something that does not come"
    (came,) = await asyncio.gather(run.task, return_exceptions=True)
    expected = (Dispatched, LedgerError, ZeroDivisionError, UnroutedRunError, asyncio.CancelledError)
    assert isinstance(came, expected), repr(came)
    assert (ceilings.in_flight, len(run.dispatcher.flights), run.desk.out) == (0, 0, [])
    assert asyncio.all_tasks() == {asyncio.current_task()}
    if not run.pages.broken:
        every_number_has_one_end(run)
    if came == Dispatched(None, 0):
        assert {key.task for key, _ in run.pages.endings} == {*range(len(plan))}


def every_number_has_one_end(run):
    reserved = Counter((task, number) for _, task, number in run.pages.told("reserve"))
    ends = Counter(run.pages.written)
    ends += Counter((task, number) for _, task, number, _ in run.pages.told("refused"))
    ends += Counter(attempt for _, attempts, _ in run.pages.told("cut") for attempt in attempts)
    assert ends == reserved
    assert set(reserved.values()) <= {1}


@settings(max_examples=examples(150), deadline=None)
@given(
    words=st.lists(st.sampled_from(WORDS), max_size=20),
    turns=st.integers(0, 8),
    plan=st.text("ab", min_size=1, max_size=8),
    route_failures=st.booleans(),
)
def test_after_any_run_nothing_is_counted_in_and_every_number_has_one_end(words, turns, plan, route_failures):
    asyncio.run(story(words, turns, plan, route_failures=route_failures))
