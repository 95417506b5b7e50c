"""Rows of rollouts that have no result and count as zero, made where the rows of results are gone through.

Rules:
* Rows come in (task, rollout) order, and none of them is kept.
* A task's fields are taken where real rows of the same server carry them.

Source: collection.md §4.9, §6.1, §6.5.
"""

from array import array
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import ExitStack
from typing import Final, NamedTuple

import msgspec

from rollbook.ledger.paths import RunPaths
from rollbook.ledger.reader import whole_lines
from rollbook.records.codec import encode
from rollbook.records.columns import packed, packed_key
from rollbook.records.json_values import JsonObject
from rollbook.records.reading import PLAN_HEAD, UNREADABLE
from rollbook.scoring.imputation import Added, added_row
from rollbook.verbs.placed_rows import PlacedRows

_NOWHERE: Final = -1


class AddedAt(NamedTuple):
    """A rollout to be added, and which of the added ones it is."""

    key: int
    number: int
    one: Added


class AddedRows:
    """The rollouts of one run that are added: `found` gives them anew each time it is asked, in order."""

    def __init__(self, paths: RunPaths, found: Callable[[], Iterable[Added]], holding: ExitStack) -> None:
        self._found = found
        self._keys = array("Q", (packed_key(one.key) for one in found()))
        self._offsets = array("q", [_NOWHERE]) * len(self._keys)
        self._lengths = array("Q", bytes(8 * len(self._keys)))
        if self._keys:
            self._look_for_tasks(paths)
            self._plan = _opened(paths.materialized_inputs.exists(), lambda: PlacedRows(paths.materialized_inputs))
            self._failures = _opened(paths.failures.exists(), lambda: PlacedRows(paths.failures))
            for rows in filter(None, (self._plan, self._failures)):
                holding.callback(rows.close)

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._keys)

    def __iter__(self) -> Iterator[AddedAt]:
        """Yield them."""
        for number, one in enumerate(self._found()):
            yield AddedAt(self._keys[number], number, one)

    def _look_for_tasks(self, paths: RunPaths) -> None:
        for _, offset, length, text in whole_lines(paths.materialized_inputs):
            try:
                head = PLAN_HEAD.decode(text)
            except UNREADABLE:
                continue
            key = packed(head.task, head.rollout)
            at = bisect_left(self._keys, key)
            if at < len(self._keys) and self._keys[at] == key and self._offsets[at] == _NOWHERE:
                self._offsets[at], self._lengths[at] = offset, length

    def row(self, at: AddedAt, carried: Collection[str]) -> bytes:
        """Return the row that stands for it among rows that carry these keys."""
        task = failure = None
        if self._offsets[at.number] != _NOWHERE:
            task = _object(self._plan, self._offsets[at.number], self._lengths[at.number])
        if at.one.place is not None:
            failure = _object(self._failures, at.one.place.offset, at.one.place.length)
        return encode(added_row(at.one, failure, task, carried))


def _opened(exists: bool, opened: Callable[[], PlacedRows]) -> PlacedRows | None:
    return opened() if exists else None


def _object(rows: PlacedRows | None, offset: int, length: int) -> JsonObject | None:
    if rows is None:
        return None
    try:
        found = msgspec.json.decode(rows.at(offset, length))
    except UNREADABLE:
        return None
    return found if isinstance(found, dict) else None
