"""Attempts that never ran, and what follows them within one run."""

import asyncio

import pytest

from rollbook.dispatch.dispatcher import Dispatched
from rollbook.errors import UnroutedRunError
from rollbook.outcomes.retry import spread
from rollbook.records.event import AttemptEnded, AttemptRefused, AttemptStarted
from rollbook.records.exchange import Reply, SendFailed
from rollbook.records.failure_kinds import Delivery
from rollbook.records.outcome import Evidence, Failed, Scored
from rollbook.testing.manual_clock import ManualClock
from rollbook.testing.scripted_transport import ScriptedTransport
from unit.dispatch.pages import BUSY, UNREACHABLE, Pages, dispatcher, finished, in_turn, rollouts, settled

OK = Reply(200, b'{"reward":1.0}')


class Patient:
    """A run that waits as long as its clock is told to."""

    def __init__(self, *answers, count=1, **options):
        self.script, self.pages, self.clock, self.seen = (
            ScriptedTransport(in_turn(*answers)),
            Pages(),
            ManualClock(),
            [],
        )
        policy = {"lanes": 1, "retry_for": 600.0} | options
        self.run = asyncio.create_task(
            dispatcher(self.script, self.pages, self.seen.append, clock=self.clock, **policy).run(rollouts(count))
        )

    async def waits(self, times):
        """Let `times` waits pass, and return how long each was."""
        waited = []
        for _ in range(times):
            await settled()
            waited += self.clock.sleeps
            self.clock.advance(sum(self.clock.sleeps))
        return waited


@pytest.mark.parametrize("refusal", [BUSY, Reply(429, b""), UNREACHABLE], ids=["503", "429", "not sent"])
async def test_an_attempt_that_never_ran_is_refused_and_the_next_number_is_sent(refusal):
    patient = Patient(refusal, OK)
    assert await patient.waits(1) == [0.5]
    assert await finished(patient.run) == Dispatched(None, 0)
    assert [call[:3] for call in patient.pages.calls] == [
        ("reserve", 0, 0),
        ("refused", 0, 0),
        ("reserve", 0, 1),
        ("write", 0, 1),
    ]
    assert [outcome for _, outcome in patient.pages.endings] == [Scored(1.0)]


@pytest.mark.parametrize(
    "failure",
    [
        Reply(500, b""),
        Reply(502, b""),
        Reply(504, b""),
        Reply(200, b"no JSON"),
        SendFailed("late", delivery=Delivery.POSSIBLY_DELIVERED, exception_type="TimeoutError"),
    ],
    ids=["500", "502", "504", "no JSON", "timeout"],
)
async def test_an_attempt_that_may_have_run_is_written_and_never_followed_by_another(failure):
    patient = Patient(failure, OK)
    await finished(patient.run)
    assert patient.pages.written == [(0, 0)]
    assert len(patient.script.sent) == 1


async def test_without_a_time_for_trying_again_a_refusal_is_a_failure():
    patient = Patient(BUSY, OK, retry_for=0.0)
    await finished(patient.run)
    assert [call[0] for call in patient.pages.calls] == ["reserve", "write"]


async def test_waits_double_up_to_half_a_minute():
    patient = Patient(*[BUSY] * 9, OK)
    assert await patient.waits(9) == [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0, 30.0]
    await finished(patient.run)


async def test_each_rollout_begins_with_the_shortest_wait():
    patient = Patient(BUSY, BUSY, OK, BUSY, OK, count=2)
    assert await patient.waits(3) == [0.5, 1.0, 0.5]
    await finished(patient.run)


async def test_a_server_that_says_when_to_come_back_is_obeyed():
    patient = Patient(Reply(503, b"", {"retry-after": "7"}), OK)
    assert await patient.waits(1) == [7.0]
    await finished(patient.run)


async def test_a_wait_is_no_longer_than_what_is_left_of_the_time():
    patient = Patient(BUSY, retry_for=0.2)
    assert await patient.waits(1) == [pytest.approx(0.2)]
    await finished(patient.run)
    assert len(patient.script.sent) == 2


@pytest.mark.parametrize("asked", ["61", "3600"])
async def test_a_server_that_asks_for_more_time_than_is_left_is_not_asked_again_and_its_refusal_stands(asked):
    patient = Patient(Reply(503, b"", {"retry-after": asked}), retry_for=60.0)
    await finished(patient.run)
    assert len(patient.script.sent) == 1
    assert patient.pages.written == [(0, 0)]


async def test_when_the_time_is_over_exactly_one_failure_is_written_and_it_is_the_last():
    patient = Patient(BUSY, UNREACHABLE, Reply(429, b"last"), retry_for=1.5)
    assert await patient.waits(2) == [0.5, 1.0]
    await finished(patient.run)
    assert patient.pages.written == [(0, 2)]
    ((_, outcome),) = patient.pages.endings
    assert isinstance(outcome, Failed)
    assert outcome.http_status == 429
    assert len(patient.pages.told("refused")) == 2


async def test_the_time_counts_from_the_first_start_of_each_rollout_and_includes_what_the_request_took():
    patient = Patient(BUSY, retry_for=10.0)
    patient.script.hold()
    await patient.script.reached(1)
    patient.clock.advance(9.8)
    patient.script.release()
    (last,) = await patient.waits(1)
    assert last == pytest.approx(0.2)
    await finished(patient.run)


async def test_without_routing_a_refusal_is_tried_again_first_and_ends_the_run_when_the_time_is_over():
    patient = Patient(BUSY, count=3, retry_for=0.5, route_failures=False)
    assert await patient.waits(1) == [0.5]
    with pytest.raises(UnroutedRunError):
        await finished(patient.run)
    assert [call[0] for call in patient.pages.calls] == ["reserve", "refused", "reserve", "write", "stopped"]
    assert isinstance(patient.pages.endings[0][1], Evidence)


async def test_a_refusal_is_observed_between_a_start_and_the_next():
    patient = Patient(BUSY, OK)
    await patient.waits(1)
    await finished(patient.run)
    assert [type(event) for event in patient.seen] == [AttemptStarted, AttemptRefused, AttemptStarted, AttemptEnded]
    refused = patient.seen[1]
    assert (refused.attempt, refused.retry_in, refused.why) == (0, 0.5, "503, message='Service Unavailable'")
    assert (refused.server, refused.status, refused.retry_for) == ("env", 503, 600.0)


async def test_lanes_that_were_refused_together_do_not_come_back_together():
    patient = Patient(BUSY, count=8, lanes=8, jitter=spread)
    await patient.clock.asleep(8)
    assert len(set(patient.clock.sleeps)) == 8
    patient.run.cancel()
    await asyncio.gather(patient.run, return_exceptions=True)
