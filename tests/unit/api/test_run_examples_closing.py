"""Stopping early: what is in flight is given up at once, and what is finished is not lost."""

import asyncio
import gc
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from omegaconf import OmegaConf

from ports import free_port
from rollbook.api.direct_call import Pacing
from rollbook.api.direct_completed import CompletedRollout
from rollbook.api.rollout_collection import RolloutCollectionHelper
from rollbook.config import parser
from rollbook.config.types import BaseServerConfig
from rollbook.records.failure_kinds import Delivery
from rollbook.records.outcome import Failed, Interrupted, NeverStarted, Scored
from rollbook.servers.http.embedded_registry import register_embedded, unregister_embedded
from stub import ENVIRONMENT, Stub, serving
from unit.api.direct_calls import LOST, Call, reply, rows

IN_FLIGHT = 500


def open_files():
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


async def until(condition):
    for _ in range(1000):
        if condition():
            return
        await asyncio.sleep(0)
    raise AssertionError("it does not come to that")


class Silent(asyncio.Protocol):
    """Reads requests and never answers; counts connections that are open, and requests."""

    def __init__(self):
        self.open, self.requests, self.changed = 0, 0, asyncio.Event()

    def __call__(self):
        return self

    def connection_made(self, _transport):
        self.open += 1

    def data_received(self, data):
        self.requests += data.startswith(b"POST /run")
        self.changed.set()

    def connection_lost(self, _error):
        self.open -= 1
        self.changed.set()

    async def until(self, condition):
        while not condition():
            self.changed.clear()
            await self.changed.wait()


@asynccontextmanager
async def silent_environment():
    """Give a head server whose environment server never answers, and that server."""
    silent = Silent()
    server = await asyncio.get_running_loop().create_server(silent, "127.0.0.1", 0, backlog=2 * IN_FLIGHT)
    with serving() as stub:
        config = stub.config()
        config[ENVIRONMENT]["environment_servers"]["legacy_agent"]["port"] = server.sockets[0].getsockname()[1]
        stub.config = lambda: config
        yield BaseServerConfig(host="127.0.0.1", port=stub.port), silent
    server.close()
    await server.wait_closed()


@pytest.mark.parametrize("end", ["aclose", "aclose_and_drain"])
@pytest.mark.parametrize("limit", [None, IN_FLIGHT], ids=["eager", "bounded"])
async def test_closing_with_500_requests_in_flight_leaves_no_socket_and_no_task(end, limit):
    async with silent_environment() as (head, silent):
        results = RolloutCollectionHelper().run_examples(rows(IN_FLIGHT + 100), head, max_resident_tasks=limit)
        tasks, sockets = asyncio.all_tasks(), open_files()
        waiter = asyncio.ensure_future(next(results))
        await silent.until(lambda: silent.requests >= IN_FLIGHT)
        assert not await getattr(results, end)()
        await silent.until(lambda: silent.open == 0)
        await asyncio.gather(waiter, return_exceptions=True)
        assert waiter.cancelled()
        assert asyncio.all_tasks() == tasks
        assert open_files() <= sockets
        assert list(results) == []


async def test_what_had_ended_before_a_drain_comes_back_with_its_errors():
    call = Call(reply(), reply(500), examples=rows(3))
    call.transport.hold(lambda body: body["_ng_task_index"] == 2)
    waiting = iter(call.results)
    handed = [next(waiting) for _ in range(3)]
    await until(lambda: len(call.results._completions._claims._ready) == 2)
    drained = await call.results.aclose_and_drain()
    (row, result), error = drained[0].result(), drained[1].exception()
    assert (row["_ng_task_index"], result, error.status) == (0, {"reward": 1.0}, 500)
    assert [sent.body["_ng_task_index"] for sent in call.transport.cancelled] == [2]
    assert call.transport.closed
    with pytest.raises(asyncio.CancelledError):
        await handed[0]


class Kept:
    """A sink that keeps what it is told."""

    def __init__(self):
        self.told: list[CompletedRollout] = []
        self.closed = 0

    async def ready(self):
        pass

    async def write(self, completed):
        await asyncio.sleep(0)
        self.told.append(completed)

    async def close(self):
        self.closed += 1


async def test_a_sink_is_told_of_every_rollout_once_and_of_those_that_were_cut_off():
    sink = Kept()
    call = Call(reply(), reply(503), reply(), examples=rows(4), sink=sink, route_failures=True)
    call.transport.hold(lambda body: body["_ng_task_index"] == 2)
    first, second = (asyncio.ensure_future(next(call.results)) for _ in range(2))
    await asyncio.gather(first, second)
    await until(lambda: len(sink.told) == 3)
    await call.results.aclose()
    await call.results.aclose()
    outcomes = {done.row.rollout_id: done.ending.outcome for done in sink.told}
    assert [type(outcomes[name]) for name in ("0-0", "1-0", "3-0")] == [Scored, Failed, Scored]
    cut = outcomes["2-0"]
    assert isinstance(cut, Interrupted)
    assert (cut.failure_class, cut.delivery) == ("kill_shaped", Delivery.POSSIBLY_DELIVERED)
    assert sink.closed == 1


