"""Values from rows and hooks, made fit for strict JSON.

Rules:
* A number that is not finite has no place in JSON: its key is left out, and in a list it is null.
"""

import math
from collections.abc import Mapping

from rollbook.records.json_values import JsonObject


def finite_fields(fields: Mapping[str, object]) -> JsonObject:
    """Return `fields` without numbers that are not finite, at any depth."""
    return {name: finite(value) for name, value in fields.items() if not _is_unbounded(value)}


def finite(value: object) -> object:
    """Return `value` with every number that is not finite left out of its mappings, and null in its lists."""
    if isinstance(value, Mapping):
        return finite_fields(value)
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    return None if _is_unbounded(value) else value


def _is_unbounded(value: object) -> bool:
    return isinstance(value, float) and not math.isfinite(value)
