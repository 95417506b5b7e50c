"""Where an agent's tool calls go: a session's direct access, or the resources server by name.

Rules:
* What a tool answers is text for the model, whatever its status: only a server that cannot be reached is an error.
* Arguments that are no JSON, or that are too deep or too long to be any, are answered without a call.
* A model calls tools, never the environment's own routes: those are as unknown as a tool that is not there. A tool's
  name is one segment of a path as it is, so that no quoting, prefix or redirect leads from it to another route.
* A direct call says which rollout it is made for, as a call by name does.

Source: servers.md §6.1, §3.8.
"""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Protocol

from aiohttp import ClientResponse

from rollbook import (
    ROLLOUT_ID_HEADER,
    DirectHTTPToolAccess,
    NeMoGymFunctionCallOutput,
    NeMoGymResponseFunctionToolCall,
    ServerClient,
    current_rollout_id,
    merged_cookies,
    request,
)

ENVIRONMENT_ROUTES: Final = frozenset(
    {"seed_session", "close_session", "verify", "aggregate_metrics", "reverify_mode", "mcp", ".", ".."}
)
TOOL_NAME: Final = re.compile(r"[A-Za-z0-9_.-]+")
NOT_FOUND: Final = '{"detail":"Not Found"}'


class Tools(Protocol):
    """Something that tools can be called on; `cookies` is its jar."""

    cookies: dict[str, str]

    async def post(self, name: str, arguments: object) -> ClientResponse:
        """Call the tool `name`."""
        ...


@dataclass(slots=True)
class ServerTools:
    """The tools of a resources server."""

    client: ServerClient
    server_name: str
    cookies: dict[str, str]

    async def post(self, name: str, arguments: object) -> ClientResponse:
        """Call the tool `name`."""
        return await self.client.post(
            server_name=self.server_name,
            url_path=f"/{name}",
            json=arguments,
            cookies=self.cookies,
            allow_redirects=False,
        )


@dataclass(slots=True)
class DirectTools:
    """The tools behind an address; `address_of` puts the running rollout into it where that is observed."""

    access: DirectHTTPToolAccess
    address_of: Callable[[str], str]
    cookies: dict[str, str] = field(init=False)

    def __post_init__(self) -> None:
        self.cookies = dict(self.access.cookies)

    async def post(self, name: str, arguments: object) -> ClientResponse:
        """Call the tool `name`."""
        rollout_id = current_rollout_id()
        named = {ROLLOUT_ID_HEADER: rollout_id} if rollout_id else {}
        return await request(
            "POST",
            f"{self.address_of(self.access.base_url).rstrip('/')}/{name}",
            json=arguments,
            cookies=self.cookies,
            headers={**named, **self.access.headers},
            allow_redirects=False,
        )


async def tool_output(tools: Tools, call: NeMoGymResponseFunctionToolCall) -> NeMoGymFunctionCallOutput:
    """Return what the tool answers to `call`."""
    return NeMoGymFunctionCallOutput(call_id=call.call_id, output=await _answered(tools, call))


def is_tool_name(name: str) -> bool:
    """Whether `name` may be that of a tool, and is none of the environment's own routes."""
    return TOOL_NAME.fullmatch(name) is not None and name not in ENVIRONMENT_ROUTES


async def _answered(tools: Tools, call: NeMoGymResponseFunctionToolCall) -> str:
    try:
        arguments = json.loads(call.arguments)
    except (ValueError, TypeError, RecursionError) as error:
        return _invalid(error)
    if not is_tool_name(call.name):
        return NOT_FOUND
    try:
        reply = await tools.post(call.name, arguments)
    except RecursionError as error:
        return _invalid(error)
    tools.cookies = merged_cookies(tools.cookies, reply)
    return (await reply.read()).decode("utf-8", "replace")


def _invalid(error: Exception) -> str:
    return json.dumps({"error": f"Invalid tool call arguments: {error!r}"})
