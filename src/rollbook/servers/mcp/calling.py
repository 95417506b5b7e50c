"""One call of a tool: the route's own handler, once, inside the session that the token names.

Rules:
* The handler sees a request of its session and nothing else of the client's: no cookie, no header.
* What the model is to read (a refusal, arguments that do not fit, an answer that no message can carry) is a result
  with `isError`; a defect is raised.
* A large answer is sent once, as text: every client reads that.

Source: servers.md §8.6.
"""

import inspect
from collections.abc import Mapping
from typing import Any, Final

from fastapi import FastAPI, HTTPException, Request
from fastapi.encoders import jsonable_encoder
from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response
from starlette.types import Message

from rollbook.servers.mcp.json_text import read_json, written_json
from rollbook.servers.mcp.tools import MCPTool
from rollbook.servers.session_key import SESSION_ID_KEY

_ERROR: Final = 400
_MOST_TWICE: Final = 1 << 16


async def called(tool: MCPTool, arguments: Mapping[str, Any], session_id: str, app: FastAPI) -> dict[str, Any]:
    """Return the result of `tools/call`."""
    try:
        given = _arguments(tool, arguments, session_id, app)
        handler = tool.route.endpoint
        answer = (
            await handler(**given)
            if inspect.iscoroutinefunction(handler)
            else await run_in_threadpool(handler, **given)
        )
    except HTTPException as refused:
        return _encoded(refused.detail, is_error=True)
    except (RequestValidationError, ValidationError) as wrong:
        return failed("; ".join(_told(detail) for detail in wrong.errors()))
    return _result(answer)


def failed(text: str) -> dict[str, Any]:
    """Return a result that tells the model what went wrong."""
    return {"content": [{"type": "text", "text": text}], "isError": True}


def _arguments(tool: MCPTool, arguments: Mapping[str, Any], session_id: str, app: FastAPI) -> dict[str, Any]:
    dependant = tool.route.dependant
    given: dict[str, Any] = {}
    for parameter in dependant.path_params:
        given[parameter.name] = tool.path_value
    for body in dependant.body_params:
        value, wrong = body.validate(dict(arguments), {}, loc=("arguments",))
        if wrong:
            raise RequestValidationError(wrong)
        given[body.name] = value
    if dependant.request_param_name is not None:
        given[dependant.request_param_name] = _request(tool, arguments, session_id, app)
    if dependant.response_param_name is not None:
        given[dependant.response_param_name] = Response()
    return given


def _request(tool: MCPTool, arguments: Mapping[str, Any], session_id: str, app: FastAPI) -> Request:
    path = tool.route.path if tool.path_value is None else f"/{tool.path_value}"
    scope = {
        "type": "http",
        "method": "POST",
        "path": path,
        "raw_path": path.encode(),
        "root_path": "",
        "query_string": b"",
        "headers": [(b"content-type", b"application/json")],
        "app": app,
        "path_params": {parameter.name: tool.path_value for parameter in tool.route.dependant.path_params},
        "session": {SESSION_ID_KEY: session_id},
    }
    sent: list[Message] = [{"type": "http.request", "body": written_json(dict(arguments)), "more_body": False}]

    async def receive() -> Message:
        return sent.pop() if sent else {"type": "http.disconnect"}

    return Request(scope, receive)


def _result(answer: Any) -> dict[str, Any]:
    if not isinstance(answer, Response):
        return _encoded(answer, is_error=False)
    body = getattr(answer, "body", None)
    if body is None:
        return failed("this tool streams its answer, which has no place in a message: call it over plain HTTP")
    return _encoded(_sent(bytes(body)), is_error=answer.status_code >= _ERROR)


def _encoded(answer: Any, *, is_error: bool) -> dict[str, Any]:
    try:
        plain = answer if isinstance(answer, str) else jsonable_encoder(answer)
        text = plain if isinstance(plain, str) else written_json(plain).decode()
    except (ValueError, RecursionError) as error:
        return failed(f"the tool's answer is no JSON: {error}")
    result: dict[str, Any] = {"content": [{"type": "text", "text": text}], "isError": is_error}
    if isinstance(plain, dict) and len(text) <= _MOST_TWICE:
        result["structuredContent"] = plain
    return result


def _sent(body: bytes) -> Any:
    try:
        return read_json(body)
    except ValueError:
        return body.decode(errors="replace")


def _told(detail: Mapping[str, Any]) -> str:
    where = ".".join(str(part) for part in detail["loc"] if part not in {"body", "arguments"})
    return f"{where}: {detail['msg']}" if where else str(detail["msg"])
