"""A whole episode played to a server again, in this process: how a verifier is asked that judges what a session did.

Rules:
* The server is asked by its own routes, in one session of its own, and ended afterwards: whatever it opens, it closes.
* A server that is stepped (`/reset`) is reset and handed one turn after the other; its reward is the sum of the steps'.
* Any other one is seeded, is sent each tool call at `/<name>`, and then verifies. What a tool answers ends no rollout,
  and does not matter here either. A call of one of its own routes is none of a tool: as in a rollout, it leads nowhere.
* A refusal, and a reward that is masked, is an error: neither measures the answer.

Source: servers.md §3.4, §6.2, §8.12.
"""

import re
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from http.cookies import SimpleCookie
from typing import Any, Final
from urllib.parse import quote

import orjson
from fastapi import FastAPI
from pydantic import BaseModel
from starlette.routing import Route

from rollbook.errors import VerifierFixtureError
from rollbook.records.json_values import JsonObject
from rollbook.servers.base import SimpleServer
from rollbook.servers.http.embedded_call import EmbeddedRequest, call_embedded, request_scope
from rollbook.servers.http.embedded_response import EmbeddedResponse
from rollbook.servers.http.request_body import cookie_header, json_bytes
from rollbook.servers.kinds.untrusted import untrusted_json
from rollbook.servers.mcp.tools import RESERVED_NAMES
from rollbook.servers.serving.lifespan import Lifespan

_HOST: Final = "127.0.0.1"
_PORT: Final = 1
_RESET: Final = "/reset"
_CALL: Final = "function_call"
_TOLD_CHARS: Final = 500
_TOOL_NAME: Final = re.compile(r"[A-Za-z0-9_.-]+")
_OWN_ROUTES: Final = RESERVED_NAMES | {"reverify_mode", ".", ".."}


async def replay_episode(server: SimpleServer, request: BaseModel) -> float:
    """Return the reward of an episode: the row and the response of `request`, played to `server`.

    It is made to be the `invoke` of a `VerifierFixture`. A turn is a run of tool calls, or one message, with the
    thoughts before it.

    Raises:
        VerifierFixtureError: the server refused the row or its verification, or masked the reward.
        ServingError: it does not start.

    """
    told = request.model_dump(mode="json", exclude_unset=True)
    row = {name: value for name, value in told.items() if name != "response"}
    async with _session_with(server) as session:
        if _RESET in session.paths:
            return await _stepped(session, row, told["response"])
        return await _verified(session, row, told)


class _Session:
    """One session with an application of this process."""

    def __init__(self, app: FastAPI, state: Mapping[str, object]) -> None:
        self.paths = {route.path for route in app.routes if isinstance(route, Route)}
        self._app = app
        self._state = state
        self._cookies: SimpleCookie = SimpleCookie()

    async def post(self, path: str, body: object) -> EmbeddedResponse:
        """Return what the server answers, whatever it is."""
        headers = {"content-type": "application/json"}
        cookie = cookie_header(self._cookies)
        request = EmbeddedRequest(
            "POST",
            f"http://{_HOST}:{_PORT}",
            quote(path),
            headers | ({"cookie": cookie} if cookie else {}),
            json_bytes(body),
        )
        reply = await call_embedded(self._app, request_scope(request, _HOST, _PORT, self._state), request, set())
        self._cookies.update(reply.cookies)
        return reply

    async def told(self, path: str, body: object) -> JsonObject:
        """Return what the server tells.

        Raises:
            VerifierFixtureError: it refused, or answered no object.

        """
        reply = await self.post(path, body)
        text = reply.body.decode(errors="replace")
        answer = orjson.loads(reply.body) if reply.ok else None
        if not isinstance(answer, dict):
            raise VerifierFixtureError(f"{path} answered {reply.status}: {text[:_TOLD_CHARS]}")
        return answer


@asynccontextmanager
async def _session_with(server: SimpleServer) -> AsyncIterator[_Session]:
    app = server.build_app()
    lifespan = Lifespan(app, server.config.name)
    state = await lifespan.startup()
    try:
        yield _Session(app, state)
    finally:
        await lifespan.shutdown()


async def _verified(session: _Session, row: JsonObject, told: JsonObject) -> float:
    await session.told("/seed_session", row)
    for name, arguments in _tool_calls(told["response"]):
        await session.post(f"/{name}", arguments)
    answer = await session.told("/verify", told)
    return _reward_of(answer)


async def _stepped(session: _Session, row: JsonObject, response: Any) -> float:
    await session.told(_RESET, row)
    reward = 0.0
    for turn in _turns(response["output"]):
        answer = await session.told("/step", {**row, "response": {**response, "output": turn}})
        reward += _reward_of(answer)
        if answer.get("terminated") or answer.get("truncated"):
            break
    return reward


def _reward_of(answer: JsonObject) -> float:
    if answer.get("mask_sample"):
        raise VerifierFixtureError(f"the reward is masked: {answer.get('failure_reason')}")
    reward = answer.get("reward")
    if isinstance(reward, bool) or not isinstance(reward, (int, float)):
        raise VerifierFixtureError(f"the server gave no reward but {reward!r}")
    return float(reward)


def _tool_calls(response: Any) -> Iterator[tuple[str, object]]:
    """Yield names and arguments of calls that an agent would carry out."""
    for item in response["output"]:
        if item.get("type") == _CALL and is_called(item["name"]):
            try:
                yield item["name"], untrusted_json(item.get("arguments") or "{}")
            except ValueError:
                continue


def is_called(name: str) -> bool:
    """Whether an agent carries out a call of `name`, which may be that of a tool."""
    return _TOOL_NAME.fullmatch(name) is not None and name not in _OWN_ROUTES


def _turns(output: Sequence[JsonObject]) -> Iterator[list[JsonObject]]:
    """Yield what a model said at a time; what others said between is known to the server."""
    turn: list[JsonObject] = []
    for item in output:
        if item.get("type") in {_CALL, "reasoning"}:
            turn.append(item)
        elif item.get("role", "assistant") == "assistant" and item.get("type", "message") == "message":
            called = _called_in(turn)
            if called:
                yield turn[:called]
            yield [*turn[called:], item]
            turn = []
        elif turn:
            yield turn
            turn = []
    if turn:
        yield turn


def _called_in(turn: Sequence[JsonObject]) -> int:
    """Return how many items stand up to the last tool call; a thought below it belongs to what is said next."""
    return max((number for number, item in enumerate(turn, start=1) if item.get("type") == _CALL), default=0)
