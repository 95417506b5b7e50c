"""What is in flight: which of it has used up its time, what that makes of it, and when a run is said to stall."""

import asyncio

import pytest

from rollbook.dispatch.ceilings import Ceilings
from rollbook.dispatch.dispatcher import Dispatched
from rollbook.dispatch.flights import LAST_WORD_SECONDS, LONGEST_SHOWN, Flights
from rollbook.dispatch.policy import Limits
from rollbook.records.event import AttemptEnded
from rollbook.records.exchange import Phase, Reply
from rollbook.records.failure_kinds import Delivery
from rollbook.records.identity import RolloutKey
from rollbook.records.outcome import Failed, Scored
from rollbook.testing.manual_clock import ManualClock
from unit.dispatch.desk import OK, Desk, Run, to_servers
from unit.dispatch.pages import settled

FIRST_LINE = "the reply's first line did not come within 10 s"
END = "the reply's end did not come within 10 s"
OVERALL = "the rollout took longer than its limit of 10 s"


async def under_way(count=1, **limits):
    """Return a run of which `count` requests are out, and those."""
    run = Run(to_servers(*["env"] * count), lanes=count, limits=Limits(**limits))
    await settled()
    return run, run.desk.calls


# Who is given up.


@pytest.mark.parametrize(
    ("limit", "beyond", "given_up"),
    [("response", 0.0, [1]), ("body", 0.0, [2, 3]), ("rollout", LAST_WORD_SECONDS, [1, 2, 3, 5])],
)
async def test_a_limit_gives_up_the_flights_that_used_it_up_and_no_other(limit, beyond, given_up):
    run, (connecting, waiting, reading, trickling, late, late_reading) = await under_way(6, **{limit: 10.0})
    for call in (waiting, reading, trickling, late_reading):
        call.sent()
    for call in (reading, trickling):
        call.reading()
    await run.passes(0.5)
    late.sent()
    late_reading.reading()
    await run.passes(9.25 + beyond)
    assert run.desk.cancelled == []
    await run.passes(0.25)
    assert run.desk.cancelled == given_up
    assert run.desk.out == [call for call in run.desk.calls if call.task not in given_up]
    assert connecting in run.desk.out
    await run.passes(0.25)
    assert run.desk.cancelled == given_up


async def test_connecting_takes_no_time_of_any_limit():
    run, (call,) = await under_way(rollout=10.0, response=10.0, body=10.0)
    await run.passes(1e6)
    call.sent()
    await run.passes(9.75)
    assert run.desk.cancelled == []
    await run.passes(0.25)
    assert run.desk.cancelled == [0]


@pytest.mark.parametrize(("limit", "beyond", "why"), [("body", 0.0, END), ("rollout", LAST_WORD_SECONDS, OVERALL)])
async def test_a_reply_that_trickles_gains_no_time(limit, beyond, why):
    run, (call,) = await under_way(**{limit: 10.0})
    call.sent()
    call.reading()
    for _ in range(9):
        call.exchange.status = 200
        await run.passes(1.0)
    assert run.desk.cancelled == []
    await run.passes(1.0 + beyond)
    await run.ends()
    assert run.outcomes[0].message == f"env at env:80: TimeoutError: {why}"


async def test_each_part_has_its_own_time_and_the_whole_rollout_one():
    run, (call,) = await under_way(rollout=25.0, response=10.0, body=20.0)
    call.sent()
    await run.passes(9.0)
    call.reading()
    await run.passes(16.0)
    assert run.desk.cancelled == []
    await run.passes(LAST_WORD_SECONDS)
    await run.ends()
    assert "longer than its limit of 25 s" in run.outcomes[0].message


async def test_a_server_that_was_told_its_time_has_a_moment_to_say_that_it_is_over():
    run, (call,) = await under_way(rollout=10.0)
    call.sent()
    await run.passes(10.0)
    assert run.desk.cancelled == []
    call.answer(Reply(504, b"my time was over"))
    await run.ends()
    assert (run.outcomes[0].http_status, run.outcomes[0].response_body) == (504, "my time was over")


async def test_without_limits_a_flight_may_take_for_ever():
    run, (call,) = await under_way()
    call.sent()
    await run.passes(1e9)
    call.answer()
    assert await run.ends() == Dispatched(None, 0)


async def test_the_server_is_told_the_limit_of_the_whole_rollout_alone():
    told = []
    for limits in ({"rollout": 7.0}, {"response": 7.0}):
        run, (call,) = await under_way(**limits)
        told.append(call.exchange.seconds)
        call.answer()
        await run.ends()
    assert told == [7.0, None]


