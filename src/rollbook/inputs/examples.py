"""Rows that a caller holds → source rows.

Rules:
* A row is what JSON can hold, and what has one text, such as a date: anything else is refused by the row's number and
  the place in it, never changed.
* Identity is canonical JSON with sorted keys.

Source: collection.md §2.4.
"""

import dataclasses
import math
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from typing import Final

import msgspec

from rollbook.errors import InputError
from rollbook.records.json_values import JsonMapping
from rollbook.records.source import SourceRow

_REFUSED: Final = {
    set: "a set is no JSON value; give a list",
    frozenset: "a frozenset is no JSON value; give a list",
    bytes: "bytes are no JSON value; give text",
    bytearray: "a bytearray is no JSON value; give text",
    memoryview: "a memoryview is no JSON value; give text",
    Decimal: "a Decimal is no JSON value; give a float, or text",
}
"""What could be written as JSON only by changing it: its order, its content or its type."""


def rows_of(examples: Iterable[JsonMapping]) -> Iterator[SourceRow]:
    """Yield caller-held rows as source rows, numbered from 0.

    Raises:
        InputError: a row that is no mapping, or holds what JSON does not have.

    """
    for number, example in enumerate(examples):
        yield _source_row(number, example)


def _source_row(number: int, example: object) -> SourceRow:
    if not isinstance(example, Mapping):
        raise InputError(f"row {number}: expected a mapping, found {type(example).__name__}")
    row = dict(example)
    try:
        text = msgspec.json.encode(row, order="sorted")
        fault = None if msgspec.json.decode(text) == row else next(_faults(row), None)
    except RecursionError:
        fault = "it is nested too deeply, or holds itself"
    except (TypeError, ValueError, OverflowError) as error:
        fault = next(_faults(row), str(error))
    if fault is not None:
        raise InputError(f"row {number}: {fault}. Give rows that are JSON objects")
    return SourceRow(number, text, row)


def _faults(value: object, place: tuple[str, ...] = ()) -> Iterator[str]:
    match value:
        case Mapping():
            for key, inner in value.items():
                yield from _faults_of_key(key, place)
                yield from _faults(inner, (*place, str(key)))
        case list() | tuple():
            for index, inner in enumerate(value):
                yield from _faults(inner, (*place, str(index)))
        case _ if fields := _fields(value):
            yield from _faults(fields, place)
        case _:
            yield from (f"{'.'.join(place)}: {fault}" for fault in _faults_of_leaf(value))


def _fields(value: object) -> dict[str, object]:
    """Return what an object that is written as a JSON object holds; nothing where it is none."""
    if isinstance(value, str | int | float | None):
        return {}
    kind = type(value)
    names = (
        *getattr(kind, "__struct_fields__", ()),
        *(field.name for field in (dataclasses.fields(kind) if dataclasses.is_dataclass(kind) else ())),
        *(field.name for field in getattr(kind, "__attrs_attrs__", ())),
    )
    held = {name: getattr(value, name, msgspec.UNSET) for name in names}
    return {name: inner for name, inner in held.items() if inner is not msgspec.UNSET}


def _faults_of_key(key: object, place: tuple[str, ...]) -> Iterator[str]:
    where = f"{'.'.join(place)}: " if place else ""
    if not isinstance(key, str):
        yield f"{where}the key {key!r} is no text"
        return
    yield from (f"{where}the key {key!r}: {fault}" for fault in _faults_of_leaf(key))


def _faults_of_leaf(value: object) -> Iterator[str]:
    if isinstance(value, float) and not math.isfinite(value):
        yield f"{value} is no JSON number"
        return
    refused = next((said for kind, said in _REFUSED.items() if isinstance(value, kind)), None)
    if refused is not None:
        yield refused
        return
    try:
        msgspec.json.encode(value)
    except UnicodeEncodeError as error:
        yield f"{error.object[error.start]!a} is half of a surrogate pair and no character"
    except (TypeError, ValueError, OverflowError) as error:
        yield str(error)
