"""A JSON schema made strict: every property is there, and no other.

Rules:
* An object with `properties` requires them all and allows no others, at any depth; branches of `anyOf`, `oneOf` and
  `allOf` stay as they are written, since what one of them forbids another may ask for.
* `nullable: true` allows null, as in OpenAPI 3.0; all else is JSON Schema 2020-12, as in OpenAPI 3.1. A `format` is a
  remark.
* Nothing is fetched: a reference that does not lie in the schema makes the schema unusable.
"""

from collections.abc import Mapping
from typing import Any, Final

NAMED_SCHEMAS: Final = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})
VALUES: Final = frozenset({"const", "enum", "default", "example", "examples"})
_MOST_REFERENCES: Final = 32


def strict(schema: Any) -> Any:
    """Return a schema made strict; the one given stays as it is.

    Raises:
        RecursionError: it is nested too deeply.

    """
    if not isinstance(schema, dict):
        return schema
    made = {key: value if key in VALUES else _inside(key, value) for key, value in schema.items()}
    if made.get("nullable") in (True, "true") and "type" in made:
        made["type"] = [*_listed(made["type"]), *(["null"] if "null" not in _listed(made["type"]) else [])]
    if isinstance(made.get("properties"), dict):
        made |= {"required": list(made["properties"]), "additionalProperties": False}
    return made


def _inside(key: str, value: Any) -> Any:
    if key in NAMED_SCHEMAS and isinstance(value, dict):
        return {name: strict(schema) for name, schema in value.items()}
    return strict(value)


def _listed(kinds: Any) -> list[Any]:
    return list(kinds) if isinstance(kinds, list) else [kinds]


def resolved(schema: Any, root: Any) -> Mapping[str, Any]:
    """Return a schema, or the one that it refers to inside `root`; an empty one where there is none."""
    for _ in range(_MOST_REFERENCES):
        if not isinstance(schema, dict):
            return {}
        reference = schema.get("$ref")
        if not isinstance(reference, str) or not reference.startswith("#"):
            return schema
        schema = _at(root, reference[1:])
    return {}


def _at(root: Any, pointer: str) -> Any:
    found = root
    for step in pointer.split("/")[1:]:
        found = found.get(step.replace("~1", "/").replace("~0", "~")) if isinstance(found, dict) else None
    return found


def branches(schema: Any, root: Any) -> list[Mapping[str, Any]]:
    """Return the schemas one of which a value fits: the branches of `anyOf` or `oneOf`, else the schema itself."""
    whole = resolved(schema, root)
    choices = whole.get("anyOf") or whole.get("oneOf")
    if not isinstance(choices, list):
        return [whole]
    return [whole, *(resolved(choice, root) for choice in choices)]


def kinds(schema: Any, root: Any) -> frozenset[str]:
    """Return the types that a schema names; one with `properties` or `items` alone is an object or an array."""
    found: set[str] = set()
    for branch in branches(schema, root):
        named = [kind for kind in _listed(branch.get("type")) if isinstance(kind, str)]
        by_keyword = {"properties": "object", "items": "array"}
        found.update(named or [kind for keyword, kind in by_keyword.items() if keyword in branch])
    return frozenset(found)


def part(schema: Any, root: Any, keyword: str) -> Any:
    """Return what a keyword holds in the first branch that has it, or null."""
    return next((branch[keyword] for branch in branches(schema, root) if keyword in branch), None)