# What becomes of it.


@pytest.mark.parametrize(
    ("limit", "status", "message", "delivery", "failure_class"),
    [
        ("response", None, FIRST_LINE, Delivery.POSSIBLY_DELIVERED, "agent_request_failed"),
        ("rollout", None, OVERALL, Delivery.POSSIBLY_DELIVERED, "agent_request_failed"),
        ("body", 200, END, Delivery.DELIVERED, "agent_run_error"),
        ("rollout", 200, OVERALL, Delivery.DELIVERED, "agent_run_error"),
        ("body", 500, END, Delivery.DELIVERED, "agent_run_error"),
        ("body", 502, END, Delivery.POSSIBLY_DELIVERED, "agent_request_failed"),
        ("body", 503, END, Delivery.POSSIBLY_DELIVERED, "agent_request_failed"),
    ],
)
async def test_what_is_given_up_is_a_timeout_that_says_how_far_it_came(limit, status, message, delivery, failure_class):
    run, (call,) = await under_way(**{limit: 10.0})
    call.sent()
    if status is not None:
        call.reading(status)
    await run.passes(10.0 + LAST_WORD_SECONDS)
    await run.ends()
    assert run.outcomes[0] == Failed(
        failure_class=failure_class,
        message=f"env at env:80: TimeoutError: {message}",
        kind="transport_timeout",
        delivery=delivery,
        exception_type="TimeoutError",
        http_status=status,
    )
    assert run.pages.written == [(0, 0)]
    assert run.pages.told("cut", "refused") == []


async def test_a_flight_without_an_address_yet_is_named_by_its_server():
    run, (call,) = await under_way(response=10.0)
    call.exchange.enter(Phase.WAITING)
    await run.passes(10.0)
    await run.ends()
    assert run.outcomes[0].message.startswith("env at an unknown address: TimeoutError: ")


async def test_the_lane_of_a_flight_that_was_given_up_goes_on_with_the_next_rollout():
    run = Run(to_servers("env", "env", "env"), lanes=1, limits=Limits(response=10.0))
    for _ in range(3):
        await settled()
        run.desk.out[0].sent()
        await run.passes(10.0)
    assert await run.ends() == Dispatched(None, 0)
    assert run.pages.written == [(0, 0), (1, 0), (2, 0)]
    assert run.desk.cancelled == [0, 1, 2]
    assert sum(isinstance(event, AttemptEnded) for event in run.seen) == 3


class Stubborn(Desk):
    """A server that answers the first request although it was told to end."""

    async def send(self, *request):
        is_first = not self.calls
        try:
            return await super().send(*request)
        except asyncio.CancelledError:
            if not is_first:
                raise
            return OK


async def test_a_reply_that_comes_in_spite_of_the_limit_counts_and_the_next_limit_of_its_lane_is_no_cancellation():
    run = Run(to_servers(*["env"] * 3), transport=Stubborn(), lanes=1, limits=Limits(response=10.0))
    for _ in range(2):
        await settled()
        run.desk.out[0].sent()
        await run.passes(10.0)
    run.desk.out[0].answer()
    assert await run.ends() == Dispatched(None, 0)
    assert (run.outcomes[0], run.outcomes[2]) == (Scored(1.0), Scored(1.0))
    assert run.outcomes[1].message.endswith(FIRST_LINE)


# At the same time.


@pytest.mark.parametrize("answers_first", [True, False])
@pytest.mark.parametrize("turns", range(4))
async def test_a_reply_at_the_same_time_as_the_limit_is_one_ending(turns, answers_first):
    run, (call, _) = await under_way(2, response=10.0)
    call.sent()
    run.clock.advance(10.0)
    moves = [call.answer, run.dispatcher.flights.sweep]
    for move in moves if answers_first else reversed(moves):
        move()
        for _ in range(turns):
            await asyncio.sleep(0)
    await settled()
    assert run.pages.written == [(0, 0)]
    assert [event.record.key.task for event in run.seen if isinstance(event, AttemptEnded)] == [0]
    assert len(run.dispatcher.flights) == 1
    run.desk.calls[1].answer()
    assert await run.ends() == Dispatched(None, 0)


