"""A scripted server on loopback that plays head, environment server and agent, and logs every request.

A script maps a row to an `aiohttp.web.Response`, or to None for the default: reward 1.0. It may be asynchronous.
"""

import asyncio
import json
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from inspect import isawaitable

import yaml
from aiohttp import web

Script = Callable[[dict], web.StreamResponse | Awaitable[web.StreamResponse | None] | None]
AGENT = "adder"
ENVIRONMENT = "adder_environment_server"


class Stub:
    """One running stub; `requests` are the rows that `/run` was sent, in order."""

    def __init__(self, script: Script | None = None) -> None:
        self.script = script or (lambda _row: None)
        self.requests: list[dict] = []
        self.aggregated: list[dict] = []
        self.before_metrics: Callable[[], Awaitable[object]] | None = None
        self.port = 0

    @property
    def overrides(self) -> list[str]:
        """What points a command at this stub."""
        return ["+head_server.host=127.0.0.1", f"+head_server.port={self.port}"]

    def config(self) -> dict:
        here = {"entrypoint": "app.py", "host": "127.0.0.1", "port": self.port}
        agent = {"type": "responses_api_agents", "name": AGENT}
        return {
            "head_server": {"host": "127.0.0.1", "port": self.port},
            AGENT: {"responses_api_agents": {"simple_agent": here}},
            ENVIRONMENT: {"environment_servers": {"legacy_agent": here | {"agent_server": agent}}},
        }

    async def head(self, _request: web.Request) -> web.Response:
        return web.json_response(yaml.safe_dump(self.config()))

    async def run(self, request: web.Request) -> web.StreamResponse:
        row = await request.json()
        self.requests.append(row)
        made = self.script(row)
        reply = await made if isawaitable(made) else made
        return reply or web.json_response(row | {"reward": 1.0, "response": {"output": []}})

    async def aggregate(self, request: web.Request) -> web.Response:
        body = await request.json()
        self.aggregated.append(body)
        if self.before_metrics is not None:
            await self.before_metrics()
        rewards = [row["reward"] for row in body["verify_responses"] if row.get("reward") is not None]
        mean = sum(rewards) / len(rewards) if rewards else 0.0
        metrics = {"mean/reward": mean}
        return web.json_response(
            {"agent_metrics": metrics, "key_metrics": metrics, "group_level_metrics": [], "repeat_level_metrics": []}
        )


@contextmanager
def serving(script: Script | None = None) -> Iterator[Stub]:
    """Run a stub in a thread of its own for as long as the block lasts."""
    stub, started, loop = Stub(script), threading.Event(), asyncio.new_event_loop()
    stopping = asyncio.Event()

    async def serve() -> None:
        app = web.Application(client_max_size=1 << 30)
        app.router.add_get("/global_config_dict_yaml", stub.head)
        app.router.add_post("/run", stub.run)
        app.router.add_post("/aggregate_metrics", stub.aggregate)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        stub.port = runner.addresses[0][1]
        started.set()
        await stopping.wait()
        await runner.cleanup()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),), daemon=True)
    thread.start()
    started.wait(10)
    try:
        yield stub
    finally:
        loop.call_soon_threadsafe(stopping.set)
        thread.join(10)
        loop.close()


def adding(count: int, **extra: object) -> list[dict]:
    """Return rows "add n and n"."""
    return [
        {"responses_create_params": {"input": f"add {n} and {n}"}, "agent_ref": {"name": AGENT}} | extra
        for n in range(count)
    ]


def lines(rows: list[dict], end: str = "\n") -> bytes:
    """Return rows as JSON Lines."""
    return "".join(json.dumps(row) + end for row in rows).encode()
