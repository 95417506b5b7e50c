"""Asking a judge model, and what becomes of a verification whose judge could not be asked.

Rules:
* A judge that could not be asked is no verdict: the row is masked and goes to the sidecar, with HTTP 200.
* A verdict that could not be read is a wrong answer, and no business of this module.
* The wire schema of a wrapped handler is its own: the wrapper keeps the signature visible.

Source: servers.md §3.7; collection.md §4.6.
"""

import functools
import inspect
from collections.abc import Awaitable, Callable
from typing import Any, Final, ParamSpec, TypeVar

from pydantic import BaseModel
from starlette.concurrency import run_in_threadpool
from starlette.responses import JSONResponse

from rollbook.errors import JudgeError
from rollbook.records.failure_kinds import JUDGE_FAILED
from rollbook.records.json_values import JsonObject
from rollbook.records.keys import NG_FAILURE_CLASS_KEY, NG_FAILURE_JUDGE_ERROR_KEY
from rollbook.servers.client import ServerClient
from rollbook.servers.http.http_client import get_response_json
from rollbook.servers.http.inner_error import raise_for_status
from rollbook.servers.http.request_body import json_bytes

__all__ = ["JudgeError", "call_judge", "judge_failsafe", "reraise_judge_errors"]

_REASON_CHARS: Final = 2000
Arguments = ParamSpec("Arguments")
Answer = TypeVar("Answer")
Verdict = TypeVar("Verdict", bound=BaseModel)


async def reraise_judge_errors(awaitable: Awaitable[Answer]) -> Answer:
    """Return what `awaitable` gives.

    Raises:
        JudgeError: it raised; the text is `<type>: <message>`.

    """
    try:
        return await awaitable
    except JudgeError:
        raise
    except Exception as error:
        raise JudgeError(f"{type(error).__name__}: {error}") from error


async def call_judge(
    server_client: ServerClient, *, server_name: str, url_path: str, json: object, response_model: type[Verdict]
) -> Verdict:
    """POST `json` to a judge's server and return its reply as `response_model`.

    Raises:
        JudgeError: the server could not be reached, answered 400 or more, or answered something else.

    """
    return await reraise_judge_errors(_asked(server_client, server_name, url_path, json, response_model))


async def _asked(
    client: ServerClient, server_name: str, url_path: str, json: object, response_model: type[Verdict]
) -> Verdict:
    reply = await client.post(server_name=server_name, url_path=url_path, json=json)
    await raise_for_status(reply)
    return response_model.model_validate(await get_response_json(reply))


def judge_failsafe(verify: Callable[Arguments, Any]) -> Callable[Arguments, Awaitable[Any]]:
    """Return `verify` with a masked row as its reply to a `JudgeError`; a plain function runs in a thread."""
    waits = inspect.iscoroutinefunction(verify)

    @functools.wraps(verify)
    async def safe(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Any:
        try:
            if waits:
                return await verify(*args, **kwargs)
            return await run_in_threadpool(verify, *args, **kwargs)
        except JudgeError as error:
            body = next((value for value in (*args, *kwargs.values()) if _is_body(value)), None)
            return JudgeFailed(judge_failed_row(body, error))

    return safe


class JudgeFailed(JSONResponse):
    """A masked row as a reply, with HTTP 200."""

    def render(self, content: object) -> bytes:
        """Encode a row as every other one is, text beyond UTF-8 and numbers beyond 64 bits included."""
        return json_bytes(content)


def _is_body(value: object) -> bool:
    """Tell a body from the other arguments; a server, as a wrapped method is handed it, is a model too."""
    return isinstance(value, BaseModel) and not hasattr(value, "server_client")


def judge_failed_row(body: object, error: JudgeError) -> JsonObject:
    """Return the row for a verification of `body` whose judge could not be asked."""
    row = body.model_dump(mode="json") if isinstance(body, BaseModel) else {}
    reason = str(error)[:_REASON_CHARS]
    instance_config = row.get("instance_config")
    return {
        **row,
        "reward": 0.0,
        "mask_sample": True,
        "failure_kind": JUDGE_FAILED,
        "failure_reason": reason,
        "instance_config": {**(instance_config if isinstance(instance_config, dict) else {}), "mask_sample": True},
        NG_FAILURE_CLASS_KEY: JUDGE_FAILED,
        NG_FAILURE_JUDGE_ERROR_KEY: reason,
    }
