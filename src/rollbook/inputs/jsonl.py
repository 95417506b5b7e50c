"""A JSON Lines file → source rows with their physical line numbers.

Rules:
* A byte-order mark that opens a line, CRLF line ends and lines of white space alone are accepted: nobody's data.
* Lines end at LF only: a Unicode separator inside a string is text.
* Every bad line is found before the first is reported; the first few are listed, the rest counted.
* The number of a line is its physical number, from 1.

Source: collection.md §1.4; cases RC-57, RC-58, RC-61, RC-70.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from rollbook.errors import InputError
from rollbook.records.half_pairs import half_pair_in
from rollbook.records.json_values import JsonObject
from rollbook.records.nesting import not_too_deep
from rollbook.records.source import SourceRow

_LISTED: Final = 5
_BOM: Final = b"\xef\xbb\xbf"


class _BadLine(msgspec.Struct, frozen=True):
    number: int
    reason: str


def read_source_rows(path: Path) -> Iterator[SourceRow]:
    """Yield the rows of the dataset at `path`, one at a time.

    Raises:
        InputError: the file holds no row, or lines that are no JSON object; names file, lines and reasons. It is raised
            after the last line was looked at, so a caller must not act on a row before the iterator ends.

    """
    bad: list[_BadLine] = []
    rows = 0
    for number, text in _lines(path):
        parsed = _parse(text)
        if isinstance(parsed, str):
            bad.append(_BadLine(number, parsed))
            continue
        rows += 1
        if not bad:
            yield SourceRow(number, text, parsed, str(path))
    if bad:
        raise InputError(_bad_lines_message(path, bad))
    if not rows:
        raise InputError(f"{path}: the file holds no rows; give a dataset with one JSON object a line")


def key_twice(text: bytes) -> str | None:
    """Return the first key that an object of a row's `text` has twice; None where each stands once.

    JSON leaves open which of the two counts (RFC 8259 §4); a row is read with the last.
    """
    try:
        _ONCE.decode(text.decode())
    except _TwiceError as error:
        return error.key
    except RecursionError:  # deeper than this decoder goes
        return None
    return None


class _TwiceError(Exception):
    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.key = key


def _once(pairs: list[tuple[str, object]]) -> None:
    keys = [key for key, _ in pairs]
    if len({*keys}) < len(keys):
        raise _TwiceError(next(key for index, key in enumerate(keys) if key in keys[:index]))


_ONCE: Final = json.JSONDecoder(object_pairs_hook=_once, parse_int=bool, parse_float=bool)


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    with path.open("rb") as file:
        for number, raw in enumerate(file, start=1):
            text = raw.removeprefix(_BOM).strip(b" \t\r\n")
            if text:
                yield number, text


def _parse(text: bytes) -> JsonObject | str:
    try:
        value = msgspec.json.decode(not_too_deep(text))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return half_pair_in(text) or str(error).removeprefix("JSON is malformed: ") or type(error).__name__
    if isinstance(value, dict):
        return value
    return f"expected a JSON object, found {_json_type(value)}"


def _json_type(value: object) -> str:
    names = {list: "an array", str: "a string", bool: "a boolean", int: "a number", float: "a number"}
    return names.get(type(value), "null")


def _bad_lines_message(path: Path, bad: list[_BadLine]) -> str:
    listed = "; ".join(f"{path}:{line.number}: {line.reason}" for line in bad[:_LISTED])
    more = f"; and {len(bad) - _LISTED} more" if len(bad) > _LISTED else ""
    return f"malformed JSONL: {listed}{more}. Each line must be one JSON object"
