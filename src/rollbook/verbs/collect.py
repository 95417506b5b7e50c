"""Collection, the whole engine on one page: what is owed goes out, what comes back is written, what stands is counted.

Rules:
* A fresh run and a continued one are the same call.
"""

from collections.abc import Iterable

from rollbook.clock import Clock
from rollbook.dispatch.dispatcher import Dispatcher, Policy
from rollbook.dispatch.transport import Transport
from rollbook.ledger.run import Run
from rollbook.plan.rollouts import owed
from rollbook.records.ending import Ending
from rollbook.records.event import Observe, RunEnded
from rollbook.records.record import Record
from rollbook.records.standing import Standings
from rollbook.records.task import Rollout


async def collect(
    plan: Iterable[Rollout],
    run: Run,
    standings: Standings,
    *,
    transport: Transport,
    policy: Policy,
    observe: Observe,
    clock: Clock,
) -> None:
    """Run every rollout that the plan still owes, and fold each ending into `standings` once it is written."""
    async with run.writer() as writer:

        async def write(rollout: Rollout, ending: Ending) -> Record:
            record = await writer.write(rollout, ending)
            standings.add(record)
            return record

        dispatcher = Dispatcher(transport, write=write, observe=observe, policy=policy, clock=clock)
        try:
            await dispatcher.run(owed(plan, standings))
        finally:
            observe(RunEnded())
