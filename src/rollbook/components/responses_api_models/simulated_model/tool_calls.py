"""Which tools a request calls for, with arguments that fit their schemas.

Rules:
* One call for each part of the request that some tool fits; at least one call where there is a tool at all.
* Arguments are made of the numbers and words of the request; a required property is always there.
* A schema that describes itself without end is followed to a fixed depth.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from responses_api_models.simulated_model.conversation import Tool

_PARTS: Final = re.compile(r"\bthen\b|\band\b|[;,\n]|\.(?=\s|$)", re.IGNORECASE)
_WORD: Final = re.compile(r"[^\W\d_]+")
_NUMBER: Final = re.compile(r"-?\d+(?:\.\d+)?")
_QUOTED: Final = re.compile(r"\"([^\"]+)\"|(?<!\w)'([^']+)'(?!\w)")
_SHORTEST_STEM: Final = 3
_DEEPEST: Final = 6
_MOST_CALLS: Final = 16
_FORMATS: Final = {
    "date": "2024-01-31",
    "date-time": "2024-01-31T12:00:00Z",
    "time": "12:00:00",
    "email": "a@example.org",
}


@dataclass(frozen=True, slots=True)
class Call:
    """One function call; `arguments` is JSON text."""

    name: str
    arguments: str


def calls_for(asked: str, tools: Sequence[Tool]) -> tuple[Call, ...]:
    """Return the calls that the user's text `asked` suggests."""
    if not tools:
        return ()
    parts = [part.strip() for part in _PARTS.split(asked) if part.strip()]
    fitting = [
        (part, best)
        for part in parts
        if (best := max(tools, key=lambda tool: _fit(part, tool))) and _fit(part, best) > 0
    ]
    chosen = fitting[:_MOST_CALLS] or [(asked, max(tools, key=lambda tool: _fit(asked, tool)))]
    return tuple(Call(tool.name, json.dumps(arguments_for(tool.parameters, part))) for part, tool in chosen)


def arguments_for(schema: Mapping[str, object], text: str) -> object:
    """Return a value that fits the JSON schema of a tool's parameters, made of `text`."""
    value = _Maker(schema, text).value(schema, _DEEPEST)
    return value if isinstance(value, dict) else {}


def _fit(part: str, tool: Tool) -> int:
    named = [word.lower() for word in _WORD.findall(f"{tool.name.replace('_', ' ')} {tool.description}")]
    said = {word.lower() for word in _WORD.findall(part)}
    shared = sum(any(_same_stem(word, other) for other in named) for word in said)
    wants, has = _wants_number(tool), _NUMBER.search(part) is not None
    return shared + (2 if wants and has else 0) - (2 if wants != has else 0)


def _same_stem(one: str, other: str) -> bool:
    return min(len(one), len(other)) >= _SHORTEST_STEM and (one.startswith(other) or other.startswith(one))


def _wants_number(tool: Tool) -> bool:
    properties = tool.parameters.get("properties")
    values = properties.values() if isinstance(properties, Mapping) else ()
    return any(isinstance(value, Mapping) and value.get("type") in {"integer", "number"} for value in values)


class _Maker:
    """Makes values for the parts of one schema, using up the numbers of one text."""

    def __init__(self, root: Mapping[str, object], text: str) -> None:
        self.root = root
        self.numbers = iter(_NUMBER.findall(text))
        self.word = _word_of(text)

    def value(self, schema: Mapping[str, object], depth: int) -> object:
        schema = self._resolved(schema)
        fixed = next(_fixed(schema), None)
        if fixed is not None:
            return fixed[0]
        return self._of_type(_type(schema), schema, depth)

    def _of_type(self, kind: str, schema: Mapping[str, object], depth: int) -> object:
        match kind:
            case "object":
                return self._object(schema, depth)
            case "array":
                return self._array(schema, depth)
            case "integer" | "number":
                return self._number(schema, whole=kind == "integer")
            case "boolean" | "null":
                return True if kind == "boolean" else None
            case _:
                return self._string(schema)

    def _resolved(self, schema: Mapping[str, object]) -> Mapping[str, object]:
        for _ in range(_DEEPEST):
            reference = schema.get("$ref")
            options = schema.get("anyOf") or schema.get("oneOf") or schema.get("allOf")
            if isinstance(reference, str):
                schema = self._at(reference)
            elif isinstance(options, list) and options:
                mappings = [option for option in options if isinstance(option, Mapping)]
                schema = next((option for option in mappings if option.get("type") != "null"), {})
            else:
                break
        return schema

    def _at(self, reference: str) -> Mapping[str, object]:
        place: object = self.root
        for step in filter(None, reference.removeprefix("#").split("/")):
            place = place.get(step) if isinstance(place, Mapping) else None
        return place if isinstance(place, Mapping) else {}

    def _object(self, schema: Mapping[str, object], depth: int) -> dict[str, object]:
        properties = schema.get("properties")
        required = schema.get("required")
        named: Mapping[str, object] = properties if isinstance(properties, Mapping) else {}
        wanted = [str(name) for name in required] if isinstance(required, list) else list(named)
        parts = {name: part if isinstance(part := named.get(name), Mapping) else {} for name in wanted}
        return {name: self.value(part, depth - 1) for name, part in parts.items()} if depth > 0 else {}

    def _array(self, schema: Mapping[str, object], depth: int) -> list[object]:
        items = schema.get("items")
        least = schema.get("minItems")
        count = max(1, least if isinstance(least, int) else 1)
        part: Mapping[str, object] = items if isinstance(items, Mapping) else {}
        return [self.value(part, depth - 1) for _ in range(count)] if depth > 0 else []

    def _number(self, schema: Mapping[str, object], *, whole: bool) -> int | float:
        value = float(next(self.numbers, "1"))
        for bound, choose in (("minimum", max), ("maximum", min)):
            limit = schema.get(bound)
            if isinstance(limit, (int, float)):
                value = choose(value, float(limit))
        return int(value) if whole or value.is_integer() else value

    def _string(self, schema: Mapping[str, object]) -> str:
        least, most = schema.get("minLength"), schema.get("maxLength")
        text = _FORMATS.get(str(schema.get("format")), self.word)
        padded = text.ljust(least, "x") if isinstance(least, int) else text
        return padded[:most] if isinstance(most, int) else padded


def _fixed(schema: Mapping[str, object]) -> Iterator[tuple[object]]:
    if "const" in schema:
        yield (schema["const"],)
    choices = schema.get("enum")
    if isinstance(choices, list) and choices:
        yield (choices[0],)


def _type(schema: Mapping[str, object]) -> str:
    kind = schema.get("type")
    if isinstance(kind, list):
        kind = next((entry for entry in kind if entry != "null"), "null")
    if kind is None:
        return "object" if "properties" in schema else "string"
    return str(kind)


def _word_of(text: str) -> str:
    quoted = _QUOTED.search(text)
    if quoted:
        return quoted[1] or quoted[2]
    words = _WORD.findall(text)
    return words[-1] if words else "something"
