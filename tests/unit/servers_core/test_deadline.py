"""A request that says how long it may take is ended in time, and says on what is left."""

import asyncio
from collections.abc import Awaitable, Callable

import orjson
import pytest
from fastapi import FastAPI, Request
from omegaconf import OmegaConf
from starlette.responses import StreamingResponse

from ports import free_ports
from rollbook.config.types import BaseRunServerInstanceConfig
from rollbook.records.exchange import DEADLINE_HEADER
from rollbook.records.failure_report import report_in_headers
from rollbook.servers.base import SimpleServer
from rollbook.servers.client import ServerClient
from rollbook.servers.deadline import seconds_left
from rollbook.servers.http.http_client import request
from unit.servers_core.stand_ins import HEAD, behind_a_socket, in_process


class Slow(SimpleServer):
    """Waits for ever, and notes that it was ended; `/ask` has another server's `/left` answer."""

    def setup_webserver(self) -> FastAPI:
        app = FastAPI()
        self.setup_session_middleware(app)
        for path, handler in HANDLERS.items():
            app.post(path)(handler)
        app.post("/ask")(self.ask)
        app.post("/ask/{how}")(self.ask_to_wait)
        return app

    async def ask(self, raw: Request) -> dict[str, float | None]:
        here = seconds_left()
        reply = await self.server_client.post("other", "/left", headers={DEADLINE_HEADER.lower(): "99"})
        return {"here": here, "there": orjson.loads(await reply.read())}

    async def ask_to_wait(self, how: str) -> None:
        await self.server_client.post("other", f"/{how}")


class Seen:
    """What handlers noted."""

    ended: asyncio.Event
    times: int


async def wait() -> None:
    try:
        await asyncio.get_running_loop().create_future()
    finally:
        Seen.times += 1
        Seen.ended.set()


async def stream() -> StreamingResponse:
    async def chunks():
        yield b"begun"
        await asyncio.get_running_loop().create_future()

    return StreamingResponse(chunks())


async def left() -> float | None:
    return seconds_left()


async def model() -> None:
    other = await request("POST", SILENT[0] + "/wait", _model_call=True)
    await other.read()


SHORT = "0.5"
"""Seconds that are over soon, and enough to reach a handler on a busy machine."""
LIMIT = 60
SILENT: list[str] = []
HANDLERS: dict[str, Callable[[], Awaitable[object]]] = {
    "/wait": wait,
    "/stream": stream,
    "/left": left,
    "/model": model,
}
BOTH_WAYS = pytest.mark.parametrize("way", ["in this process", "over a socket"])


def slow(other_port: int = 1) -> FastAPI:
    other = {"resources_servers": {"slow": {"host": "127.0.0.1", "port": other_port, "entrypoint": "app.py"}}}
    config = BaseRunServerInstanceConfig(host="127.0.0.1", port=1, entrypoint="app.py", name="slow")
    return Slow(config=config, server_client=ServerClient(HEAD, OmegaConf.create({"other": other}))).build_app()


@pytest.fixture(autouse=True)
def seen():
    Seen.ended, Seen.times = asyncio.Event(), 0


def served(app, way):
    return in_process(app) if way == "in this process" else behind_a_socket(app)


async def asked(url, path, seconds):
    return await request("POST", url + path, headers={DEADLINE_HEADER: seconds})


@BOTH_WAYS
async def test_a_handler_whose_time_is_over_is_ended_and_its_request_answered_504(way):
    async with served(slow(), way) as url:
        reply = await asked(url, "/wait", SHORT)
        report = report_in_headers(reply.headers)
        assert (reply.status, Seen.times) == (504, 1)
        assert f"time was over: {SHORT} s" in orjson.loads(await reply.read())
        assert report is not None
        assert [(event.boundary, event.kind, event.http_status) for _, event in report.chain()] == [
            ("harness", "agent_timeout", 504)
        ]


@BOTH_WAYS
async def test_a_handler_that_ends_in_time_is_answered_as_always(way):
    async with served(slow(), way) as url:
        reply = await asked(url, "/left", "300")
        assert reply.status == 200
        assert 200 < orjson.loads(await reply.read()) <= 300


@pytest.mark.parametrize("said", ["soon", "-1", "nan", "inf", "1e3", "", "1_0"])
async def test_what_is_no_number_of_seconds_is_ignored(said):
    async with in_process(slow()) as url:
        assert await (await asked(url, "/left", said)).read() == b"null"


async def test_another_server_is_told_what_is_left_and_not_what_there_was():
    (port,) = free_ports(1)
    async with in_process(slow(), port), in_process(slow(port)) as url:
        told = orjson.loads(await (await asked(url, "/ask", "300")).read())
    assert 200 < told["there"] <= told["here"] + 0.01 <= 300.01


async def test_without_a_deadline_none_is_sent_on():
    (port,) = free_ports(1)
    async with in_process(slow(), port), in_process(slow(port)) as url:
        assert orjson.loads(await (await request("POST", url + "/ask")).read())["here"] is None


@BOTH_WAYS
async def test_a_handler_of_another_server_ends_with_the_one_that_asked_it(way):
    (port,) = free_ports(1)
    async with in_process(slow(), port), served(slow(port), way) as url:
        assert (await asked(url, "/ask/wait", SHORT)).status == 504
        await asyncio.wait_for(Seen.ended.wait(), LIMIT)


async def test_a_reply_that_began_breaks_off_when_the_time_is_over():
    async with behind_a_socket(slow()) as url:
        reply = await asked(url, "/stream", SHORT)
        assert reply.status == 200
        with pytest.raises(Exception, match=r"payload|not completed|disconnected"):
            await reply.read()


async def test_a_call_of_a_model_endpoint_takes_no_longer_than_what_is_left():
    async with behind_a_socket(slow()) as silent, in_process(slow()) as url:
        SILENT[:] = [silent]
        assert (await asked(url, "/model", SHORT)).status == 504
        await asyncio.wait_for(Seen.ended.wait(), LIMIT)
