"""Tasks with one prompt, told apart by the other fields of their rows.

Rules:
* Nothing is guessed: a task is paired by a field that no two tasks of its side share, and by no other.
* A field that is the same for every task of a side tells nothing apart, so it may have changed between the runs. One
  that does, and of which the sides share no value, says that these may be other tasks: then none of them is paired.
* Fields that say different things of a task leave it without a partner.
"""

from array import array
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Final

from rollbook.compare.side import Side

MOST_FIELDS: Final = 64
Values = tuple[Sequence[Hashable], Sequence[Hashable]]
"""What one field says of each task of the baseline, and of each of the candidate; 0 where a task lacks it."""


class TaskFields:
    """What the fields of some tasks say, as digests, by the field's name; at most `MOST_FIELDS` fields are kept."""

    def __init__(self, tasks: Iterable[int]) -> None:
        self._tasks = array("q", sorted(set(tasks)))
        self._columns: dict[str, array[int]] = {}

    @property
    def names(self) -> Iterable[str]:
        """The fields' names."""
        return self._columns.keys()

    def say(self, task: int, name: str, digest: int) -> None:
        """Note what a field says of one of the tasks."""
        column = self._columns.get(name)
        if column is None:
            if len(self._columns) == MOST_FIELDS:
                return
            column = self._columns[name] = array("Q", bytes(8 * len(self._tasks)))
        column[bisect_left(self._tasks, task)] = digest

    def values(self, name: str, tasks: Iterable[int]) -> "array[int]":
        """Return what a field says of each of `tasks`."""
        column = self._columns.get(name)
        found = (column[bisect_left(self._tasks, task)] if column is not None else 0 for task in tasks)
        return array("Q", found)


FieldsOf = Callable[[Side, Iterable[int]], TaskFields]
"""What the fields of some tasks of a side say."""


def no_fields(_side: Side, tasks: Iterable[int]) -> TaskFields:
    """Return that nothing is known of any field."""
    return TaskFields(tasks)


def told_apart(fields: Iterable[Values]) -> Mapping[int, int]:
    """Return which place of the baseline goes with which of the candidate."""
    varying = [(ours, theirs) for ours, theirs in fields if len(set(ours)) > 1 or len(set(theirs)) > 1]
    if any(set(ours).isdisjoint(theirs) for ours, theirs in varying):
        return {}
    together: Values = (
        [*zip(*(ours for ours, _ in varying), strict=True)],
        [*zip(*(theirs for _, theirs in varying), strict=True)],
    )
    partners: defaultdict[int, set[int]] = defaultdict(set)
    named_by: defaultdict[int, set[int]] = defaultdict(set)
    for ours, theirs in (each for each in (*varying, together) if all(map(_are_distinct, each))):
        at = {value: place for place, value in enumerate(theirs) if value}
        for place, value in enumerate(ours):
            if value in at:
                partners[place].add(at[value])
                named_by[at[value]].add(place)
    agreed = {place: next(iter(found)) for place, found in partners.items() if len(found) == 1}
    return {place: partner for place, partner in agreed.items() if len(named_by[partner]) == 1}


def _are_distinct(values: Sequence[Hashable]) -> bool:
    return len(set(values)) == len(values)
