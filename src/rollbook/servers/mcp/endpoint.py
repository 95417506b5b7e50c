"""`POST /mcp`: MCP's streamable HTTP, stateless, every reply one JSON object.

Rules:
* A request needs nothing of an earlier one: a session is what its token says.
* Notifications are taken and answered with 202; there is no stream to listen to.
* Who lists tools may do so without a token; who calls one may not.
* Bodies and batches are bounded. Each message of a batch is answered by itself: a defect in one loses no other answer.

Source: servers.md §8.6; Model Context Protocol, revision 2025-06-18.
"""

import logging
from collections.abc import Mapping, Sequence
from typing import Any, Final

from fastapi import FastAPI, Request, Response

from rollbook.servers.errors_replies import Raised, one_line, reply_text
from rollbook.servers.mcp.calling import called, failed
from rollbook.servers.mcp.json_text import read_json, written_json
from rollbook.servers.mcp.session_token import TOKEN_HEADER, SessionGrant, opened
from rollbook.servers.mcp.tools import MCPTool

MCP_PATH: Final = "/mcp"
PROTOCOL_VERSIONS: Final = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
_VERSION: Final = PROTOCOL_VERSIONS[1]
MOST_BYTES: Final = 1 << 24
MOST_MESSAGES: Final = 100
_PARSE_ERROR: Final = -32700
_INVALID_REQUEST: Final = -32600
_METHOD_NOT_FOUND: Final = -32601
_INVALID_PARAMS: Final = -32602
_INTERNAL_ERROR: Final = -32603
_ACCEPTED: Final = 202
_BAD_REQUEST: Final = 400
_NOT_ALLOWED: Final = 405
_TOO_LARGE: Final = 413

_LOG = logging.getLogger(__name__)


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
        body = await _bounded_body(request)
        if body is None:
            return _refusal(_INVALID_REQUEST, f"a body has at most {MOST_BYTES} bytes", _TOO_LARGE)
        try:
            sent = read_json(body)
        except ValueError as error:
            return _refusal(_PARSE_ERROR, f"no JSON: {error}")
        grant = opened(self._session_key, request.headers.get(TOKEN_HEADER))
        if isinstance(sent, list):
            return await self._batch(sent, grant)
        answer = await self._answered(sent, grant)
        return Response(status_code=_ACCEPTED) if answer is None else _json(answer)

    async def _batch(self, messages: Sequence[Any], grant: SessionGrant | None) -> Response:
        if not 0 < len(messages) <= MOST_MESSAGES:
            return _refusal(_INVALID_REQUEST, f"a batch has 1 to {MOST_MESSAGES} messages, not {len(messages)}")
        answers = [await self._answered_alone(message, grant) for message in messages]
        written = [answer for answer in answers if answer is not None]
        return _json(b"[" + b",".join(written) + b"]") if written else Response(status_code=_ACCEPTED)

    async def _answered_alone(self, message: Any, grant: SessionGrant | None) -> bytes | None:
        """Return the answer of one message among others; what a tool raises is an error of that message."""
        raised = Raised()
        with raised:
            return await self._answered(message, grant)
        error = raised.error
        if not isinstance(error, Exception):
            await raised.again()
            return None
        _LOG.error("%s: a tool raised in a batch: %s", self._session_key, one_line(error))
        _LOG.debug("%s: a tool raised in a batch, with its traceback:", self._session_key, exc_info=error)
        return written_json(_error(message["id"], _INTERNAL_ERROR, reply_text(error, self._session_key)))

    async def refuse(self, request: Request) -> Response:
        """Answer 405: there is no stream, and no session to end."""
        del request
        return Response(status_code=_NOT_ALLOWED, headers={"Allow": "POST"})

    async def _answered(self, message: Any, grant: SessionGrant | None) -> bytes | None:
        """Return the answer of one message as JSON; None for what needs none."""
        if not _is_request(message):
            is_reply = isinstance(message, dict) and ("result" in message or "error" in message)
            return None if is_reply else written_json(_error(None, _INVALID_REQUEST, "no JSON-RPC request"))
        if "id" not in message:
            return None
        params = message.get("params")
        try:
            result = await self._result(message["method"], params if isinstance(params, dict) else {}, grant)
        except _RefusedError as refused:
            return written_json(_error(message["id"], refused.code, str(refused)))
        return _written({"jsonrpc": "2.0", "id": message["id"], "result": result})

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


def _is_request(message: Any) -> bool:
    """Whether a message asks, or notifies, as JSON-RPC has it."""
    if not isinstance(message, dict) or not isinstance(message.get("method"), str):
        return False
    return isinstance(message.get("id"), (str, int, float, type(None)))


def _written(answer: Mapping[str, Any]) -> bytes:
    """Return an answer as JSON; a result that no message can carry is told as such."""
    try:
        return written_json(answer)
    except ValueError as error:
        return written_json({**answer, "result": failed(f"the tool's answer is no JSON: {error}")})


async def _bounded_body(request: Request) -> bytes | None:
    """Return a request's body; None where it is larger than a body may be, which is then not read on."""
    parts: list[bytes] = []
    left = MOST_BYTES
    async for part in request.stream():
        left -= len(part)
        if left < 0:
            return None
        parts.append(part)
    return b"".join(parts)


def _refusal(code: int, message: str, status: int = _BAD_REQUEST) -> Response:
    return _json(written_json(_error(None, code, message)), status)


def _json(body: bytes, status: int = 200) -> Response:
    return Response(body, status, media_type="application/json")
