"""The plans of several runs as one: each planned rollout once, in order, byte for byte as its run planned it.

Rules:
* What several shards planned is said as the shard planned it whose result stands, else as the first of them did.
* Of a line its place is kept, twenty bytes; the lines themselves pass through.
"""

from array import array
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from heapq import merge
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Final

from rollbook.errors import LedgerError
from rollbook.ledger.manifest_store import read_manifest
from rollbook.ledger.paths import RunPaths
from rollbook.ledger.reader import plain_lines
from rollbook.records.columns import packed
from rollbook.records.manifest import RunManifest
from rollbook.records.reading import PLAN_HEAD, UNREADABLE
from rollbook.verbs.placed_rows import PlacedRows

_BEYOND: Final = 1 << 64
"""Greater than any key."""


@dataclass(slots=True)
class PlanIndex:
    """Where the lines of one plan lie, by packed key, in order."""

    path: Path
    keys: "array[int]" = field(default_factory=lambda: array("Q"))
    offsets: "array[int]" = field(default_factory=lambda: array("q"))
    lengths: "array[int]" = field(default_factory=lambda: array("I"))

    def __iter__(self) -> Iterator[tuple[int, int, int]]:
        """Yield (packed key, offset, length)."""
        return zip(self.keys, self.offsets, self.lengths, strict=True)


def known_manifest(paths: RunPaths) -> RunManifest | None:
    """Return the manifest of a run, None where none is there that can be read."""
    try:
        return read_manifest(paths.manifest)
    except LedgerError:
        return None


def plan_index(paths: RunPaths) -> PlanIndex:
    """Return where the lines of the plan lie that is in force; what is no line of a plan is left out."""
    manifest = known_manifest(paths)
    found = PlanIndex(paths.materialized_inputs)
    keys, decode, rises, before = found.keys, PLAN_HEAD.decode, True, -1
    for _, offset, length, text in plain_lines(found.path, manifest.plan.bytes if manifest else None):
        try:
            head = decode(text)
        except UNREADABLE:
            continue
        key = packed(head.task, head.rollout)
        rises, before = rises and key > before, key
        keys.append(key)
        found.offsets.append(offset)
        found.lengths.append(length)
    return found if rises else _sorted(found)


def _sorted(found: PlanIndex) -> PlanIndex:
    order = sorted(range(len(found.keys)), key=found.keys.__getitem__)
    return PlanIndex(
        found.path,
        array("Q", map(found.keys.__getitem__, order)),
        array("q", map(found.offsets.__getitem__, order)),
        array("I", map(found.lengths.__getitem__, order)),
    )


def holds_all(plans: Sequence[PlanIndex], wanted: Iterable[int]) -> bool:
    """Whether some plan holds every one of the `wanted` keys, which rise."""
    planned, at = merge(*(plan.keys for plan in plans)), -1
    for key in wanted:
        while at < key:
            at = next(planned, _BEYOND)
        if at != key:
            return False
    return True


def merged_lines(
    plans: Sequence[PlanIndex], results: Iterable[tuple[int, int, int]], holding: ExitStack
) -> Iterator[bytes]:
    """Yield the lines of all plans, each rollout's once; `results` are (packed key, shard, row), in order."""
    lines = [holding.enter_context(PlacedRows(plan.path)) if len(plan.keys) else None for plan in plans]
    standing = iter(results)
    stands = next(standing, None)
    places = merge(*(_numbered(plan, shard) for shard, plan in enumerate(plans)))
    for key, found in groupby(places, key=itemgetter(0)):
        while stands is not None and stands[0] < key:
            stands = next(standing, None)
        choices = list(found)
        told_by = stands[1] if stands is not None and stands[0] == key else None
        _, shard, offset, length = next((one for one in choices if one[1] == told_by), choices[0])
        rows = lines[shard]
        if rows is not None:
            yield rows.at(offset, length)


def _numbered(plan: PlanIndex, shard: int) -> Iterator[tuple[int, int, int, int]]:
    return ((key, shard, offset, length) for key, offset, length in plan)
