"""Servers of the shelf, called in the test's own event loop: no socket, one cookie jar, lifespan included."""

import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from http.cookies import SimpleCookie
from pathlib import Path

import pytest

from rollbook import BaseServerConfig, ServerClient
from rollbook.servers.http.embedded_call import EmbeddedRequest, call_embedded, request_scope
from rollbook.servers.http.request_body import cookie_header
from rollbook.servers.serving.lifespan import Lifespan

REPOSITORY = Path(__file__).resolve().parents[3]
SHARED_ROWS = Path(os.environ.get("ROLLBOOK_SHARED_DATA") or REPOSITORY.parent / "shared" / "data" / "rows")
COMPONENTS = REPOSITORY / "src" / "rollbook" / "components"


def rows(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def shared_rows(name):
    """Return the shared rows of an environment, and skip the test where there are none."""
    path = SHARED_ROWS / f"{name}.jsonl"
    if not path.exists():
        pytest.skip(f"no rows at {path}; name their folder in ROLLBOOK_SHARED_DATA")
    return rows(path)


def example_rows(name):
    return rows(COMPONENTS / "resources_servers" / name / "data" / "example.jsonl")


def built(server_class, name="tested", client=None, **options):
    """Return a server of the shelf on its own configuration class."""
    config = server_class.config_class()(host="127.0.0.1", port=1, entrypoint="app.py", name=name, **options)
    nobody = ServerClient(BaseServerConfig(host="127.0.0.1", port=1), {})
    return server_class(config=config, server_client=client or nobody)


def response(*output):
    """Return a response of these items; a text stands for an assistant's message."""
    items = [message(item) if isinstance(item, str) else item for item in output]
    return {"id": "resp_1", "created_at": 1.0, "model": "m", "object": "response", "output": items}


def message(text):
    part = {"type": "output_text", "text": text, "annotations": []}
    return {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": [part]}


def tool_call(name, call_id="call_1", /, **arguments):
    return {"type": "function_call", "call_id": call_id, "name": name, "arguments": json.dumps(arguments)}


@dataclass
class Answer:
    status: int
    headers: dict
    body: bytes

    def json(self):
        return json.loads(self.body)


@dataclass
class Caller:
    app: object
    state: dict
    cookies: SimpleCookie = field(default_factory=SimpleCookie)

    async def post(self, path, body, **headers):
        return await self._call("POST", path, json.dumps(body).encode(), headers)

    async def get(self, path):
        return await self._call("GET", path, b"", {})

    async def ok(self, path, body, **headers):
        answer = await self.post(path, body, **headers)
        assert answer.status == 200, answer.body
        return answer.json()

    def newcomer(self):
        """The same server with an empty cookie jar."""
        return Caller(self.app, self.state)

    async def _call(self, method, path, body, headers):
        named = {name.replace("_", "-").lower(): value for name, value in headers.items()}
        cookie = cookie_header(self.cookies)
        all_headers = {"content-type": "application/json", **named} | ({"cookie": cookie} if cookie else {})
        request = EmbeddedRequest(method, "http://127.0.0.1:1", path, all_headers, body)
        reply = await call_embedded(self.app, request_scope(request, "127.0.0.1", 1, self.state), request, set())
        self.cookies.update(reply.cookies)
        return Answer(reply.status, dict(reply.headers), await reply.read())


@asynccontextmanager
async def served(server) -> AsyncIterator[Caller]:
    """Serve `server` inside the block."""
    app = server.build_app()
    lifespan = Lifespan(app, "tested")
    state = dict(await lifespan.startup())
    try:
        yield Caller(app, state)
    finally:
        await lifespan.shutdown()
