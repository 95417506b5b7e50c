"""Which tasks of two runs are the same task: by what they say, whatever their numbers and their order.

Rules:
* First by everything that a task says; what is left by its prompt, then by its own name. How a pair was found is kept.
* Tasks that say the same are paired in the order in which they stand; one that has no partner is named, not dropped.
* By number only where asked for, or where one side says nothing of what its tasks are.

Source: collection.md §9.2.
"""

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

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
    """Units of both sides, pair by pair, and those without a partner; `twins`: pairs of which several say the same."""

    baseline: "array[int]" = field(default_factory=lambda: array("I"))
    candidate: "array[int]" = field(default_factory=lambda: array("I"))
    how: "array[int]" = field(default_factory=lambda: array("B"))
    only_baseline: "array[int]" = field(default_factory=lambda: array("I"))
    only_candidate: "array[int]" = field(default_factory=lambda: array("I"))
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
        self.twins += other.twins


def paired(baseline: Side, candidate: Side, agents: Iterable[tuple[str, str]], by: PairBy = PairBy.CONTENT) -> Pairing:
    """Return the pairs of the tasks of each two agents that are compared."""
    whole = Pairing()
    for ours, theirs in agents:
        left = _Left(baseline, candidate, array("I", baseline.units_under(ours)))
        left.candidates = array("I", candidate.units_under(theirs))
        whole.extend(left.paired(by))
    return whole


@dataclass(slots=True)
class _Left:
    """Units that have no partner yet."""

    baseline: Side
    candidate: Side
    baselines: "array[int]"
    candidates: "array[int]" = field(default_factory=lambda: array("I"))
    found: Pairing = field(default_factory=Pairing)

    def paired(self, by: PairBy) -> Pairing:
        if by is PairBy.CONTENT:
            self._join(self.baseline.contents, self.candidate.contents, How.CONTENT)
            self._join(self.baseline.prompts, self.candidate.prompts, How.PROMPT)
            self._join(self.baseline.names, self.candidate.names, How.NAME)
        if by is PairBy.NUMBER or self._one_side_is_silent():
            self._join(self.baseline.task, self.candidate.task, How.NUMBER)
        self.found.only_baseline, self.found.only_candidate = self.baselines, self.candidates
        return self.found

    def _one_side_is_silent(self) -> bool:
        """Whether of one side nothing is known of what its tasks say."""
        return not len(self.found) and not (
            any(self.baseline.prompts[unit] or self.baseline.contents[unit] for unit in self.baselines)
            and any(self.candidate.prompts[unit] or self.candidate.contents[unit] for unit in self.candidates)
        )

    def _join(self, ours: Sequence[int], theirs: Sequence[int], how: How) -> None:
        """Pair what has the same key, the first with the first, the second with the second."""
        by_number = how is How.NUMBER
        mine = _sorted(self.baselines, ours, every=by_number)
        other = _sorted(self.candidates, theirs, every=by_number)
        first = len(self.found)
        at, before = 0, -1
        for unit in mine:
            key = ours[unit]
            while at < len(other) and theirs[other[at]] < key:
                at += 1
            if at < len(other) and theirs[other[at]] == key:
                self._add(unit, other[at], how)
                self.found.twins += key == before
                before = key
                at += 1
        self._take(self.found.baseline[first:], self.found.candidate[first:])

    def _add(self, unit: int, partner: int, how: How) -> None:
        told = how
        if how is How.PROMPT and self.baseline.contents[unit] and self.candidate.contents[partner]:
            told = How.OTHER_FIELDS
        self.found.baseline.append(unit)
        self.found.candidate.append(partner)
        self.found.how.append(HOWS.index(told))

    def _take(self, baselines: Iterable[int], candidates: Iterable[int]) -> None:
        self.baselines = _without(self.baselines, baselines)
        self.candidates = _without(self.candidates, candidates)


def _sorted(units: Iterable[int], keys: Sequence[int], *, every: bool) -> "array[int]":
    """Return those units of which the key is known, by key, equal ones in their order."""
    return array("I", sorted((unit for unit in units if every or keys[unit]), key=keys.__getitem__))


def _without(units: "array[int]", taken: Iterable[int]) -> "array[int]":
    gone = bytearray(max(units, default=0) + 1)
    for unit in taken:
        gone[unit] = 1
    return array("I", (unit for unit in units if not gone[unit]))
