"""One rollout, carried through its attempts: reserved, sent, and written or, as long as none of it ran, sent again.

Rules:
* A number is durable before its request leaves, and is never sent twice.
* A retry takes a number of its own; the attempt before it is told as refused, and writes no row.
* The time for trying again counts from the first attempt's start. The last failure within it is written like any other,
  and so is one whose server asks for more time than is left.
* An ending is observed after it was written, a refusal after it was told.
* Cancellation may interrupt a request or a wait, never a call of the ledger. A request that used up a limit, or whose
  rollout is to run again, is interrupted alone: its lane goes on.

Source: collection.md §3.2, §3.7, §5.4.2.
"""

from asyncio import CancelledError
from collections.abc import Callable

import msgspec

from rollbook.clock import Clock
from rollbook.dispatch.flights import Flight, Flights, GivenUp
from rollbook.dispatch.outstanding import UNSENT, Outstanding
from rollbook.dispatch.policy import Policy
from rollbook.dispatch.stop import Stop
from rollbook.dispatch.supply import Supply
from rollbook.dispatch.traffic import Traffic
from rollbook.dispatch.transport import Transport
from rollbook.dispatch.waiting import to_the_end
from rollbook.errors import UnroutedRunError
from rollbook.outcomes.classify import cause_of, ending_of_reply, ending_of_send_failure, request_body
from rollbook.outcomes.retry import Refusal, refusal_of, retry_after_seconds, wait_before
from rollbook.outcomes.verdict import as_evidence, ends_the_run
from rollbook.records.ending import Ending
from rollbook.records.event import AttemptCut, AttemptEnded, AttemptRefused, AttemptStarted, Observe
from rollbook.records.exchange import SendFailed
from rollbook.records.task import Rollout

Jitter = Callable[[Rollout], float]


class Answer(msgspec.Struct, frozen=True):
    """How an attempt ended, and the seconds that its server asked to be left alone for."""

    ending: Ending
    retry_after: float | None = None


class RunAgain(msgspec.Struct, frozen=True):
    """An attempt that was ended because its rollout is to run again."""

    why: str


class Carrier(msgspec.Struct, frozen=True):
    """What every lane of a run shares."""

    transport: Transport
    outstanding: Outstanding
    flights: Flights
    supply: Supply
    traffic: Traffic
    observe: Observe
    policy: Policy
    clock: Clock
    stop: Stop
    jitter: Jitter

    async def carry(self, rollout: Rollout) -> None:
        """Return once `rollout`, which was admitted, has an ending on disk, or may not be sent any more.

        Raises:
            UnroutedRunError: its `/run` failed and failures are not routed.
            LedgerError: something could not be written.

        """
        deadline: float | None = None
        retries, never_ran = 0, True
        while True:
            attempt = await self._reserved(rollout)
            if not self.supply.may_leave():
                self.traffic.withdrawn(attempt)
                await to_the_end(self.outstanding.refused(attempt, UNSENT))
                return
            started = self.clock.monotonic()
            deadline = started + self.policy.retry_for if deadline is None else deadline
            answer = await self._send(attempt, started)
            if isinstance(answer, RunAgain):
                never_ran = False
                with self.supply.again(rollout, never_ran=False):
                    await to_the_end(self._cut(attempt, answer.why))
                    goes_on = await self.supply.admitted(rollout.server, 0.0)
            else:
                retries += 1
                refusal = self._refusal(attempt, answer, retries, deadline)
                if refusal is None:
                    await self._settle(attempt, answer.ending, started)
                    return
                with self.supply.again(rollout, never_ran=never_ran):
                    await to_the_end(self._refuse(attempt, refusal))
                    goes_on = await self.supply.admitted(rollout.server, refusal.retry_in)
            if not goes_on:
                return

    async def _reserved(self, rollout: Rollout) -> Rollout:
        try:
            return await self.outstanding.reserve(rollout)
        except BaseException:
            self.traffic.withdrawn(rollout)
            raise

    async def _send(self, attempt: Rollout, started: float) -> Answer | RunAgain:
        self.outstanding.sent(attempt)
        self.supply.sent(attempt)
        self.observe(AttemptStarted(attempt.key, attempt.attempt, started))
        flight = self.flights.begin(attempt, started)
        answer: Answer | RunAgain | None = None
        try:
            answer = await self._exchanged(attempt, flight)
        except CancelledError:
            if not flight.was_given_up():
                raise
            answer = self._given_up(flight)
        finally:
            self.flights.end(flight)
            came_back = answer if isinstance(answer, Answer) else None
            self.traffic.over(attempt, came_back, self.clock.monotonic() - started)
        return answer

    async def _exchanged(self, attempt: Rollout, flight: Flight) -> Answer:
        try:
            reply = await self.transport.send(attempt.server, "/run", request_body(attempt), flight.exchange)
        except SendFailed as failure:
            return Answer(ending_of_send_failure(failure))
        asked = retry_after_seconds(reply.headers.get("retry-after"), self.clock.now())
        return Answer(ending_of_reply(reply, attempt), asked)

    def _given_up(self, flight: Flight) -> Answer | RunAgain:
        if flight.given_up is GivenUp.RUN_AGAIN:
            return RunAgain(flight.why)
        exchange = flight.exchange
        message = f"{flight.attempt.server} at {exchange.host or 'an unknown address'}: TimeoutError: {flight.why}"
        failure = SendFailed(message, delivery=exchange.delivery, exception_type="TimeoutError", status=exchange.status)
        return Answer(ending_of_send_failure(failure))

    def _refusal(self, attempt: Rollout, answer: Answer, retries: int, deadline: float) -> Refusal | None:
        left = deadline - self.clock.monotonic()
        if not answer.ending.run_failed or (answer.retry_after or 0.0) > left:
            return None
        return refusal_of(answer.ending, wait_before(retries, answer.retry_after, self.jitter(attempt)), left)

    async def _refuse(self, attempt: Rollout, refusal: Refusal) -> None:
        await self.outstanding.refused(attempt, refusal.why)
        at = self.clock.monotonic()
        why, wait, server = refusal.why, refusal.retry_in, attempt.server
        told = AttemptRefused(
            attempt.key, attempt.attempt, why, at, wait, server, refusal.status, self.policy.retry_for
        )
        self.observe(told)

    async def _cut(self, attempt: Rollout, why: str) -> None:
        await self.outstanding.cut(attempt, why)
        self.observe(AttemptCut(attempt.key, attempt.attempt, why, self.clock.monotonic()))

    async def _settle(self, attempt: Rollout, ending: Ending, started: float) -> None:
        ends_here = ends_the_run(ending, route_failures=self.policy.route_failures)
        elapsed = self.clock.monotonic() - started
        told = as_evidence(ending) if ends_here else ending
        record, cancelled = await self.outstanding.write(attempt, told, elapsed)
        at = self.clock.monotonic()
        self.observe(AttemptEnded(record, elapsed, at, cause_of(ending)))
        if cancelled is not None:
            raise cancelled
        if ends_here:
            raise UnroutedRunError(_stop_message(attempt, ending))
        self.traffic.settled(attempt, ending, self.stop)


def _stop_message(rollout: Rollout, ending: Ending) -> str:
    return (
        f"/run of rollout {rollout.key} failed on {rollout.server}: {getattr(ending.outcome, 'message', '')}. "
        "The run ends at the first failed /run; add --route-failures (route_failures_to_sidecar=true) to save failures "
        "and go on"
    )