@pytest.mark.parametrize("limit_first", [True, False])
async def test_a_cancellation_from_outside_wins_over_a_limit_at_the_same_time(limit_first):
    clock = ManualClock()
    flights = Flights(Limits(response=10.0), clock.monotonic)
    (rollout,) = to_servers("env")
    came = []

    async def lane():
        flight = flights.begin(rollout, clock.monotonic())
        flight.exchange.enter(Phase.WAITING)
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            came.append(flight.was_given_up())
            raise
        finally:
            flights.end(flight)

    task = asyncio.create_task(lane())
    await settled()
    clock.advance(10.0)
    moves = [flights.sweep, task.cancel]
    for move in moves if limit_first else reversed(moves):
        move()
    await settled()
    assert came == [False]
    assert task.cancelled()
    assert len(flights) == 0


@pytest.mark.parametrize("turns", range(16))
async def test_a_limit_and_the_end_of_a_stops_grace_make_one_ending_whichever_comes_first(turns):
    run, (call, _) = await under_way(2, response=10.0)
    call.sent()
    for _ in range(2):
        run.stop.request("SIGTERM")
    for _ in range(turns):
        await asyncio.sleep(0)
    run.clock.advance(10.0)
    run.dispatcher.flights.sweep()
    dispatched = await run.ends()
    cut = [attempt for _, attempts, _ in run.pages.told("cut") for attempt in attempts]
    assert sorted([*run.pages.written, *cut]) == [(0, 0), (1, 0)]
    assert dispatched == Dispatched("SIGTERM", len(cut))
    assert run.dispatcher.ceilings.in_flight == 0


# A run that stalls.


class Waits:
    """A table of flights, and the reports of a stall in it at every second."""

    def __init__(self):
        self.clock = ManualClock()
        self.flights = Flights(Limits(), self.clock.monotonic)
        self.began = self.clock.monotonic()

    def begin(self, *servers):
        at = self.clock.monotonic()
        return [self.flights.begin(rollout, at) for rollout in to_servers(*servers)]

    def reports(self, seconds):
        found = []
        for _ in range(seconds):
            self.clock.advance(1.0)
            report = self.flights.stalled(30.0)
            if report is not None:
                found.append((self.clock.monotonic() - self.began, report.seconds, report.count))
        return found


async def test_a_stall_is_told_after_thirty_seconds_without_an_ending_and_every_thirty_from_then_on():
    waits = Waits()
    waits.begin("env", "env")
    assert waits.reports(100) == [(30.0, 30.0, 2), (60.0, 60.0, 2), (90.0, 90.0, 2)]


async def test_an_ending_puts_the_report_off():
    waits = Waits()
    first, _ = waits.begin("env", "env")
    assert waits.reports(29) == []
    waits.flights.end(first)
    assert waits.reports(35) == [(59.0, 30.0, 1)]


async def test_nothing_stalls_where_nothing_is_out():
    waits = Waits()
    assert waits.reports(100) == []
    (only,) = waits.begin("env")
    assert waits.reports(29) == []
    waits.flights.end(only)
    assert waits.reports(100) == []


async def test_what_is_sent_after_a_long_pause_does_not_stall_at_once():
    waits = Waits()
    waits.reports(1000)
    waits.begin("env")
    assert waits.reports(40) == [(1030.0, 30.0, 1)]


async def test_a_report_names_those_that_wait_longest_the_longest_first():
    waits = Waits()
    count = LONGEST_SHOWN + 5
    begun = []
    for rollout in to_servers(*["env"] * count):
        begun.append(waits.flights.begin(rollout, waits.clock.monotonic()))
        waits.clock.advance(1.0)
    begun[1].exchange.host = "127.0.0.1:80"
    begun[1].exchange.enter(Phase.WAITING)
    waits.clock.advance(30.0)
    report = waits.flights.stalled(30.0)
    assert report.count == count
    assert [entry.key.task for entry in report.longest] == [*range(LONGEST_SHOWN)]
    assert [entry.seconds for entry in report.longest] == [float(30 + count - n) for n in range(LONGEST_SHOWN)]
    assert [(entry.server, entry.host, entry.phase) for entry in report.longest[:2]] == [
        ("env", "", "connecting"),
        ("env", "127.0.0.1:80", "waiting for the reply"),
    ]


async def test_a_run_counts_what_is_out_and_finds_it_by_its_rollout():
    ceilings = Ceilings(3, auto=False)
    run = Run(to_servers("env", "env"), ceilings, lanes=3)
    await settled()
    flights = run.dispatcher.flights
    assert (len(flights), ceilings.in_flight) == (2, 2)
    assert flights.find(RolloutKey(1, 0)).attempt.attempt == 0
    run.desk.calls[1].answer()
    await settled()
    assert flights.find(RolloutKey(1, 0)) is None
    run.desk.calls[0].answer()
    await run.ends()
    assert (len(flights), ceilings.in_flight) == (0, 0)
