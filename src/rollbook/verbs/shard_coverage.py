"""What became of the rollouts of several runs, by environment server: counts and headlines.

Rules:
* A rollout that several shards planned is counted once: by its result, else by its last failure, else as missing.
* What is told of a group and of all of them is counted from the same standings as a run's own status.

Source: collection.md §6.2, §6.6, §1.12; cases RC-71, RC-81, RC-82.
"""

from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from heapq import merge
from itertools import compress, count, islice, pairwise
from operator import ne
from typing import Any, Final

import msgspec
from msgspec.structs import asdict

from rollbook.records.columns import unpacked_key
from rollbook.records.coverage import Coverage, covered
from rollbook.records.disposition import Disposition
from rollbook.records.headline import Headline
from rollbook.records.outcome import Failed
from rollbook.records.standing import Standing
from rollbook.records.table import SCORED_KIND
from rollbook.scoring.headline import headline_of, measured
from rollbook.verbs.light_rows import Serving, named_group
from rollbook.verbs.shard_groups import MetricsGroup, Shard, of_group

_AT_ONCE: Final = 1 << 12
Zeros = Callable[[], Iterable[tuple[int, float]]]
"""Packed key and reward of each rollout that counts as zero, in order."""


@dataclass(frozen=True, slots=True)
class GroupReport:
    """One group: what it is called, what became of its rollouts, how many count as zero, and its headline."""

    label: str
    server: str | None
    coverage: Coverage
    imputed: int
    headline: Headline

    def rejected_by(self, error: Exception) -> "GroupReport":
        """Return the group without a headline, as the aggregation is rejected for what `error` says."""
        return replace(self, headline=self.headline.rejected_by(error, "the aggregation"))


def summed(found: Iterable[Coverage]) -> Coverage:
    """Return what became of the rollouts of several groups together."""
    counts: Counter[str] = Counter()
    classes: Counter[str] = Counter()
    with_task: Counter[str] = Counter()
    for coverage in found:
        counts.update({name: value for name, value in asdict(coverage).items() if isinstance(value, int)})
        classes.update(coverage.failed_by_class)
        with_task.update(coverage.with_task)
    planned = counts.pop("planned", 0)
    coverage = Coverage(planned, failed_by_class=dict(sorted(classes.items())), with_task=dict(with_task))
    numbers: Any = counts
    return msgspec.structs.replace(coverage, **numbers)


class _Counts:
    """How many rollouts of a group stand where."""

    def __init__(self) -> None:
        self.dispositions: Counter[Disposition] = Counter()
        self.classes: Counter[str] = Counter()

    def add(self, standing: Standing) -> None:
        self.dispositions[standing.disposition] += 1
        outcome = standing.record.outcome if standing.record is not None else None
        if isinstance(outcome, Failed) and _is_failure(standing):
            self.classes[outcome.failure_class] += 1

    def coverage(self) -> Coverage:
        return covered(self.dispositions, self.classes, None, 0)


def coverages(
    groups: Sequence[MetricsGroup], shards: Sequence[Shard], servings: Sequence[Serving]
) -> dict[str, Coverage]:
    """Return what became of the planned rollouts of each group."""
    counts = {group.name: _Counts() for group in groups}
    apart = _summed(shards, servings)
    for group in groups:
        own = apart.get(group.name, _Counts())
        is_each_once = sum(own.dispositions.values()) == len(group.planned)
        counts[group.name] = own if is_each_once else _looked_up(group, shards, servings)
    return {name: found.coverage() for name, found in counts.items()}


def _summed(shards: Sequence[Shard], servings: Sequence[Serving]) -> dict[str, _Counts]:
    """Return the counts of the shards added up, which is right where no rollout is in two of them."""
    counts: dict[str, _Counts] = {}
    for shard, serving in zip(shards, servings, strict=True):
        standings = shard.standings
        found, _ = standings.counted(shard.rules, of_plan_only=any(standings.columns.flags))
        for group in found:
            name, _ = named_group(serving, group.agent, group.server)
            own = counts.setdefault(name, _Counts())
            own.dispositions.update(group.dispositions)
            own.classes.update(group.classes)
    return counts


def _looked_up(group: MetricsGroup, shards: Sequence[Shard], servings: Sequence[Serving]) -> _Counts:
    counts = _Counts()
    results = {key: shard for key, shard, _ in of_group(group)}
    for key in group.planned:
        shard = results.get(key)
        if shard is None:
            counts.add(_last_failure(key, group.name, shards, servings))
        else:
            counts.add(shards[shard].standings.standing(unpacked_key(key), shards[shard].rules))
    return counts


def _last_failure(key: int, name: str, shards: Sequence[Shard], servings: Sequence[Serving]) -> Standing:
    """Return where a rollout without a result stands in the last shard that has a failure of it, else in any."""
    stands = Standing(unpacked_key(key), Disposition.UNTOUCHED, None, planned=True)
    for shard, serving in zip(shards, servings, strict=True):
        if shard.standings.columns.seats.get(key) is None:
            continue
        found = shard.standings.standing(unpacked_key(key), shard.rules)
        record = found.record
        if record is not None and named_group(serving, record.agent, record.server)[0] != name:
            continue
        if _is_failure(found) or (record is not None and not _is_failure(stands)):
            stands = found
    return stands


def _is_failure(standing: Standing) -> bool:
    return standing.disposition in {
        Disposition.RETRYABLE,
        Disposition.SETTLED,
        Disposition.EXHAUSTED,
        Disposition.HELD,
    }


def group_headline(
    groups: Sequence[MetricsGroup], shards: Sequence[Shard], zeros: Zeros, min_coverage: float | None
) -> tuple[int, Headline]:
    """Return how many rollouts count as zero, which `zeros` gives with their rewards, and the groups' one headline."""
    imputed = sum(1 for _ in zeros())
    found = [_of_results(group, shards) for group in groups]
    rewards = _Rewards(found[0] if len(found) == 1 and not imputed else merge(*found, zeros()))
    observed = measured(rewards.by_task, sum(len(group.planned) for group in groups), imputed)
    return imputed, headline_of(observed, min_coverage)


class _Rewards:
    """Rewards in order, and where those of each task end: nine or so bytes a rollout."""

    def __init__(self, found: Iterator[tuple[int, float]]) -> None:
        self._values = array("d")
        self._ends = array("Q")
        before = -1
        while some := list(islice(found, _AT_ONCE)):
            tasks = [key >> 32 for key, _ in some]
            begins = compress(count(len(self._values)), map(ne, tasks, [before, *tasks]))
            self._ends.extend(begins)
            self._values.fromlist([reward for _, reward in some])
            before = tasks[-1]
        self._ends.append(len(self._values))

    def by_task(self) -> Iterator[list[float]]:
        """Yield the rewards of each task."""
        return (self._values[start:end].tolist() for start, end in pairwise(self._ends))


def _of_results(group: MetricsGroup, shards: Sequence[Shard]) -> Iterator[tuple[int, float]]:
    kinds = [shard.standings.table.kinds for shard in shards]
    rewards = [shard.standings.table.rewards for shard in shards]
    return ((key, rewards[shard][row]) for key, shard, row in of_group(group) if kinds[shard][row] == SCORED_KIND)
