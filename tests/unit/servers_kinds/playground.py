"""Several servers in one process, under one configuration, and a client that keeps what they were asked."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field

import orjson
from fastapi import FastAPI, Request
from omegaconf import OmegaConf
from starlette.responses import Response

from ports import free_ports
from rollbook.servers.client import ServerClient
from rollbook.servers.http.embedded_registry import register_embedded, unregister_embedded
from rollbook.servers.openai.openai_response import NeMoGymResponse
from unit.servers_core.stand_ins import HEAD

AGENTS, MODELS, RESOURCES = "responses_api_agents", "responses_api_models", "resources_servers"
ENVIRONMENTS = "environment_servers"
EPISODE = {"rollout_id": "7-2", "attempt": 0}
TASK = {"taskset": "weather", "task_id": "7"}


@dataclass(frozen=True)
class Entry:
    """A server of the configuration; `build` makes its application from a client."""

    kind: str
    build: Callable[[ServerClient], object]
    block: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class Answer:
    status: int
    body: object
    cookies: dict[str, str]
    headers: Mapping[str, str]


@dataclass(frozen=True)
class Playground:
    client: ServerClient

    async def post(self, name: str, path: str, body: object, **options: object) -> Answer:
        reply = await self.client.post(name, path, json=body, **options)
        raw = await reply.read()
        cookies = {key: morsel.value for key, morsel in reply.cookies.items()}
        try:
            return Answer(reply.status, orjson.loads(raw), cookies, reply.headers)
        except orjson.JSONDecodeError:
            return Answer(reply.status, raw.decode(), cookies, reply.headers)


@asynccontextmanager
async def playing(servers: Mapping[str, Entry], **top: object) -> AsyncIterator[Playground]:
    """Answer all `servers` in this process inside the block."""
    config = dict(top)
    for (name, entry), port in zip(servers.items(), free_ports(len(servers)), strict=True):
        block = {"entrypoint": "app.py", "host": "127.0.0.1", "port": port, **entry.block}
        config[name] = {entry.kind: {name: block}}
    client = ServerClient(HEAD, OmegaConf.create(config))
    async with AsyncExitStack() as stack:
        for name, entry in servers.items():
            built = entry.build(client)
            app = built if isinstance(built, FastAPI) else built.build_app()
            server = register_embedded("127.0.0.1", config[name][entry.kind][name]["port"], app)
            stack.push_async_callback(server.close)
            stack.callback(unregister_embedded, server)
        yield Playground(client)


@dataclass
class Scripted:
    """A server that answers each path from its script, entry by entry, and keeps what it was asked.

    A script's entry is a JSON value (status 200), a status and a value, a function of the body that gives one of these,
    or an event that the reply waits for. The last entry answers from then on.
    """

    script: Mapping[str, list[object]]
    sets_cookie: str | None = None
    asked: list[tuple[str, object]] = field(default_factory=list)
    cookies: list[dict[str, str]] = field(default_factory=list)
    rollouts: list[str | None] = field(default_factory=list)

    def paths(self) -> list[str]:
        return [path for path, _ in self.asked]

    def bodies(self, path: str) -> list[object]:
        return [body for asked_path, body in self.asked if asked_path == path]

    def app(self, _client: ServerClient | None = None) -> FastAPI:
        app = FastAPI()

        @app.post("/{path:path}")
        async def answer(path: str, request: Request) -> Response:
            raw = await request.body()
            body = orjson.loads(raw) if raw else None
            self.asked.append(("/" + path, body))
            self.cookies.append(dict(request.cookies))
            self.rollouts.append(request.headers.get("x-rollout-id"))
            left = self.script.get("/" + path, [(404, {"detail": "Not Found"})])
            said = left.pop(0) if len(left) > 1 else left[0]
            if isinstance(said, asyncio.Event):
                await said.wait()
            said = said(body) if callable(said) else said
            status, value = said if isinstance(said, tuple) else (200, said)
            if 300 <= status < 400:
                return Response(None, status, {"location": value})
            content = value if isinstance(value, bytes) else orjson.dumps(value)
            reply = Response(content, status, media_type="application/json")
            if self.sets_cookie:
                reply.set_cookie(self.sets_cookie, f"{self.sets_cookie}-{len(self.asked)}")
            return reply

        return app


def message(text: str) -> dict[str, object]:
    content = [{"type": "output_text", "text": text, "annotations": []}]
    return {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": content}


def call(name: str, arguments: str, call_id: str = "c1") -> dict[str, object]:
    return {"type": "function_call", "call_id": call_id, "name": name, "arguments": arguments}


def thought(text: str) -> dict[str, object]:
    return {"id": "rs_1", "type": "reasoning", "summary": [{"type": "summary_text", "text": text}]}


def reply_with(*output: object, tokens: int | None = None, **fields: object) -> dict[str, object]:
    """Return a model's response as JSON; `tokens` is its input and its output."""
    usage = None
    if tokens is not None:
        usage = {
            "input_tokens": tokens,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": tokens,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": 2 * tokens,
        }
    frame = {"id": "resp_1", "created_at": 1.0, "model": "m", "object": "response", "usage": usage}
    rest = {"parallel_tool_calls": True, "tool_choice": "auto", "tools": []}
    NeMoGymResponse.model_validate({**frame, **rest, "output": list(output), **fields})
    return {**frame, **rest, "output": list(output), **fields}


async def get(playground: Playground, name: str, path: str) -> Answer:
    reply = await playground.client.get(name, path)
    return Answer(reply.status, orjson.loads(await reply.read()), {}, reply.headers)
