"""The rows of a plan by who they are about: found on disk when asked for, twelve bytes each in memory.

Rules:
* A row is read back when it is asked for, and what is read back is the row that was asked for.
* A rollout is named by the id that its row states, else `<task>-<rollout>`; where no row states one, no disk is read.
* One name is one rollout: two rows with one name are refused, and both lines are told.

Source: collection.md §1.5, §2.9, §5.4.1.
"""

import re
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

import msgspec

from rollbook.errors import InputError, LedgerError
from rollbook.ledger.reader import Line
from rollbook.records.identity import (
    ROLLOUT_ID_KEY_NAME,
    ROLLOUT_INDEX_KEY_NAME,
    TASK_INDEX_KEY_NAME,
    RolloutKey,
    checked_rollout_id,
    logical_rollout_id,
)
from rollbook.records.json_values import JsonMapping, JsonObject

_NUMBERED: Final = re.compile(r"([0-9]+)-([0-9]+)")
_BOM: Final = b"\xef\xbb\xbf"
_HASH: Final = 0xFFFFFFFF
_ROW: Final = msgspec.json.Decoder(JsonObject)


class PlanRows(Protocol):
    """The planned rows, by key and by name."""

    def name_of(self, key: RolloutKey) -> str:
        """Return the logical rollout id of `key`; of one that is not planned, the one that its numbers give."""
        ...

    def key_of(self, name: str) -> RolloutKey | None:
        """Return which rollout `name` names, or None; one that is not planned is named by its numbers."""
        ...

    def row(self, key: RolloutKey) -> JsonObject:
        """Return the planned row of `key`, which is the caller's own.

        Raises:
            LedgerError: no such row is there.

        """
        ...

    @property
    def states_names(self) -> bool:
        """Whether a row states an id of its own."""
        ...


class _Head(msgspec.Struct):
    task: int = msgspec.field(name=TASK_INDEX_KEY_NAME)
    rollout: int = msgspec.field(name=ROLLOUT_INDEX_KEY_NAME)
    rollout_id: Any = msgspec.field(name=ROLLOUT_ID_KEY_NAME, default=None)

    @property
    def key(self) -> RolloutKey:
        return RolloutKey(self.task, self.rollout)

    def check_name(self) -> None:
        if self.rollout_id is not None:
            checked_rollout_id(str(self.rollout_id))

    @property
    def name(self) -> str:
        return str(self.key) if self.rollout_id is None else named({ROLLOUT_ID_KEY_NAME: self.rollout_id})


_HEAD: Final = msgspec.json.Decoder(_Head)


def named(row: JsonMapping) -> str:
    """Return the name of the rollout of `row`.

    Raises:
        InputError: it has none, or one that the wire does not allow.

    """
    name = logical_rollout_id(row)
    if name is None:
        raise InputError(f"a row without {TASK_INDEX_KEY_NAME} and {ROLLOUT_INDEX_KEY_NAME} names no rollout")
    return name


def numbered_key(name: str) -> RolloutKey | None:
    """Return the rollout whose numbers `name` is written with, if it is."""
    found = _NUMBERED.fullmatch(name)
    key = RolloutKey(int(found[1]), int(found[2])) if found else None
    return key if str(key) == name else None


class PlanInHand:
    """Rows that a caller holds already."""

    def __init__(self, rows: Iterable[JsonObject]) -> None:
        self._rows: dict[RolloutKey, JsonObject] = {}
        self._keys: dict[str, RolloutKey] = {}
        for row in rows:
            key = _key_in(row)
            if key in self._rows or named(row) in self._keys:
                raise InputError(f"rollout {named(row)} is planned twice")
            self._rows[key] = row
            self._keys[named(row)] = key

    def __iter__(self) -> Iterator[RolloutKey]:
        """Yield what is planned, in plan order."""
        return iter(self._rows)

    @property
    def states_names(self) -> bool:
        """Whether a row states an id of its own."""
        return any(name != str(key) for name, key in self._keys.items())

    def name_of(self, key: RolloutKey) -> str:
        """Return the logical rollout id of `key`."""
        return named(self._rows[key]) if key in self._rows else str(key)

    def key_of(self, name: str) -> RolloutKey | None:
        """Return which rollout `name` names, or None."""
        return self._keys.get(name) or _unplanned(self, name)

    def row(self, key: RolloutKey) -> JsonObject:
        """Return a copy of the planned row of `key`."""
        if key not in self._rows:
            raise LedgerError(f"rollout {key} is not planned")
        return dict(self._rows[key])


