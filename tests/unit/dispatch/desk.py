"""A transport whose every request is moved and answered by the test, and a run over it on a clock that stands still."""

import asyncio
from dataclasses import dataclass, field

import msgspec

from rollbook.dispatch.dispatcher import Dispatcher, Policy
from rollbook.dispatch.stop import Stop
from rollbook.records.exchange import Exchange, Phase, Reply
from rollbook.records.identity import RolloutKey
from rollbook.records.task import Rollout
from rollbook.testing.manual_clock import ManualClock
from unit.dispatch.pages import Pages, finished, settled

OK = Reply(200, b'{"reward":1.0}')


@dataclass(slots=True, eq=False)
class Call:
    """One request that is out, still connecting."""

    task: int
    server: str
    exchange: Exchange
    reply: asyncio.Future = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    was_cancelled: bool = False

    def sent(self):
        self.exchange.host = f"{self.server}:80"
        self.exchange.enter(Phase.WAITING)

    def reading(self, status=200):
        self.exchange.status = status
        self.exchange.enter(Phase.READING)

    def answer(self, reply=OK):
        """Answer, unless nobody waits any more."""
        if self.reply.done():
            return
        if isinstance(reply, Exception):
            self.reply.set_exception(reply)
        else:
            self.reply.set_result(reply)


class Desk:
    """A `Transport`: `calls` has every request in the order in which it came, `out` those without an end."""

    def __init__(self):
        self.calls, self.out = [], []
        self.most = {}

    async def send(self, server, _path, body, exchange):
        call = Call(msgspec.json.decode(body)["n"], server, exchange)
        self.calls.append(call)
        self.out.append(call)
        self.most[server] = max(self.most.get(server, 0), sum(one.server == server for one in self.out))
        try:
            return await call.reply
        except asyncio.CancelledError:
            call.was_cancelled = True
            raise
        finally:
            self.out.remove(call)

    @property
    def cancelled(self):
        return [call.task for call in self.calls if call.was_cancelled]

    @property
    def tasks(self):
        return [call.task for call in self.calls]


def to_servers(*servers):
    """Yield a rollout for each of `servers`, numbered as they come."""
    for n, server in enumerate(servers):
        yield Rollout(RolloutKey(n, 0), msgspec.json.encode({"n": n}), server)


class Run:
    """A dispatcher over a desk: what it sends, writes and tells."""

    def __init__(self, owed, ceilings=None, *, transport=None, further=lambda *_: None, observe=None, **policy):
        self.desk, self.pages = transport or Desk(), Pages()
        self.clock, self.stop, self.seen = ManualClock(), Stop(), []
        self.dispatcher = Dispatcher(
            self.desk,
            iter(owed),
            ledger=self.pages,
            observe=observe or self.seen.append,
            policy=Policy(**{"lanes": 4} | policy),
            clock=self.clock,
            stop=self.stop,
            ceilings=ceilings,
            further=further,
            jitter=lambda _rollout: 1.0,
        )
        self.task = asyncio.create_task(self.dispatcher.run())

    async def passes(self, seconds, every=None):
        """Let time pass, in one step or in steps, look over the flights after each, and let all run that can."""
        for step in [seconds] if every is None else [every] * round(seconds / every):
            self.clock.advance(step)
            self.dispatcher.flights.sweep()
            await settled()

    async def ends(self):
        return await finished(self.task)

    @property
    def outcomes(self):
        return {key.task: outcome for key, outcome in self.pages.endings}