class SlowlyClosed(Call):
    """A call with rollouts in flight whose connections take several turns of the loop to close."""

    def __init__(self, sink, limit=None):
        super().__init__(reply(), examples=rows(3), sink=sink, pacing=Pacing(max_resident_tasks=limit))
        self.transport.hold(lambda _body: True)
        self.transport.aclose = self._close

    async def _close(self):
        for _ in range(4):
            await asyncio.sleep(0)
        self.transport.closed += 1


async def turns(count):
    for _ in range(count):
        await asyncio.sleep(0)


async def closed_again_while_it_closes(call, turn):
    first = asyncio.create_task(call.results.aclose())
    await turns(turn)
    second = asyncio.create_task(call.results.aclose_and_drain())
    await turns(turn // 2)
    await call.results.aclose()
    at_return = call.transport.closed
    await asyncio.gather(first, second)
    return at_return


async def closed_again_after_the_close_was_cancelled(call, turn):
    first = asyncio.create_task(call.results.aclose())
    await turns(turn)
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    await call.results.aclose()
    return call.transport.closed


@pytest.mark.parametrize("turn", range(12))
@pytest.mark.parametrize("close", [closed_again_while_it_closes, closed_again_after_the_close_was_cancelled])
@pytest.mark.parametrize(("limit", "sent"), [(None, 3), (2, 2)], ids=["eager", "bounded"])
async def test_whoever_closes_again_finds_everything_closed_once_and_nothing_cut_short(limit, sent, close, turn):
    sink = Kept()
    call = SlowlyClosed(sink, limit)
    waiter = asyncio.ensure_future(next(call.results))
    await until(lambda: len(call.transport.sent) == sent)
    assert await close(call, turn) == 1
    assert (sink.closed, call.transport.closed, len(sink.told)) == (1, 1, sent)
    await asyncio.gather(waiter, return_exceptions=True)


async def test_a_sink_is_closed_although_the_connections_cannot_be():
    sink = Kept()
    call = SlowlyClosed(sink)
    call.transport.aclose = broken
    waiter = asyncio.ensure_future(next(call.results))
    await until(lambda: len(call.transport.sent) == 3)
    with pytest.raises(OSError, match="broken"):
        await call.results.aclose()
    await asyncio.gather(waiter, return_exceptions=True)
    assert sink.closed == 1


async def broken():
    raise OSError("broken")


class Unclosable(Kept):
    async def close(self):
        raise OSError("disk full\nat close")


@pytest.mark.parametrize("part", ["sink", "transport"])
@pytest.mark.parametrize("limit", [None, 1], ids=["eager", "bounded"])
async def test_a_close_that_fails_costs_no_result_and_is_told_in_one_line(caplog, part, limit):
    unseen = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, context: unseen.append(context))
    call = Call(
        examples=rows(2), sink=Unclosable() if part == "sink" else Kept(), pacing=Pacing(max_resident_tasks=limit)
    )
    if part == "transport":
        call.transport.aclose = broken
    assert len(await call.all()) == 2
    del call
    gc.collect()
    await asyncio.sleep(0)
    said = "OSError: disk full at close" if part == "sink" else "OSError: broken"
    assert [record.getMessage() for record in caplog.records] == [
        f"what the rollouts of a call share is not closed: {said}"
    ]
    assert unseen == []


async def test_whoever_closes_after_the_last_result_is_told_that_it_failed():
    call = Call(examples=rows(2), sink=Unclosable())
    assert len(await call.all()) == 2
    with pytest.raises(OSError, match="disk full"):
        await call.results.aclose()


async def test_a_sink_is_told_of_the_sends_of_a_result_that_took_two():
    sink = Kept()
    call = Call(LOST, reply(), sink=sink, sends=3)
    waiting = asyncio.ensure_future(next(call.results))
    await call.clock.asleep()
    call.clock.advance(1)
    await waiting
    assert [failure.delivery for failure in sink.told[0].sends.failures] == [Delivery.POSSIBLY_DELIVERED]
    assert (len(sink.told[0].sends.exchanges), sink.told[0].latency_ms) == (2, 1000.0)
    assert sink.closed == 1


async def test_a_sink_is_told_of_rows_that_were_not_started_for_want_of_time():
    sink = Kept()
    await Call(sink=sink, pacing=Pacing(budget=0)).only()
    assert isinstance(sink.told[0].ending.outcome, NeverStarted)


async def test_servers_of_this_process_are_reached_without_a_socket_and_closing_cancels_their_handlers():
    stub, cancelled, running = Stub(), [], asyncio.Event()
    stub.port = free_port()

    async def app(scope, _receive, _send):
        running.set()
        try:
            await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            cancelled.append(scope["path"])
            raise

    parser.set_global_config_dict(OmegaConf.create(stub.config()))
    server = register_embedded("127.0.0.1", stub.port, app)
    try:
        results = RolloutCollectionHelper().run_examples(rows(1))
        waiter = asyncio.ensure_future(next(results))
        await running.wait()
        assert not server.is_open
        await results.aclose()
        assert cancelled == ["/run"]
        await asyncio.gather(waiter, return_exceptions=True)
    finally:
        unregister_embedded(server)
        parser.forget_global_config_dict()
