"""Why no task of two runs has the tags that a tier wants.

Rules:
* Only the first tasks of a plan are looked at: it is a hint for who misspelt something.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Final

import msgspec

from rollbook.compare.nearest import meant
from rollbook.ledger.paths import RunPaths
from rollbook.ledger.reader import scan
from rollbook.records.json_values import JsonMapping, JsonObject
from rollbook.records.reading import UNREADABLE
from rollbook.verbs.compare_side import places_of_tags

_LOOKED_AT: Final = 2000
_ROW: Final = msgspec.json.Decoder(JsonObject)


def no_such_tags(outputs: Sequence[Path], wanted: Mapping[str, object]) -> str:
    """Return that no task has the `wanted` tags, and which of them is nowhere, with what is nearest to it."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for row in _rows(outputs):
        for place in places_of_tags(row):
            for key, value in place.items():
                found[key].update(_told(value))
    why = list(_unknown(found, wanted))
    listed = ", ".join(f"{key}: {' or '.join(_told(value))}" for key, value in wanted.items())
    return f"no task has the tags {listed}" + "".join(why)


def _unknown(found: Mapping[str, set[str]], wanted: Mapping[str, object]) -> Iterator[str]:
    for key, value in wanted.items():
        if key not in found:
            yield f"; none has a {key}{meant(key, found)}"
        elif not found[key].intersection(_told(value)):
            yield f"; none has that {key}{''.join(meant(one, found[key]) for one in _told(value)[:1])}"


def _told(value: object) -> list[str]:
    values = value if isinstance(value, list) else [value]
    return [str(one) for one in values if isinstance(one, str | bool | int | float)]


def _rows(outputs: Sequence[Path]) -> Iterator[JsonMapping]:
    for output in outputs:
        for line in islice(scan(RunPaths(output).materialized_inputs), _LOOKED_AT):
            try:
                yield _ROW.decode(line.text)
            except UNREADABLE:
                continue
