"""`POST /mcp`: MCP's streamable HTTP, stateless, every reply one JSON object.

Rules:
* A request needs nothing of an earlier one: a session is what its token says.
* Notifications are taken and answered with 202; there is no stream to listen to.
* Who lists tools may do so without a token; who calls one may not.

Source: servers.md §8.6; Model Context Protocol, revision 2025-06-18.
"""

from collections.abc import Mapping
from typing import Any, Final

import orjson
from fastapi import FastAPI, Request, Response

from rollbook.servers.mcp.calling import called, failed
from rollbook.servers.mcp.session_token import TOKEN_HEADER, SessionGrant, opened
from rollbook.servers.mcp.tools import MCPTool

MCP_PATH: Final = "/mcp"
PROTOCOL_VERSIONS: Final = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
_VERSION: Final = PROTOCOL_VERSIONS[1]
_PARSE_ERROR: Final = -32700
_INVALID_REQUEST: Final = -32600
_METHOD_NOT_FOUND: Final = -32601
_INVALID_PARAMS: Final = -32602
_ACCEPTED: Final = 202
_BAD_REQUEST: Final = 400
_NOT_ALLOWED: Final = 405


class _RefusedError(Exception):
    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class MCPEndpoint:
    """Answers MCP for one server. `session_key` is the name of its session cookies."""

    def __init__(self, app: FastAPI, server_name: str, session_key: str, tools: Mapping[str, MCPTool]) -> None:
        self._app = app
        self._server_name = server_name
        self._session_key = session_key
        self._tools = tools

    async def post(self, request: Request) -> Response:
        """Answer one message, or a batch of them."""
        grant = opened(self._session_key, request.headers.get(TOKEN_HEADER))
        try:
            sent = orjson.loads(await request.body())
        except orjson.JSONDecodeError as error:
            return _json(_error(None, _PARSE_ERROR, f"no JSON: {error}"), _BAD_REQUEST)
        messages = sent if isinstance(sent, list) else [sent]
        answers = [answer for message in messages if (answer := await self._answered(message, grant)) is not None]
        if not answers:
            return Response(status_code=_ACCEPTED)
        return _json(answers if isinstance(sent, list) else answers[0])

    async def refuse(self, request: Request) -> Response:
        """Answer 405: there is no stream, and no session to end."""
        del request
        return Response(status_code=_NOT_ALLOWED, headers={"Allow": "POST"})

    async def _answered(self, message: Any, grant: SessionGrant | None) -> dict[str, Any] | None:
        if not isinstance(message, dict) or not isinstance(message.get("method"), str):
            is_reply = isinstance(message, dict) and ("result" in message or "error" in message)
            return None if is_reply else _error(None, _INVALID_REQUEST, "no JSON-RPC request")
        if "id" not in message:
            return None
        params = message.get("params")
        try:
            result = await self._result(message["method"], params if isinstance(params, dict) else {}, grant)
        except _RefusedError as refused:
            return _error(message["id"], refused.code, str(refused))
        return {"jsonrpc": "2.0", "id": message["id"], "result": result}

    async def _result(self, method: str, params: Mapping[str, Any], grant: SessionGrant | None) -> dict[str, Any]:
        match method:
            case "initialize":
                return self._initialized(params)
            case "ping":
                return {}
            case "tools/list":
                return {"tools": [tool.listed() for tool in self._tools.values() if _is_listed(tool, grant)]}
            case "tools/call":
                return await self._called(params, grant)
            case _:
                raise _RefusedError(_METHOD_NOT_FOUND, f"no method {method!r} here")

    def _initialized(self, params: Mapping[str, Any]) -> dict[str, Any]:
        asked = params.get("protocolVersion")
        return {
            "protocolVersion": asked if asked in PROTOCOL_VERSIONS else _VERSION,
            "capabilities": {"tools": {"listChanged": False}},
            "serverInfo": {"name": self._server_name, "version": "1.0.0"},
        }

    async def _called(self, params: Mapping[str, Any], grant: SessionGrant | None) -> dict[str, Any]:
        name, arguments = params.get("name"), params.get("arguments")
        if not isinstance(name, str) or not isinstance(arguments, (dict, type(None))):
            raise _RefusedError(_INVALID_PARAMS, "tools/call needs a name, and arguments that are an object")
        if grant is None:
            return failed(f"no session: send the header {TOKEN_HEADER} that /seed_session gave")
        tool = self._tools.get(name)
        if tool is None or not grant.allows(name):
            return failed(f"this session has no tool {name!r}")
        return await called(tool, arguments or {}, grant.session_id, self._app)


def _is_listed(tool: MCPTool, grant: SessionGrant | None) -> bool:
    return grant is None or grant.allows(tool.name)


def _error(identity: Any, code: int, message: str) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": identity, "error": {"code": code, "message": message}}


def _json(value: Any, status: int = 200) -> Response:
    return Response(orjson.dumps(value), status, media_type="application/json")
