"""What a rollout answered, out of its row, short enough for a table.

Rules:
* The last message says it; of an answer without one, the last call. Nothing is made up for a row that holds neither.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from rollbook.records.json_values import JsonMapping
from rollbook.records.keys import RESPONSE_KEY

LONGEST: Final = 400


def answer_in(row: JsonMapping, longest: int = LONGEST) -> str | None:
    """Return the answer of a result's row, its beginning and its end where it is longer than `longest` characters."""
    response = row.get(RESPONSE_KEY)
    output = response.get("output") if isinstance(response, Mapping) else response
    if isinstance(output, str):
        return shortened(output, longest)
    items = [item for item in output if isinstance(item, Mapping)] if isinstance(output, list) else []
    told = next((text for item in reversed(items) if (text := _message(item))), None)
    told = told or next((text for item in reversed(items) if (text := _call(item))), None)
    return None if told is None else shortened(told, longest)


def shortened(text: str, longest: int) -> str:
    """Return `text`, without its middle where it is too long: answers end with what they come to."""
    if len(text) <= longest:
        return text
    half = (longest - 3) // 2
    return f"{text[:half]} … {text[len(text) - half :]}"


def _message(item: JsonMapping) -> str:
    content = item.get("content")
    if isinstance(content, str):
        return content
    return "".join(_texts(content)) if isinstance(content, list) else ""


def _texts(content: list[object]) -> Iterator[str]:
    for part in content:
        text = part.get("text", part.get("refusal")) if isinstance(part, Mapping) else None
        if isinstance(text, str):
            yield text


def _call(item: JsonMapping) -> str:
    name = item.get("name")
    return f"{name}({item.get('arguments', '')})" if isinstance(name, str) else ""
