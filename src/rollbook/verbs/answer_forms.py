"""A row with an answer to it, as a verify request: what a gold answer may be written as.

Rules:
* An answer is a whole response, a list of output items, or a text, which stands for one message.
* An item may be written short: a text for a message, `{"name": …, "arguments": {…}}` for a tool call.
* Arguments that are a text are JSON already, as a response has them.

Source: docs/making.md.
"""

import json
from collections.abc import Mapping

from rollbook.records.json_values import JsonObject


def verify_request(row: Mapping[str, object], answer: object) -> JsonObject:
    """Return the verify request of a row that was answered so.

    Raises:
        TypeError: the answer has none of these forms.

    """
    if isinstance(answer, Mapping):
        return {**row, "response": answer}
    if not isinstance(answer, (str, list, tuple)):
        raise TypeError(f"{answer!r} is no answer; return a text, a list of output items, a whole response or None")
    items = [answer] if isinstance(answer, str) else answer
    output = [_item(item, number) for number, item in enumerate(items)]
    response = {"id": "resp", "created_at": 0, "model": "gold", "object": "response", "output": output}
    return {**row, "response": {**response, "parallel_tool_calls": False, "tool_choice": "auto", "tools": []}}


def _item(item: object, number: int) -> object:
    if isinstance(item, str):
        part = {"type": "output_text", "text": item, "annotations": []}
        return {"id": f"msg_{number}", "type": "message", "role": "assistant", "status": "completed", "content": [part]}
    if isinstance(item, Mapping) and "type" not in item and "name" in item:
        given = item.get("arguments", {})
        arguments = given if isinstance(given, str) else json.dumps(given)
        return {"type": "function_call", "call_id": f"call_{number}", "name": item["name"], "arguments": arguments}
    return item
