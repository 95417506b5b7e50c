"""A ledger without a disk, the rollouts of a small plan, and a dispatcher over them."""

import asyncio

import msgspec

from rollbook.dispatch.dispatcher import Dispatcher, Policy
from rollbook.dispatch.stop import Stop
from rollbook.dispatch.waiting import to_the_end
from rollbook.errors import LedgerError
from rollbook.records.exchange import Reply, SendFailed
from rollbook.records.failure_kinds import Delivery
from rollbook.records.identity import RolloutKey
from rollbook.records.record import Record
from rollbook.records.task import Rollout
from rollbook.testing.manual_clock import ManualClock

BUSY = Reply(503, b"busy")
UNREACHABLE = SendFailed("refused", delivery=Delivery.NOT_SENT, exception_type="ClientConnectorError")


class InWriting:
    """A value whose commit has begun, and ends whoever is cancelled meanwhile."""

    def __init__(self, value, commit):
        self.value = value
        self._commit = asyncio.ensure_future(commit)

    def __await__(self):
        return self._safe().__await__()

    async def _safe(self):
        await to_the_end(self._commit)
        return self.value


class Pages:
    """Where every call of a ledger that came to an end is kept; any of them can be held back, or made to fail."""

    def __init__(self):
        self.calls, self.asked = [], []
        self.endings = []
        self.numbers = {}
        self.gates = {}
        self.begun = {name: asyncio.Event() for name in ("reserve", "write", "refused", "cut", "stopped")}
        self.broken = set()

    def hold(self, name):
        self.gates[name] = asyncio.Event()
        return self.gates[name]

    async def _commit(self, name, *told):
        self.asked.append(name)
        self.begun[name].set()
        await asyncio.sleep(0)
        if name in self.gates:
            await self.gates[name].wait()
        if name in self.broken:
            raise LedgerError(f"disk full at {name}")
        self.calls.append((name, *told))

    def reserve(self, rollout):
        number = self.numbers.get(rollout.key, rollout.attempt)
        self.numbers[rollout.key] = number + 1
        attempt = Rollout(rollout.key, rollout.line, rollout.server, attempt=number)
        return InWriting(attempt, self._commit("reserve", rollout.key.task, number))

    def write(self, rollout, ending, _elapsed=None):
        return InWriting(Record(rollout.key, rollout.attempt, ending.outcome), self._write(rollout, ending))

    async def _write(self, rollout, ending):
        await self._commit("write", rollout.key.task, rollout.attempt)
        self.endings.append((rollout.key, ending.outcome))

    async def refused(self, rollout, why):
        await self._commit("refused", rollout.key.task, rollout.attempt, why)

    async def cut(self, rollouts, why):
        await self._commit("cut", [(rollout.key.task, rollout.attempt) for rollout in rollouts], why)

    async def stopped(self, why):
        await self._commit("stopped", why)

    def told(self, *names):
        return [call for call in self.calls if call[0] in names]

    @property
    def written(self):
        return [call[1:] for call in self.told("write")]


def rollouts(count):
    for n in range(count):
        yield Rollout(RolloutKey(n, 0), msgspec.json.encode({"n": n}), "env")


class Dispatching:
    """A dispatcher that waits for its plan."""

    def __init__(self, transport, **options):
        self._transport = transport
        self._options = options

    def over(self, owed):
        return Dispatcher(self._transport, owed, **self._options)

    async def run(self, owed):
        return await self.over(owed).run()


def dispatcher(transport, pages, observe=lambda _event: None, *, clock=None, stop=None, jitter=None, **policy):
    return Dispatching(
        transport,
        ledger=pages,
        observe=observe,
        policy=Policy(**{"lanes": 4} | policy),
        clock=clock or ManualClock(),
        stop=stop or Stop(),
        jitter=jitter or (lambda _rollout: 1.0),
    )


def in_turn(*answers):
    """Answer the requests one after the other; the last answer is given for ever."""
    left = list(answers)
    return lambda _body: left.pop(0) if len(left) > 1 else left[0]


async def settled():
    """Let everything run that can run without time passing."""
    for _ in range(50):
        await asyncio.sleep(0)


async def finished(run):
    """Return what `run` returns; one that waits for something else than its own work is taken for stuck."""
    run = asyncio.ensure_future(run)
    for _ in range(2000):
        if run.done():
            break
        await asyncio.sleep(0)
    if not run.done():
        run.cancel()
        raise AssertionError("the run waits for something that does not come")
    return await run
