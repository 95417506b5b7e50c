import asyncio

import msgspec
import pytest

from rollbook.clock import SystemClock
from rollbook.dispatch.dispatcher import Dispatcher, Policy
from rollbook.errors import LedgerError, UnroutedRunError
from rollbook.records.event import AttemptEnded, AttemptStarted
from rollbook.records.exchange import Reply, SendFailed
from rollbook.records.failure_kinds import Delivery
from rollbook.records.identity import RolloutKey
from rollbook.records.outcome import Evidence, Scored
from rollbook.records.record import Record
from rollbook.records.task import Rollout


class Script:
    """A transport that replies as told, and counts what is in flight."""

    def __init__(self, reply=None):
        self.reply = reply or (lambda _row: Reply(200, b'{"reward":1.0}'))
        self.sent = []
        self.in_flight = self.most = 0
        self.gate = None

    async def send(self, server, path, body):
        row = msgspec.json.decode(body)
        self.sent.append((server, path, row["n"]))
        self.in_flight += 1
        self.most = max(self.most, self.in_flight)
        try:
            await (self.gate.wait() if self.gate else asyncio.sleep(0))
            outcome = self.reply(row)
        finally:
            self.in_flight -= 1
        if isinstance(outcome, Exception):
            raise outcome
        return outcome


class Pages:
    """Where endings go in place of files."""

    def __init__(self):
        self.endings = []

    async def write(self, rollout, ending):
        await asyncio.sleep(0)
        self.endings.append((rollout.key, ending.outcome))
        return Record(rollout.key, rollout.attempt, ending.outcome)


def rollouts(count):
    for n in range(count):
        yield Rollout(RolloutKey(n, 0), msgspec.json.encode({"n": n}), "env")


def dispatcher(transport, pages, observe=lambda _event: None, **policy):
    return Dispatcher(
        transport, write=pages.write, observe=observe, policy=Policy(**{"lanes": 4} | policy), clock=SystemClock()
    )


async def test_every_rollout_is_sent_once_in_plan_order_to_run():
    script, pages = Script(), Pages()
    await dispatcher(script, pages, lanes=1).run(rollouts(10))
    assert script.sent == [("env", "/run", n) for n in range(10)]
    assert [outcome for _, outcome in pages.endings] == [Scored(1.0)] * 10


async def test_no_more_than_the_lanes_are_in_flight_and_all_lanes_are_busy():
    script, pages = Script(), Pages()
    await dispatcher(script, pages, lanes=4).run(rollouts(40))
    assert script.most == 4


async def test_the_plan_is_read_only_as_far_as_lanes_are_free():
    script, pages = Script(), Pages()
    script.gate = asyncio.Event()
    taken = []
    plan = (taken.append(rollout.key.task) or rollout for rollout in rollouts(100))
    run = asyncio.create_task(dispatcher(script, pages, lanes=3).run(plan))
    for _ in range(10):
        await asyncio.sleep(0)
    assert taken == [0, 1, 2]
    script.gate.set()
    await run
    assert len(pages.endings) == 100


async def test_a_failed_run_is_written_and_the_run_goes_on():
    def reply(row):
        if row["n"] == 1:
            return Reply(500, b"boom")
        if row["n"] == 2:
            return SendFailed("refused", delivery=Delivery.NOT_SENT, exception_type="ClientConnectorError")
        return Reply(200, b'{"reward":0.0}')

    pages = Pages()
    await dispatcher(Script(reply), pages).run(rollouts(4))
    classes = {key.task: getattr(outcome, "failure_class", None) for key, outcome in pages.endings}
    assert classes == {0: None, 1: "agent_run_error", 2: "agent_request_failed", 3: None}


async def test_without_routing_the_run_ends_after_the_evidence_is_written():
    pages = Pages()
    script = Script(lambda row: Reply(500, b"boom") if row["n"] == 1 else Reply(200, b'{"reward":0.0}'))
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

    await dispatcher(Script(), pages, observe, lanes=1).run(rollouts(2))
    assert seen == [AttemptStarted, AttemptEnded] * 2


async def test_an_observer_that_raises_never_reaches_the_run():
    calls = []

    def observe(event):
        calls.append(event)
        raise RuntimeError("screen is gone")

    pages = Pages()
    await dispatcher(Script(), pages, observe).run(rollouts(5))
    assert len(pages.endings) == 5
    assert len(calls) == 1


async def test_a_ledger_that_fails_stops_dispatch():
    class Full(Pages):
        async def write(self, rollout, ending):
            raise LedgerError("disk full")

    script = Script()
    with pytest.raises(LedgerError, match="disk full"):
        await dispatcher(script, Full(), lanes=2).run(rollouts(100))
    assert len(script.sent) <= 4


async def test_cancelling_never_cuts_a_write_and_leaves_no_task():
    class Slow(Pages):
        def __init__(self):
            super().__init__()
            self.begun, self.gate = asyncio.Event(), asyncio.Event()

        async def write(self, rollout, ending):
            self.begun.set()
            await self.gate.wait()
            return await super().write(rollout, ending)

    pages = Slow()
    run = asyncio.create_task(dispatcher(Script(), pages, lanes=1).run(rollouts(5)))
    await pages.begun.wait()
    run.cancel()
    await asyncio.gather(run, return_exceptions=True)
    pages.gate.set()
    for _ in range(5):
        await asyncio.sleep(0)
    assert [outcome for _, outcome in pages.endings] == [Scored(1.0)]
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_a_bug_is_not_taken_for_an_ending():
    def reply(_row):
        return ZeroDivisionError("ours")

    with pytest.raises(ZeroDivisionError):
        await dispatcher(Script(reply), Pages()).run(rollouts(3))
