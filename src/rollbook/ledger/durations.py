"""How long failed attempts took, as the failures of a run say it.

Rules:
* One pass over the file; of each row only what names the rollout and its seconds is decoded.
* The row's own seconds come before those of its response. What is no positive, finite number says nothing.
* Of several attempts the longest counts. A line that cannot be read is left to those who fold it.

Source: collection.md §3.4.
"""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from rollbook.ledger.reader import plain_lines
from rollbook.records.columns import packed
from rollbook.records.identity import ROLLOUT_INDEX_KEY_NAME, TASK_INDEX_KEY_NAME
from rollbook.records.keys import NG_ELAPSED_KEY
from rollbook.records.nesting import not_too_deep
from rollbook.records.reading import SHALLOW, UNREADABLE


class _Metadata(msgspec.Struct, gc=False):
    elapsed: Any = msgspec.field(name=NG_ELAPSED_KEY, default=None)


class _Response(msgspec.Struct, gc=False):
    metadata: _Metadata | None = None


class _Row(msgspec.Struct, gc=False):
    task: int = msgspec.field(name=TASK_INDEX_KEY_NAME)
    rollout: int = msgspec.field(name=ROLLOUT_INDEX_KEY_NAME)
    elapsed: Any = msgspec.field(name=NG_ELAPSED_KEY, default=None)
    response: msgspec.Raw = msgspec.Raw()


_ROW: Final = msgspec.json.Decoder(_Row)
_RESPONSE: Final = msgspec.json.Decoder(_Response)


def longest_attempts(failures: Path) -> Mapping[int, float]:
    """Return the seconds of each rollout's longest failed attempt, by packed key; those without any are left out."""
    longest: dict[int, float] = {}
    for _, _, length, text in plain_lines(failures):
        try:
            row = _ROW.decode(text if length < SHALLOW else not_too_deep(text))
        except UNREADABLE:
            continue
        seconds = _seconds(row.elapsed) or _seconds(_told_by(bytes(row.response)))
        if seconds:
            key = packed(row.task, row.rollout)
            longest[key] = max(seconds, longest.get(key, 0.0))
    return longest


def _told_by(response: bytes) -> object:
    try:
        metadata = _RESPONSE.decode(response).metadata if response else None
    except UNREADABLE:
        return None
    return metadata.elapsed if metadata is not None else None


def _seconds(value: object) -> float:
    """Return `value` as seconds, 0 when it is no positive, finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return 0.0
    return float(value) if 0 < value < math.inf else 0.0
