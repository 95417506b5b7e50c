"""Rollouts of several runs that have no result and count as zero.

Rules:
* A rollout with a result in any shard is none of them.
* Of failures in several shards the last one stands, and only then is it looked at whether it counts. A recorded failure
  is never taken for a missing rollout.

Source: collection.md §6.2, §4.9; vectors V16, V18.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from heapq import merge
from typing import NamedTuple

from rollbook.records.columns import unpacked_key
from rollbook.records.outcome import Failed
from rollbook.scoring.imputation import AS_MISSING, Counting, added
from rollbook.verbs.added_rows import AddedAt, AddedRows
from rollbook.verbs.light_rows import Serving, named_group
from rollbook.verbs.shard_groups import MetricsGroup, Shard


class ZeroAt(NamedTuple):
    """A rollout that counts as zero, and the shard that says so."""

    key: int
    shard: int
    at: AddedAt


class ShardZeros:
    """The rollouts of `shards` that count as zero, by group."""

    def __init__(
        self, shards: Sequence[Shard], servings: Sequence[Serving], counting: Counting, holding: ExitStack
    ) -> None:
        self._shards = shards
        self._servings = servings
        self._rows = [_added_rows(shard, counting, holding) for shard in shards]
        self.notes = [
            f"{shard.output}: no plan is beside it, so what is missing of it does not count as zero"
            for shard in shards
            if counting.missing and not any(shard.standings.columns.flags)
        ]

    def __bool__(self) -> bool:
        return any(map(len, self._rows))

    def of(self, group: MetricsGroup) -> Iterator[ZeroAt]:
        """Yield those of one group, in order."""
        before = -1
        for key, shard, at in merge(*(self._of_shard(number, group.name) for number in range(len(self._shards)))):
            if key != before and not _is_in(key, group) and self._decides(key, shard, at, group.name):
                before = key
                yield ZeroAt(key, shard, at)

    def row(self, zero: ZeroAt, carried: set[str]) -> bytes:
        """Return the row that stands for one of them."""
        return self._rows[zero.shard].row(zero.at, carried)

    def _of_shard(self, number: int, name: str) -> Iterator[ZeroAt]:
        serving = self._servings[number]
        for at in self._rows[number]:
            if named_group(serving, at.one.agent, at.one.server)[0] == name:
                yield ZeroAt(at.key, number, at)

    def _decides(self, key: int, shard: int, at: AddedAt, name: str) -> bool:
        """Whether no other shard says something of the rollout that goes before."""
        others = (number for number in range(len(self._shards)) if number != shard)
        failing = [number for number in others if self._fails(number, key, name)]
        return not failing if at.one.why == AS_MISSING else all(number < shard for number in failing)

    def _fails(self, number: int, key: int, name: str) -> bool:
        standings = self._shards[number].standings
        if standings.columns.seats.get(key) is None:
            return False
        record = standings.standing(unpacked_key(key), self._shards[number].rules).record
        if record is None or not isinstance(record.outcome, Failed):
            return False
        return named_group(self._servings[number], record.agent, record.server)[0] == name


def _added_rows(shard: Shard, counting: Counting, holding: ExitStack) -> AddedRows:
    own = counting if any(shard.standings.columns.flags) else Counting(counting.failure_classes)
    return AddedRows(shard.paths, lambda: added(shard.standings, own, shard.rules), holding)


def _is_in(key: int, group: MetricsGroup) -> bool:
    at = bisect_left(group.keys, key)
    return at < len(group.keys) and group.keys[at] == key
