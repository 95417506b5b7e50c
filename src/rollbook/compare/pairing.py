"""Which tasks of two runs are the same task: by what they say, whatever their numbers and their order.

Rules:
* First by everything that a task says; what is left by its prompt, then by its own name. How a pair was found is kept.
* Tasks that say the same in everything are paired in the order in which they stand: which is which does not matter.
* Where a prompt or a name is that of several tasks of a side, place tells nothing: they are paired by their other
  fields, or not at all. One that has no partner is named, not dropped.
* By number only where asked for, or where one side says nothing of what its tasks are.

Source: collection.md §9.2.
"""

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import groupby
from typing import Final

from rollbook.compare.lookalikes import FieldsOf, TaskFields, no_fields, told_apart
from rollbook.compare.side import Side


class PairBy(StrEnum):
    """What tells that two tasks are the same."""

    CONTENT = "content"
    NUMBER = "number"


class How(StrEnum):
    """By what a pair was found."""

    CONTENT = "content"
    PROMPT = "prompt"
    OTHER_FIELDS = "prompt, other fields differ"
    NAME = "name, content differs"
    NUMBER = "number"


HOWS: Final = tuple(How)


@dataclass(slots=True)
class Pairing:
    """Units of both sides, pair by pair, and those without a partner; `twins`: pairs of which several say the same.

    `ambiguous_…`: those without a partner of which it is not known which of several tasks of the other side they are.
    """

    baseline: "array[int]" = field(default_factory=lambda: array("I"))
    candidate: "array[int]" = field(default_factory=lambda: array("I"))
    how: "array[int]" = field(default_factory=lambda: array("B"))
    only_baseline: "array[int]" = field(default_factory=lambda: array("I"))
    only_candidate: "array[int]" = field(default_factory=lambda: array("I"))
    ambiguous_baseline: "array[int]" = field(default_factory=lambda: array("I"))
    ambiguous_candidate: "array[int]" = field(default_factory=lambda: array("I"))
    twins: int = 0

    def __len__(self) -> int:
        """Return how many pairs there are."""
        return len(self.baseline)

    def __iter__(self) -> Iterator[tuple[int, int]]:
        """Yield (unit of the baseline, unit of the candidate)."""
        return zip(self.baseline, self.candidate, strict=True)

    def counts(self) -> dict[str, int]:
        """Return how many pairs were found by what."""
        return {HOWS[number].value: count for number, count in sorted(Counter(self.how).items())}

    def extend(self, other: "Pairing") -> None:
        """Take in the pairs of other units of the same sides."""
        self.baseline += other.baseline
        self.candidate += other.candidate
        self.how += other.how
        self.only_baseline += other.only_baseline
        self.only_candidate += other.only_candidate
        self.ambiguous_baseline += other.ambiguous_baseline
        self.ambiguous_candidate += other.ambiguous_candidate
        self.twins += other.twins


def paired(
    baseline: Side,
    candidate: Side,
    agents: Iterable[tuple[str, str]],
    by: PairBy = PairBy.CONTENT,
    fields_of: FieldsOf = no_fields,
) -> Pairing:
    """Return the pairs of the tasks of each two agents that are compared.

    `fields_of` is asked for what the other fields say of tasks whose prompt or name is that of several.
    """
    whole = Pairing()
    for ours, theirs in agents:
        units = array("I", baseline.units_under(ours)), array("I", candidate.units_under(theirs))
        whole.extend(_Left(_Units(baseline, units[0]), _Units(candidate, units[1]), fields_of).paired(by))
    return whole


@dataclass(slots=True)
class _Units:
    """The units of one side, and which of them have a partner or are ambiguous."""

    side: Side
    every: "array[int]"
    taken: bytearray = field(init=False)
    ambiguous: bytearray = field(init=False)

    def __post_init__(self) -> None:
        size = max(self.every, default=-1) + 1
        self.taken, self.ambiguous = bytearray(size), bytearray(size)

    def left(self, *, ambiguous: bool = False) -> "array[int]":
        """Return the units without a partner; of those, where it is asked for, the ambiguous ones."""
        return array(
            "I", (unit for unit in self.every if not self.taken[unit] and (not ambiguous or self.ambiguous[unit]))
        )

    def free(self, units: Iterable[int]) -> list[int]:
        """Return those of `units` that have no partner."""
        return [unit for unit in units if not self.taken[unit]]

    def by_content(self, units: Sequence[int]) -> list[list[int]]:
        """Return `units`, those together that say the same in everything; of unknown content every one is alone."""
        groups: dict[tuple[int, int, int], list[int]] = {}
        for unit in units:
            content = self.side.contents[unit]
            groups.setdefault((content, self.side.prompts[unit], 0 if content else unit + 1), []).append(unit)
        return [*groups.values()]


