"""Where an agent's tool calls go: a session's direct access, or the resources server by name.

Rules:
* What a tool answers is text for the model, whatever its status: only a server that cannot be reached is an error.
* Arguments that are no JSON are answered without a call.
* A model calls tools, never the environment's own routes: those are as unknown as a tool that is not there.

Source: servers.md §6.1.
"""

import json
from dataclasses import dataclass, field
from typing import Final, Protocol
from urllib.parse import quote

from aiohttp import ClientResponse

from rollbook import (
    DirectHTTPToolAccess,
    NeMoGymFunctionCallOutput,
    NeMoGymResponseFunctionToolCall,
    ServerClient,
    merged_cookies,
    request,
)

ENVIRONMENT_ROUTES: Final = frozenset({"seed_session", "close_session", "verify", "aggregate_metrics", "reverify_mode"})
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
            server_name=self.server_name, url_path=f"/{quote(name, safe='')}", json=arguments, cookies=self.cookies
        )


@dataclass(slots=True)
class DirectTools:
    """The tools behind an address."""

    access: DirectHTTPToolAccess
    cookies: dict[str, str] = field(init=False)

    def __post_init__(self) -> None:
        self.cookies = dict(self.access.cookies)

    async def post(self, name: str, arguments: object) -> ClientResponse:
        """Call the tool `name`."""
        url = f"{self.access.base_url.rstrip('/')}/{quote(name, safe='')}"
        return await request("POST", url, json=arguments, cookies=self.cookies, headers=self.access.headers)


async def tool_output(tools: Tools, call: NeMoGymResponseFunctionToolCall) -> NeMoGymFunctionCallOutput:
    """Return what the tool answers to `call`."""
    return NeMoGymFunctionCallOutput(call_id=call.call_id, output=await _answered(tools, call))


async def _answered(tools: Tools, call: NeMoGymResponseFunctionToolCall) -> str:
    try:
        arguments = json.loads(call.arguments)
    except (json.JSONDecodeError, TypeError) as error:
        return json.dumps({"error": f"Invalid tool call arguments: {error!r}"})
    if call.name in ENVIRONMENT_ROUTES:
        return NOT_FOUND
    reply = await tools.post(call.name, arguments)
    tools.cookies = merged_cookies(tools.cookies, reply.cookies)
    return (await reply.read()).decode("utf-8", "replace")
