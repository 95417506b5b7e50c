"""Collection, the whole engine on one page: what is owed goes out, what comes back is written, what stands is counted.

Rules:
* A fresh run and a continued one are the same call.
* An attempt is written down before it is sent, and again when it ends; so is the session, when it opens and ends.

Source: collection.md §3.2, §5.4, §15.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from rollbook.clock import Clock
from rollbook.dispatch.dispatcher import Dispatched, Dispatcher, Policy
from rollbook.dispatch.stop import Stop
from rollbook.dispatch.transport import Transport
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


@dataclass(frozen=True, slots=True)
class Engine:
    """What a session runs with; `rules` say what is owed, `stamp` what its records carry."""

    rules: Rules
    stamp: RunStamp
    transport: Transport
    policy: Policy
    observe: Observe
    clock: Clock
    stop: Stop


async def collect(plan: Iterable[Rollout], run: Run, standings: Standings, engine: Engine) -> Dispatched:
    """Run every rollout that the plan still owes, and fold each ending into `standings` once it is written.

    `plan` is gone through more than once. Raises what dispatch raises.
    """
    rules = engine.rules
    async with run.writer(engine.stamp) as writer:
        ledger = SessionLedger(writer, standings, engine.stamp.run_id, rules.live_session or 1, engine.clock)
        dispatcher = Dispatcher(
            engine.transport,
            ledger=ledger,
            observe=engine.observe,
            policy=engine.policy,
            clock=engine.clock,
            stop=engine.stop,
        )
        try:
            async with ledger.opened():
                await _charge(plan, standings, rules, ledger)
                still_owed = owed(plan, standings, rules)
                dispatched = await dispatcher.run(still_owed)
                if dispatched.stopped is not None and run.record_omitted:
                    await _write_down(still_owed, dispatched.stopped, ledger)
                return dispatched
        finally:
            engine.observe(RunEnded())


async def _charge(plan: Iterable[Rollout], standings: Standings, rules: Rules, ledger: SessionLedger) -> None:
    """Write one failure for each attempt, but a rollout's first, that was lost with the process that had sent it."""
    charges = allocation_end_charges(standings, rules)
    for rollout in plan if charges else ():
        for attempt in charges.get(rollout.key, ()):
            await ledger.write(numbered(rollout, attempt), ALLOCATION_ENDED)


async def _write_down(rest: Iterator[Rollout], why: str, ledger: SessionLedger) -> None:
    for rollout in rest:
        await ledger.write(rollout, Ending(NeverStarted(f"not dispatched: {why}")))
