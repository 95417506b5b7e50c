"""Collection, the whole engine on one page: what is owed goes out, what comes back is written, what stands is counted.

Rules:
* A fresh run and a continued one are the same call.
* An attempt is written down before it is sent, and again when it ends; so is the session, when it opens and ends.

Source: collection.md §3.2, §5.4, §15.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from itertools import islice, takewhile
from typing import Final

import msgspec

from rollbook.clock import Clock
from rollbook.dispatch.ceilings import Ceilings
from rollbook.dispatch.dispatcher import Dispatched, Dispatcher, Policy, always_of_use
from rollbook.dispatch.stop import Stop
from rollbook.dispatch.traffic import Further
from rollbook.dispatch.transport import Transport
from rollbook.dispatch.watch import watched
from rollbook.ledger.run import Run
from rollbook.plan.rollouts import numbered, owed
from rollbook.records.codec import RunStamp
from rollbook.records.disposition import Rules
from rollbook.records.ending import Ending
from rollbook.records.event import Observe, RunEnded
from rollbook.records.outcome import NeverStarted
from rollbook.records.standing import Standings
from rollbook.records.task import Rollout
from rollbook.recovery.charges import ALLOCATION_ENDED, allocation_end_charges
from rollbook.verbs.session_ledger import SessionLedger

_TOGETHER: Final = 1024


@asynccontextmanager
async def unsteered(_dispatcher: Dispatcher) -> AsyncIterator[None]:
    """Leave a run to itself."""
    yield


class Engine(msgspec.Struct, frozen=True):
    """What a session runs with; `rules` say what is owed, `stamp` what its records carry.

    `further` says when more attempts are of no use; `steered` lets somebody steer the run while it goes on.
    """

    rules: Rules
    stamp: RunStamp
    transport: Transport
    policy: Policy
    observe: Observe
    clock: Clock
    stop: Stop
    ceilings: Ceilings
    further: Further = always_of_use
    steered: Callable[[Dispatcher], AbstractAsyncContextManager[None]] = unsteered


async def collect(plan: Iterable[Rollout | None], run: Run, standings: Standings, engine: Engine) -> Dispatched:
    """Run every rollout that the plan still owes, and fold each ending into `standings` once it is written.

    `plan` is gone through more than once; it yields None where it found nothing for a while. Raises what dispatch does.
    """
    rules = engine.rules
    async with run.writer(engine.stamp) as writer:
        ledger = SessionLedger(writer, standings, engine.stamp.run_id, rules.live_session or 1, engine.clock)
        try:
            async with ledger.opened():
                await _charge(plan, standings, rules, ledger)
                dispatcher = _dispatcher(owed(plan, standings, rules), ledger, engine)
                async with watched(dispatcher), engine.steered(dispatcher):
                    dispatched = await dispatcher.run()
                if dispatched.stopped is not None and run.record_omitted:
                    await _write_down(dispatcher.supply.left(), dispatched.stopped, ledger, engine.stop)
                return dispatched
        finally:
            engine.observe(RunEnded())


def _dispatcher(still_owed: Iterator[Rollout | None], ledger: SessionLedger, engine: Engine) -> Dispatcher:
    return Dispatcher(
        engine.transport,
        still_owed,
        ledger=ledger,
        observe=engine.observe,
        policy=engine.policy,
        clock=engine.clock,
        stop=engine.stop,
        ceilings=engine.ceilings,
        further=engine.further,
    )


async def _charge(plan: Iterable[Rollout | None], standings: Standings, rules: Rules, ledger: SessionLedger) -> None:
    """Write one failure for each attempt, but a rollout's first, that was lost with the process that had sent it."""
    charges = allocation_end_charges(standings, rules)
    charged = (
        (numbered(rollout, attempt), ALLOCATION_ENDED)
        for rollout in (plan if charges else ())
        if rollout is not None
        for attempt in charges.get(rollout.key, ())
    )
    await _write_all(charged, ledger)


async def _write_down(rest: Iterator[Rollout | None], why: str, ledger: SessionLedger, stop: Stop) -> None:
    """Write that what is left was never started, unless somebody wants the end at once."""
    ending = Ending(NeverStarted(f"not dispatched: {why}"))
    wanted = takewhile(lambda _: not stop.at_once.is_set(), rest)
    await _write_all(((rollout, ending) for rollout in wanted if rollout is not None), ledger)


async def _write_all(rows: Iterator[tuple[Rollout, Ending]], ledger: SessionLedger) -> None:
    """Write rows that nobody waits for one by one: many of them go out together."""
    while batch := list(islice(rows, _TOGETHER)):
        await asyncio.gather(*(ledger.write(rollout, ending) for rollout, ending in batch))
