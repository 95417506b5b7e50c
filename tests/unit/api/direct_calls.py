"""Direct calls over a scripted transport, a clock that stands still and the configuration of the stub."""

import msgspec
from omegaconf import OmegaConf

from rollbook.api.direct_call import DirectCall, Pacing
from rollbook.api.direct_rollouts import Handover
from rollbook.api.direct_rows import direct_rows
from rollbook.plan.directory import Directory
from rollbook.records.exchange import Reply, SendFailed
from rollbook.records.failure_kinds import Delivery
from rollbook.testing.manual_clock import ManualClock
from rollbook.testing.scripted_transport import ScriptedTransport
from stub import Stub, adding

LOST = SendFailed(
    "adder: ServerDisconnectedError: gone",
    delivery=Delivery.POSSIBLY_DELIVERED,
    exception_type="ServerDisconnectedError",
)
UNREACHABLE = SendFailed("adder: refused", delivery=Delivery.NOT_SENT, exception_type="ClientConnectorError")


def directory(**more):
    return Directory(OmegaConf.create(Stub().config() | more))


def rows(count=1, **extra):
    """Return preprocessed rows of `count` tasks."""
    return [row | {"_ng_task_index": n, "_ng_rollout_index": 0} | extra for n, row in enumerate(adding(count))]


def reply(status=200, **payload):
    return Reply(status, msgspec.json.encode(payload or {"reward": 1.0}))


def in_turn(*answers):
    """Answer the requests one after the other; the last answer is given for ever."""
    left = list(answers)
    return lambda _body: left.pop(0) if len(left) > 1 else left[0]


class Wire(ScriptedTransport):
    """A scripted transport that is closed in the end."""

    closed = 0

    async def aclose(self):
        self.closed += 1


class Call:
    """One call over `answers`; `results` is what it returns."""

    def __init__(self, *answers, examples=None, run=None, server=None, sends=1, pacing=None, clock=None, **handover):
        self.transport = Wire(in_turn(*answers) if answers else in_turn(reply()))
        self.clock = clock or ManualClock()
        prepared = direct_rows(rows() if examples is None else examples, directory(), server=server, run=run)
        call = DirectCall(
            self.transport, self.clock, self.clock.monotonic(), pacing or Pacing(), Handover(**handover), sends
        )
        self.results = call.results(prepared)

    async def all(self):
        return [await awaitable for awaitable in self.results]

    async def only(self):
        (found,) = await self.all()
        return found[1]
