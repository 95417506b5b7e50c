"""The tasks of a plan while it is made: which text is which task, and how many rollouts each has.

Rules:
* Columns, not objects: some thirty bytes a task, which go back whole when the plan is made.
* A digest is compared in full: what is kept of it besides only says where to look.
"""

from array import array
from typing import Final

_DIGEST_BYTES: Final = 16
_FIRST_ENTRIES: Final = 64


class TaskNumbers:
    """Digest of a task's text → number of the task. Entries hold places counted from 1, or 0."""

    __slots__ = ("_digests", "_entries", "_supplied")

    def __init__(self) -> None:
        self._digests = bytearray()
        self._entries = _entries(_FIRST_ENTRIES)
        self._supplied: dict[int, int] = {}

    def __len__(self) -> int:
        """Return how many digests there are."""
        return len(self._digests) // _DIGEST_BYTES

    def get(self, digest: bytes) -> int | None:
        """Return the number of a task, None when it was not added."""
        place = self._entries[self._entry_of(digest)]
        return self._supplied.get(place, place - 1) if place else None

    def add(self, digest: bytes, task: int) -> None:
        """Keep the number of a task that was not added before; one that counts on from the last costs nothing."""
        entry, place = self._entry_of(digest), len(self) + 1
        self._digests += digest
        self._entries[entry] = place
        if task != place - 1:
            self._supplied[place] = task
        if 3 * place > 2 * len(self._entries):
            self._enlarge()

    def _entry_of(self, digest: bytes) -> int:
        """Return the entry that holds a digest's place, or the free one where it belongs."""
        entries, digests = self._entries, self._digests
        last = len(entries) - 1
        entry = int.from_bytes(digest[:8]) & last
        while place := entries[entry]:
            if digests[(place - 1) * _DIGEST_BYTES : place * _DIGEST_BYTES] == digest:
                return entry
            entry = entry + 1 & last
        return entry

    def _enlarge(self) -> None:
        self._entries = entries = _entries(2 * len(self._entries))
        last = len(entries) - 1
        for place in range(1, len(self) + 1):
            start = (place - 1) * _DIGEST_BYTES
            entry = int.from_bytes(self._digests[start : start + 8]) & last
            while entries[entry]:
                entry = entry + 1 & last
            entries[entry] = place


class RolloutCounts:
    """How many rollouts each task has; tasks that count on from 0 lie in a column."""

    __slots__ = ("_counted_on", "_others")

    def __init__(self) -> None:
        self._counted_on = array("I")
        self._others: dict[int, int] = {}

    def of(self, task: int) -> int:
        """Return how many rollouts `task` has."""
        return self._counted_on[task] if task < len(self._counted_on) else self._others.get(task, 0)

    def add(self, task: int) -> int:
        """Return the index of the next rollout of `task`."""
        index, counts = self.of(task), self._counted_on
        if task < len(counts):
            counts[task] = index + 1
        elif task == len(counts):
            self._others.pop(task, None)
            counts.append(index + 1)
        else:
            self._others[task] = index + 1
        return index

    def largest(self) -> tuple[int, int] | None:
        """Return a task with most rollouts, and how many it has; None as long as there is none."""
        found = max(self._others.items(), key=lambda item: item[1], default=None)
        most = max(self._counted_on, default=0)
        return (self._counted_on.index(most), most) if most and (found is None or most >= found[1]) else found


def _entries(count: int) -> "array[int]":
    return array("I", [0]) * count
