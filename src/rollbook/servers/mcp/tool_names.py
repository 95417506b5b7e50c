"""Names of tools as harnesses write them, and as the server knows them.

Rules:
* `mcp__<server>__<tool>` is `<tool>` when the server has a tool of that name; the server's own hook has the last word.
* A verifier is shown the server's names on a copy; the row that goes out has the names that the model wrote.

Source: servers.md §8.6.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final

import orjson
from pydantic import BaseModel
from starlette.responses import JSONResponse

from rollbook.servers.openai.openai_items import NeMoGymResponseFunctionToolCall

_PREFIX: Final = "mcp__"
Written = Mapping[int, str]
"""The names that the model wrote, by place in the response's output."""


def own_name(name: str, tools: Collection[str]) -> str:
    """Return the server's name of a tool that a harness may have put a prefix before."""
    if not name.startswith(_PREFIX):
        return name
    fitting = [tool for tool in tools if name.endswith(f"__{tool}") and len(name) > len(f"{_PREFIX}__{tool}")]
    return max(fitting, key=len, default=name)


def with_tool_names(body: Any, tools: Collection[str], normalize: Callable[[str], str]) -> tuple[Any, Written]:
    """Return a verify request whose calls have the server's names, and the names that were there before."""
    output = _output(body)
    names = {place: item.name for place, item in enumerate(output) if isinstance(item, NeMoGymResponseFunctionToolCall)}
    known = {place: normalize(own_name(name, tools)) for place, name in names.items()}
    written = {place: name for place, name in names.items() if known[place] != name}
    if not written:
        return body, {}
    shown = [
        item.model_copy(update={"name": known[place]}) if place in written else item
        for place, item in enumerate(output)
    ]
    response = body.response.model_copy(update={"output": shown})
    return body.model_copy(update={"response": response}), written


def restored_names(answer: Any, body: Any, written: Written) -> Any:
    """Return a verifier's answer with the names that the model wrote, in whatever form it came."""
    if isinstance(answer, BaseModel) and hasattr(answer, "response"):
        return answer.model_copy(update={"response": body.response})
    if isinstance(answer, JSONResponse):
        return _restored_reply(answer, written)
    if isinstance(answer, dict):
        return _restored_row(answer, written)
    return answer


def _output(body: Any) -> Sequence[Any]:
    output = getattr(getattr(body, "response", None), "output", None)
    return output if isinstance(output, list) else []


def _restored_reply(reply: JSONResponse, written: Written) -> JSONResponse:
    row = orjson.loads(reply.body)
    reply.body = orjson.dumps(_restored_row(row, written)) if isinstance(row, dict) else reply.body
    reply.headers["content-length"] = str(len(reply.body))
    return reply


def _restored_row(row: dict[str, Any], written: Written) -> dict[str, Any]:
    response = row.get("response")
    if isinstance(response, BaseModel):
        response = response.model_dump(mode="json")
    output = response.get("output") if isinstance(response, dict) else None
    if not isinstance(response, dict) or not isinstance(output, list):
        return row
    items = [
        {**item, "name": written[place]} if place in written and isinstance(item, dict) else item
        for place, item in enumerate(output)
    ]
    return {**row, "response": {**response, "output": items}}
