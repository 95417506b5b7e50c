"""A plan as one digest a rollout, and how a new plan differs from it.

Rules:
* Lines are alike when they hold the same JSON: the order of keys, spaces, and `1` or `1.0` change nothing.
* Skills are their hash: where they lie, and how their front matter is read, changes nothing.
* What is kept of a line is 16 bytes and its rollout's numbers, in arrays; a plan read in its own order is compared
  without an index.
* New lines stream through; nobody holds a plan.

Source: collection.md §1.5, §1.8, §5.4.
"""

import hashlib
import math
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from typing import Final, Self

import msgspec

from rollbook.errors import InputError
from rollbook.records.identity import RolloutKey
from rollbook.records.keys import SKILLS_REF_KEY
from rollbook.records.nesting import not_too_deep

DIGEST_BYTES: Final = 16
_HASH: Final = "hash"
MOST_NAMED: Final = 5
"""Changed rollouts that a comparison names; the rest it counts."""
_EXACT: Final = 2**53


def content_digest(line: bytes) -> bytes:
    """Return 16 bytes that tell a line's content; a line that is no JSON stands for itself."""
    try:
        text = msgspec.json.encode(_named_by_hash(_DECODER.decode(not_too_deep(line))), order="sorted")
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        text = line.strip()
    return hashlib.sha256(text).digest()[:DIGEST_BYTES]


def _named_by_hash(row: object) -> object:
    """Return a row with its skills reduced to their hash, where they have one."""
    skills = row.get(SKILLS_REF_KEY) if isinstance(row, dict) else None
    if not isinstance(row, dict) or not isinstance(skills, dict) or _HASH not in skills:
        return row
    return row | {SKILLS_REF_KEY: {_HASH: skills[_HASH]}}


def _number(text: str) -> int | float | str:
    value = float(text)
    if not math.isfinite(value):
        return text
    return int(value) if value.is_integer() and abs(value) < _EXACT else value


_DECODER: Final = msgspec.json.Decoder(float_hook=_number)


class PlanDigest(msgspec.Struct):
    """What every rollout of a plan is asked, as digests."""

    _tasks: "array[int]" = msgspec.field(default_factory=lambda: array("Q"))
    _rollouts: "array[int]" = msgspec.field(default_factory=lambda: array("Q"))
    _contents: bytearray = msgspec.field(default_factory=bytearray)
    _by_key: "array[int] | None" = None
    _expected: int = 0

    @classmethod
    def of(cls, lines: Iterable[tuple[RolloutKey, bytes]]) -> Self:
        """Return the digest of a plan's lines.

        Raises:
            InputError: a rollout whose numbers no 64 bits hold.

        """
        plan = cls()
        for key, line in lines:
            plan._add(key, line)
        return plan

    def __len__(self) -> int:
        """Return how many rollouts are planned."""
        return len(self._tasks)

    def place_of(self, key: RolloutKey) -> int | None:
        """Return where in the plan a rollout is, or None."""
        place = self._expected
        if place >= len(self) or self._key_at(place) != (key.task, key.rollout):
            found = self._searched(key)
            if found is None:
                return None
            place = found
        self._expected = place + 1
        return place

    def content_at(self, place: int) -> bytes:
        """Return the content digest of the line at a place in the plan."""
        return bytes(self._contents[place * DIGEST_BYTES : (place + 1) * DIGEST_BYTES])

    def _add(self, key: RolloutKey, line: bytes) -> None:
        try:
            self._tasks.append(key.task)
            self._rollouts.append(key.rollout)
        except OverflowError:
            raise InputError(f"the rollout {key} has numbers that no 64 bits hold; number the tasks from 0") from None
        self._contents += content_digest(line)

    def _key_at(self, place: int) -> tuple[int, int]:
        return self._tasks[place], self._rollouts[place]

    def _searched(self, key: RolloutKey) -> int | None:
        if self._by_key is None:
            self._by_key = array("Q", sorted(range(len(self)), key=self._key_at))
        wanted = (key.task, key.rollout)
        found = bisect_left(self._by_key, wanted, key=self._key_at)
        if found == len(self) or self._key_at(self._by_key[found]) != wanted:
            return None
        return self._by_key[found]


class PlanComparison(msgspec.Struct, frozen=True):
    """A new plan beside the one on disk, in rollouts.

    `same` have equal lines, `changed_count` other ones (`changed` names the first few), `added` are new, and `missing`
    are planned on disk alone.
    """

    same: int = 0
    changed: tuple[RolloutKey, ...] = ()
    changed_count: int = 0
    added: int = 0
    missing: int = 0

    @classmethod
    def unchanged(cls, planned: int) -> Self:
        """Return what comes out for a plan that is known to be the one on disk."""
        return cls(same=planned)

    @property
    def planned(self) -> int:
        """How many rollouts the plan on disk has."""
        return self.same + self.changed_count + self.missing

    @property
    def is_another_plan(self) -> bool:
        """Whether what is planned anew is not the old plan, longer or shorter."""
        return self.changed_count > 0 or (self.same == 0 and self.added > 0 and self.missing > 0)


def compare_plans(old: PlanDigest, new_lines: Iterable[tuple[RolloutKey, bytes]]) -> PlanComparison:
    """Return how the plan of `new_lines` differs from the old one."""
    seen = bytearray(len(old))
    changed: list[RolloutKey] = []
    same = changed_count = added = 0
    for key, line in new_lines:
        place = old.place_of(key)
        if place is None:
            added += 1
            continue
        if old.content_at(place) == content_digest(line):
            same += 1
        else:
            changed_count += 1
            changed += [key][: MOST_NAMED - len(changed)]
        seen[place] = 1
    return PlanComparison(same, tuple(changed), changed_count, added, seen.count(0))


def added_lines(old: PlanDigest, new_lines: Iterable[tuple[RolloutKey, bytes]]) -> Iterator[tuple[RolloutKey, bytes]]:
    """Yield the lines of rollouts that the old plan does not have, in their order."""
    return ((key, line) for key, line in new_lines if old.place_of(key) is None)