@dataclass(frozen=True, slots=True)
class _Index:
    """Offsets of lines by the hash of what they are looked for by; whoever asks looks whether it is the right line."""

    hashes: Sequence[int]
    offsets: Sequence[int]

    @classmethod
    def of(cls, hashes: Sequence[int], offsets: Sequence[int]) -> "_Index":
        order = sorted(range(len(hashes)), key=hashes.__getitem__)
        return cls(array("I", [hashes[at] for at in order]), array("q", [offsets[at] for at in order]))

    def find(self, text: str) -> Iterator[int]:
        hashed = _hashed(text)
        at = bisect_left(self.hashes, hashed)
        while at < len(self.hashes) and self.hashes[at] == hashed:
            yield self.offsets[at]
            at += 1

    def alike(self) -> Iterator[tuple[int, int]]:
        """Yield pairs of lines that may have one name."""
        for at in range(1, len(self.hashes)):
            back = at - 1
            while back >= 0 and self.hashes[back] == self.hashes[at]:
                yield self.offsets[back], self.offsets[at]
                back -= 1


class PlanOnDisk:
    """The rows of a plan that was written down."""

    def __init__(self, path: Path, lines: Iterable[Line]) -> None:
        self._path = path
        keys, offsets = array("I"), array("q")
        names: array[int] | None = None
        for line in lines:
            head = self._head_in(line.text, line.number)
            if names is None and head.rollout_id is not None:
                names = keys[:]
            keys.append(_hashed(str(head.key)))
            offsets.append(line.offset)
            if names is not None:
                names.append(_hashed(head.name))
        self._by_key = _Index.of(keys, offsets)
        self._by_name = None if names is None else _Index.of(names, offsets)
        self._refuse_shared_names()

    @property
    def states_names(self) -> bool:
        """Whether a row states an id of its own."""
        return self._by_name is not None

    def name_of(self, key: RolloutKey) -> str:
        """Return the logical rollout id of `key`."""
        line = None if self._by_name is None else self._line_of(key)
        return str(key) if line is None else _HEAD.decode(line).name

    def key_of(self, name: str) -> RolloutKey | None:
        """Return which rollout `name` names, or None."""
        if self._by_name is None:
            return numbered_key(name)
        heads = (_HEAD.decode(self._line_at(offset)) for offset in self._by_name.find(name))
        return next((head.key for head in heads if head.name == name), None) or _unplanned(self, name)

    def row(self, key: RolloutKey) -> JsonObject:
        """Read the planned row of `key`.

        Raises:
            LedgerError: it is not planned, or no longer where it was.

        """
        line = self._line_of(key)
        if line is None:
            raise LedgerError(f"{self._path}: rollout {key} is not planned, or the plan was changed since it was read")
        return _ROW.decode(line)

    def _line_of(self, key: RolloutKey) -> bytes | None:
        for offset in self._by_key.find(str(key)):
            line = self._line_at(offset)
            if self._head_in(line).key == key:
                return line
        return None

    def _line_at(self, offset: int) -> bytes:
        with self._path.open("rb") as file:
            file.seek(offset)
            line = file.readline().strip()
        return line.removeprefix(_BOM) if offset == 0 else line

    def _head_in(self, line: bytes, number: int | None = None) -> _Head:
        place = self._path if number is None else f"{self._path}:{number}"
        try:
            head = _HEAD.decode(line)
            head.check_name()
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, InputError) as error:
            raise LedgerError(f"{place}: a line that names no rollout: {error}") from error
        return head

    def _refuse_shared_names(self) -> None:
        for first, second in () if self._by_name is None else self._by_name.alike():
            name, other = (self._head_in(self._line_at(offset)).name for offset in (first, second))
            if name == other:
                raise LedgerError(
                    f"{self._path}: rollout id {name} stands in two rows (at bytes {first} and {second}); the rollouts "
                    "cannot be told apart. Give each an id of its own, and plan anew"
                )


def _unplanned(plan: PlanRows, name: str) -> RolloutKey | None:
    """Return the rollout that `name` names by its numbers, unless the plan names that one otherwise."""
    key = numbered_key(name)
    return key if key is not None and plan.name_of(key) == name else None


def _key_in(row: JsonMapping) -> RolloutKey:
    task, rollout = row.get(TASK_INDEX_KEY_NAME), row.get(ROLLOUT_INDEX_KEY_NAME)
    if not isinstance(task, int) or not isinstance(rollout, int):
        raise InputError(f"a row without {TASK_INDEX_KEY_NAME} and {ROLLOUT_INDEX_KEY_NAME} is no planned rollout")
    return RolloutKey(task, rollout)


def _hashed(text: str) -> int:
    return hash(text) & _HASH
