"""Names of tools as harnesses write them, and as the server knows them.

Rules:
* `mcp__<server>__<tool>` is `<tool>` when the server has a tool of that name; the server's own hook has the last word.
* A verifier is shown the server's names on a copy; the row that goes out has the names that the model wrote.
* A call is known again by its id and the name that the verifier was shown, wherever it stands then: whatever else a
  verifier changed in the response stays, a name that it gave itself too.

Source: servers.md §8.6.
"""

from collections import defaultdict, deque
from collections.abc import Callable, Collection, Sequence
from typing import Any, Final

import msgspec
from pydantic import BaseModel
from starlette.responses import JSONResponse

from rollbook.servers.mcp.json_text import read_json, written_json
from rollbook.servers.openai.openai_items import NeMoGymResponseFunctionToolCall

_PREFIX: Final = "mcp__"
_CALL: Final = "function_call"


class Renamed(msgspec.Struct, frozen=True):
    """A call of the response: its id, the name that the verifier is shown, and the one that the model wrote."""

    call_id: str
    shown: str
    written: str


def own_name(name: str, tools: Collection[str]) -> str:
    """Return the server's name of a tool that a harness may have put a prefix before."""
    if not name.startswith(_PREFIX):
        return name
    fitting = [tool for tool in tools if name.endswith(f"__{tool}") and len(name) > len(f"{_PREFIX}__{tool}")]
    return max(fitting, key=len, default=name)


def with_tool_names(
    body: Any, tools: Collection[str], normalize: Callable[[str], str]
) -> tuple[Any, Sequence[Renamed]]:
    """Return a verify request whose calls have the server's names, and its calls; none where all names stay."""
    output = _output(body)
    calls = [
        Renamed(item.call_id, normalize(own_name(item.name, tools)), item.name)
        for item in output
        if isinstance(item, NeMoGymResponseFunctionToolCall)
    ]
    if all(call.shown == call.written for call in calls):
        return body, ()
    names = iter(calls)
    shown = [
        item.model_copy(update={"name": next(names).shown})
        if isinstance(item, NeMoGymResponseFunctionToolCall)
        else item
        for item in output
    ]
    response = body.response.model_copy(update={"output": shown})
    return body.model_copy(update={"response": response}), calls


def restored_names(answer: Any, calls: Sequence[Renamed]) -> Any:
    """Return a verifier's answer with the names that the model wrote, in whatever form it came."""
    if isinstance(answer, JSONResponse):
        return _restored_reply(answer, calls)
    output = _field(_field(answer, "response"), "output")
    if not isinstance(output, list):
        return answer
    response = _with(_field(answer, "response"), "output", _restored(output, calls))
    return _with(answer, "response", response)


def _output(body: Any) -> Sequence[Any]:
    output = getattr(getattr(body, "response", None), "output", None)
    return output if isinstance(output, list) else []


def _restored_reply(reply: JSONResponse, calls: Sequence[Renamed]) -> JSONResponse:
    try:
        reply.body = written_json(restored_names(read_json(bytes(reply.body)), calls))
    except ValueError:
        return reply
    reply.headers["content-length"] = str(len(reply.body))
    return reply


def _restored(output: Sequence[Any], calls: Sequence[Renamed]) -> list[Any]:
    """Return output items with the names that the model wrote; calls of one id and tool are told apart by order."""
    written: defaultdict[tuple[Any, Any], deque[str]] = defaultdict(deque)
    for call in calls:
        written[call.call_id, call.shown].append(call.written)
    return [_renamed(item, written) for item in output]


def _renamed(item: Any, written: defaultdict[tuple[Any, Any], deque[str]]) -> Any:
    if _field(item, "type") != _CALL:
        return item
    names = written.get((_field(item, "call_id"), _field(item, "name")))
    if not names:
        return item
    return _with(item, "name", names[0] if len(names) == 1 else names.popleft())


def _field(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, dict) else getattr(value, name, None)


def _with(value: Any, name: str, field: Any) -> Any:
    """Return a copy of a model or of a JSON object with another field."""
    return value.model_copy(update={name: field}) if isinstance(value, BaseModel) else {**value, name: field}