@dataclass(slots=True)
class _Left:
    """The units of both sides on their way to partners."""

    baseline: _Units
    candidate: _Units
    fields_of: FieldsOf
    found: Pairing = field(default_factory=Pairing)

    def paired(self, by: PairBy) -> Pairing:
        ours, theirs = self.baseline.side, self.candidate.side
        if by is PairBy.CONTENT:
            self._join(ours.contents, theirs.contents, How.CONTENT)
            self._join(ours.prompts, theirs.prompts, How.PROMPT)
            self._join(ours.names, theirs.names, How.NAME)
        if by is PairBy.NUMBER or self._one_side_is_silent():
            self._join(ours.task, theirs.task, How.NUMBER)
        self.found.only_baseline, self.found.only_candidate = self.baseline.left(), self.candidate.left()
        self.found.ambiguous_baseline = self.baseline.left(ambiguous=True)
        self.found.ambiguous_candidate = self.candidate.left(ambiguous=True)
        return self.found

    def _one_side_is_silent(self) -> bool:
        """Whether of one side nothing is known of what its tasks say."""
        return not len(self.found) and not all(
            any(units.side.prompts[unit] or units.side.contents[unit] for unit in units.every)
            for units in (self.baseline, self.candidate)
        )

    def _join(self, ours: Sequence[int], theirs: Sequence[int], how: How) -> None:
        """Pair what has the same key: in order where it says the same, else by what tells it apart."""
        if not (self.baseline.left() and self.candidate.left()):
            return
        unclear: list[tuple[list[int], list[int]]] = []
        for mine, other in _same_key(self.baseline.every, ours, self.candidate.every, theirs, every=how is How.NUMBER):
            free = self.baseline.free(mine), self.candidate.free(other)
            if not all(free):
                continue
            if how in {How.CONTENT, How.NUMBER} or self._are_clear(mine, other):
                self._add(*free, how)
            else:
                unclear.append((mine, other))
                for units, left in zip((self.baseline, self.candidate), free, strict=True):
                    for unit in left:
                        units.ambiguous[unit] = 1
        self._tell_apart(unclear, how)

    def _are_clear(self, mine: Sequence[int], other: Sequence[int]) -> bool:
        """Whether all units of a key say the same, on either side for itself."""
        return len(self.baseline.by_content(mine)) == 1 and len(self.candidate.by_content(other)) == 1

    def _tell_apart(self, unclear: Sequence[tuple[list[int], list[int]]], how: How) -> None:
        if not unclear:
            return
        sides = self.baseline.side, self.candidate.side
        of_baseline = self.fields_of(sides[0], (sides[0].task[unit] for mine, _ in unclear for unit in mine))
        of_candidate = self.fields_of(sides[1], (sides[1].task[unit] for _, other in unclear for unit in other))
        for units in unclear:
            mine, other = self.baseline.by_content(units[0]), self.candidate.by_content(units[1])
            places = [sides[0].task[each[0]] for each in mine], [sides[1].task[each[0]] for each in other]
            for place, partner in told_apart(_values(of_baseline, places[0], of_candidate, places[1])).items():
                self._add(self.baseline.free(mine[place]), self.candidate.free(other[partner]), how)

    def _add(self, mine: Sequence[int], other: Sequence[int], how: How) -> None:
        """Pair the first with the first, the second with the second."""
        for place, (unit, partner) in enumerate(zip(mine, other, strict=False)):
            told = how
            if how is How.PROMPT and self.baseline.side.contents[unit] and self.candidate.side.contents[partner]:
                told = How.OTHER_FIELDS
            self.found.baseline.append(unit)
            self.found.candidate.append(partner)
            self.found.how.append(HOWS.index(told))
            self.found.twins += place > 0
            self.baseline.taken[unit] = self.candidate.taken[partner] = 1


def _values(
    baseline: TaskFields, ours: Sequence[int], candidate: TaskFields, theirs: Sequence[int]
) -> Iterator[tuple["array[int]", "array[int]"]]:
    for name in sorted({*baseline.names, *candidate.names}):
        yield baseline.values(name, ours), candidate.values(name, theirs)


def _same_key(
    baselines: Iterable[int], ours: Sequence[int], candidates: Iterable[int], theirs: Sequence[int], *, every: bool
) -> Iterator[tuple[list[int], list[int]]]:
    """Yield the units of both sides that have one key, in their order; 0 is no key, unless `every` one counts."""
    right = _grouped(candidates, theirs, every=every)
    other: tuple[int, list[int]] | None = next(right, None)
    for key, mine in _grouped(baselines, ours, every=every):
        while other is not None and other[0] < key:
            other = next(right, None)
        if other is not None and other[0] == key:
            yield mine, other[1]


def _grouped(units: Iterable[int], keys: Sequence[int], *, every: bool) -> Iterator[tuple[int, list[int]]]:
    known = sorted((unit for unit in units if every or keys[unit]), key=keys.__getitem__)
    for key, group in groupby(known, key=keys.__getitem__):
        yield key, list(group)
