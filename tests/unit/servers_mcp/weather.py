"""A resources server with tools of every shape, and a client that asks it over plain HTTP."""

import json
from contextlib import asynccontextmanager
from typing import Any

import httpx
from fastapi import FastAPI, HTTPException, Request
from fastapi.responses import PlainTextResponse
from omegaconf import OmegaConf
from pydantic import BaseModel, Field, PrivateAttr

from rollbook.servers.client import ServerClient
from rollbook.servers.kinds.resources_server import BaseResourcesServerConfig, SimpleResourcesServer
from rollbook.servers.kinds.resources_sessions import BaseVerifyRequest, BaseVerifyResponse
from rollbook.servers.session_key import SESSION_ID_KEY
from unit.servers_core.stand_ins import HEAD

ACCEPT = {"Accept": "application/json, text/event-stream"}
CALL = {"type": "function_call", "call_id": "c1", "name": "mcp__weather__get_weather", "arguments": "{}"}


class City(BaseModel):
    city: str = Field(min_length=2)


class Weather(BaseModel):
    city: str
    weather: str


class WeatherAnswer(BaseVerifyResponse):
    seen: list[str]
    called: list[str]


class WeatherServer(SimpleResourcesServer):
    """Remembers which cities each session asked for; its reward is whether `get_weather` was called."""

    config: BaseResourcesServerConfig

    _asked: dict[str, list[str]] = PrivateAttr(default_factory=dict)

    def setup_webserver(self) -> FastAPI:
        app = super().setup_webserver()
        app.post("/get_weather")(self.get_weather)
        app.post("/forget")(self.forget)
        app.post("/closed")(self.closed)
        app.post("/note")(self.note)
        return app

    async def get_weather(self, request: Request, body: City) -> Weather:
        """Tell the weather of a city."""
        self._asked.setdefault(request.session[SESSION_ID_KEY], []).append(body.city)
        return Weather(city=body.city, weather="sunny")

    def forget(self, request: Request) -> str:
        """Forget what was asked."""
        self._asked.pop(request.session[SESSION_ID_KEY], None)
        return "forgotten"

    async def closed(self) -> None:
        raise HTTPException(403, "the office is closed")

    async def note(self, body: dict[str, Any]) -> PlainTextResponse:
        return PlainTextResponse(f"noted {len(body)}", status_code=409 if "wrong" in body else 200)

    async def verify(self, request: Request, body: BaseVerifyRequest) -> WeatherAnswer:
        called = [item.name for item in body.response.output if item.type == "function_call"]
        seen = self._asked.get(request.session[SESSION_ID_KEY], [])
        return WeatherAnswer(**body.model_dump(), reward=float("get_weather" in called), seen=seen, called=called)


def weather(cls: type[WeatherServer] = WeatherServer, *, exposed: bool = True) -> WeatherServer:
    config = BaseResourcesServerConfig(
        host="127.0.0.1", port=1, entrypoint="app.py", name="weather", domain="agent", expose_tools_over_mcp=exposed
    )
    return cls(config=config, server_client=ServerClient(HEAD, OmegaConf.create({})))


@asynccontextmanager
async def asked(app):
    """Yield an HTTP client of an application, with a jar of its own."""
    transport = httpx.ASGITransport(app=app)
    async with httpx.AsyncClient(transport=transport, base_url="http://weather") as client:
        yield client


async def rpc(client, method, params=None, token=None, **options):
    headers = {**ACCEPT, **({"X-NeMo-Gym-Session-Token": token} if token else {})}
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params or {}, **options}
    reply = await client.post("/mcp", headers=headers, content=json.dumps(message))
    return reply.json()


async def seeded(client, body=None):
    """Seed a session and return its token."""
    reply = await client.post("/seed_session", json=body or {})
    assert reply.status_code == 200
    return reply.json()["mcp"]["headers"]["X-NeMo-Gym-Session-Token"]


def verify_body(*items):
    response = {
        "id": "resp_1",
        "created_at": 1.0,
        "model": "m",
        "object": "response",
        "output": list(items),
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
    }
    return {"responses_create_params": {"input": "Weather?"}, "response": response}
