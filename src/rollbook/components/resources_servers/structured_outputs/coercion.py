"""Values of XML and CSV, whose scalars are all texts, as the schema types them.

Rules:
* A text stays one where the schema allows a text; what cannot be of any type that the schema names stays as it is.
* A number is written in digits: NaN, infinities and `1_0` stay texts.
* XML: one element, or none, is a list where the schema has a list, and a wrapper of one name around the items goes. The
  root element goes where the schema has no property of its name.
* CSV: an empty cell is null where the schema allows it. Where the schema has an object, a table of one row is that row.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from resources_servers.structured_outputs.reading import Table
from resources_servers.structured_outputs.schemas import kinds, part

_TRUTHS: Final = {"true": True, "1": True, "false": False, "0": False}
_SCALARS: Final[Mapping[str, Callable[[str], Any]]] = {
    "boolean": lambda text: _TRUTHS[text.strip().lower()],
    "integer": lambda text: int(_digits(text)),
    "number": lambda text: float(_digits(text)),
}
_NUMBER: Final = re.compile(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")


def coerced_xml(value: Any, schema: Any) -> Any:
    """Return the value of an XML document as a schema types it."""
    named = kinds(schema, schema)
    if "array" not in named and len(value) == 1:
        (name,) = value
        properties = part(schema, schema, "properties")
        if isinstance(properties, dict) and name not in properties:
            return _element(value[name], schema, schema)
    return _element(value, schema, schema)


def coerced_csv(table: Table, schema: Any) -> Any:
    """Return the rows of a table as a schema types them, or its one row where the schema has an object.

    Raises:
        ValueError: the table has no rows, and its columns are not those of the schema.

    """
    named = kinds(schema, schema)
    is_object = "object" in named and "array" not in named
    row_schema = schema if is_object else part(schema, schema, "items")
    properties = part(row_schema, schema, "properties")
    if not isinstance(properties, dict):
        return list(table)
    if not table and set(table.columns) != set(properties):
        raise ValueError(f"there are no rows, and the columns {list(table.columns)} are not those of the schema")
    rows = [{name: _cell(cell, properties.get(name), schema) for name, cell in row.items()} for row in table]
    return rows[0] if is_object and len(rows) == 1 else rows


def _cell(cell: Any, schema: Any, root: Any) -> Any:
    named = kinds(schema, root)
    if cell == "" and "null" in named:
        return None
    return _scalar(cell, named)


def _element(value: Any, schema: Any, root: Any) -> Any:
    named = kinds(schema, root)
    if "array" in named and not (value is None and "null" in named):
        items = part(schema, root, "items")
        return [_element(item, items, root) for item in _listed(value, items, root)]
    if isinstance(value, dict):
        return _fields(value, schema, root)
    if value is None and "null" not in named:
        return "" if "string" in named else {} if "object" in named else None
    return _scalar(value, named)


def _listed(value: Any, items: Any, root: Any) -> list[Any]:
    own = part(items, root, "properties")
    while isinstance(value, dict) and len(value) == 1 and not (isinstance(own, dict) and own.keys() & value.keys()):
        (value,) = value.values()
    if value is None:
        return []
    return value if isinstance(value, list) else [value]


def _fields(value: Mapping[str, Any], schema: Any, root: Any) -> dict[str, Any]:
    properties = part(schema, root, "properties")
    known = properties if isinstance(properties, dict) else {}
    other = part(schema, root, "additionalProperties")
    return {name: _element(field, known.get(name, other), root) for name, field in value.items()}


def _digits(text: str) -> str:
    number = text.strip()
    if not _NUMBER.fullmatch(number):
        raise ValueError(f"{number!r} is no number")
    return number


def _scalar(text: Any, named: frozenset[str]) -> Any:
    if not isinstance(text, str) or "string" in named:
        return text
    for kind, typed in _SCALARS.items():
        if kind in named:
            try:
                return typed(text)
            except (ValueError, KeyError):
                continue
    return text
