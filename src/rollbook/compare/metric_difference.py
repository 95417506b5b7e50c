"""The field's comparison of two runs: their aggregate metrics side by side, and the tasks that flipped.

Rules:
* A row is a point estimate; its own interval is the one that the file states. Only where both sides have two repeats or
  more does a difference have an interval.
* Tasks are joined by their numbers, as these files name them; runs whose tasks are numbered otherwise are compared by
  their rows.

Source: collection.md §6.4 (7), §9.2.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from rollbook.compare.flips import Change, Flips, Move, flips_of
from rollbook.compare.metric_side import MetricEntry, indices_of
from rollbook.compare.paired import beyond_rounding, tied
from rollbook.compare.welch import Welch, welch
from rollbook.errors import ConfigError
from rollbook.records.identity import TASK_INDEX_KEY_NAME
from rollbook.records.json_values import JsonMapping
from rollbook.scoring.across_repeats import is_primary
from rollbook.scoring.rows import number_in

_ACROSS: Final = "_across_repeats/"
_REWARDS_SHOWN: Final = 10
_BINARY: Final = frozenset({0.0, 1.0})
_WHOLE: Final = 100.0

Ends = tuple[float, float] | None


@dataclass(frozen=True, slots=True)
class MetricRow:
    """One metric on both sides; `percent` is of the baseline's absolute value, intervals are of 95 in 100.

    `welch`: what the interval of the difference was made of, for other levels.
    """

    name: str
    baseline: float | None
    candidate: float | None
    baseline_interval: Ends
    candidate_interval: Ends
    delta: float | None
    percent: float | None
    delta_interval: Ends
    welch: Welch | None = None


@dataclass(frozen=True, slots=True)
class MetricComparison:
    """Two agents by their metrics; `coverage` are the shares of planned rollouts that either side speaks for."""

    baseline_agent: str
    candidate_agent: str
    metrics: tuple[MetricRow, ...]
    flips: Flips
    warnings: tuple[str, ...]
    coverage: tuple[float | None, ...]


def metric_comparison(baseline: MetricEntry, candidate: MetricEntry) -> MetricComparison:
    """Return how two agents' metrics differ.

    Raises:
        ConfigError: they have no metric in common.

    """
    rows = tuple(_row(name, baseline, candidate) for name in _names(baseline, candidate))
    if not any(row.delta is not None for row in rows):
        raise ConfigError(
            f"{baseline.agent} and {candidate.agent} have no metric in common; compare runs of one environment, or "
            "their rows with `gym dev compare`"
        )
    return MetricComparison(
        baseline.agent,
        candidate.agent,
        rows,
        _flips(baseline, candidate),
        tuple(_warnings(baseline, candidate)),
        _coverage(baseline, candidate),
    )


def _coverage(*entries: MetricEntry) -> tuple[float | None, ...]:
    """Return what each side covers; a task that the other side alone has is missing on this one."""
    tasks = [_tasks(entry).keys() for entry in entries]
    every = set().union(*tasks)
    shares = [entry.coverage() for entry in entries]
    if not all(tasks):
        return tuple(shares)
    return tuple(
        None if share is None else share * len(own) / len(every) for share, own in zip(shares, tasks, strict=True)
    )


def _names(*entries: MetricEntry) -> Iterator[str]:
    """Yield every point estimate that a side has, in the baseline's order first."""
    metrics: dict[str, None] = {}
    for entry in entries:
        for values in (entry.agent_metrics, entry.key_metrics):
            metrics |= dict.fromkeys(name for name, value in values.items() if number_in(value) is not None)
    return (name for name in metrics if is_primary(name) and _ACROSS not in name)


def _row(name: str, baseline: MetricEntry, candidate: MetricEntry) -> MetricRow:
    ours, theirs = baseline.value(name), candidate.value(name)
    delta = None if ours is None or theirs is None else _delta(ours, theirs)
    by_repeat = None if delta is None else welch(_by_repeat(baseline, name), _by_repeat(candidate, name))
    return MetricRow(
        name=name,
        baseline=ours,
        candidate=theirs,
        baseline_interval=_own_interval(baseline, name),
        candidate_interval=_own_interval(candidate, name),
        delta=delta,
        percent=_WHOLE * delta / abs(ours) if delta is not None and ours else None,
        delta_interval=by_repeat.interval() if by_repeat else None,
        welch=by_repeat,
    )


def _delta(ours: float, theirs: float) -> float:
    return beyond_rounding(theirs - ours, max(abs(ours), abs(theirs)))


def _own_interval(entry: MetricEntry, name: str) -> Ends:
    low = number_in(entry.agent_metrics.get(f"ci_low_95{_ACROSS}{name}"))
    high = number_in(entry.agent_metrics.get(f"ci_high_95{_ACROSS}{name}"))
    return None if low is None or high is None else (low, high)


def _by_repeat(entry: MetricEntry, name: str) -> list[float]:
    values = [number_in(repeat.get(name)) for repeat in entry.repeats]
    return [float(value) for value in values if value is not None]


def _warnings(baseline: MetricEntry, candidate: MetricEntry) -> Iterator[str]:
    if len(baseline.repeats) != len(candidate.repeats):
        before, after = len(baseline.repeats), len(candidate.repeats)
        yield f"{baseline.agent}: {before} repeats in the baseline, {after} in the candidate"
    for side, entry in (("baseline", baseline), ("candidate", candidate)):
        counts = [number_in(repeat.get("sample_count")) for repeat in entry.repeats]
        if len(set(counts)) > 1:
            yield f"{entry.agent}: the {side}'s repeats cover different numbers of tasks ({counts})"


def _flips(baseline: MetricEntry, candidate: MetricEntry) -> Flips:
    ours, theirs = _tasks(baseline), _tasks(candidate)
    joined = [task for task in ours if task in theirs]

    def moves() -> Iterator[Move]:
        for task in joined:
            before, after = _mean(ours[task]), _mean(theirs[task])
            if before is not None and after is not None:
                yield Move(task, *tied(before, after, max(1.0, abs(before), abs(after))))

    def changed(move: Move) -> Change:
        rank[move.delta > 0] += 1
        kept = rank[move.delta > 0] <= _REWARDS_SHOWN
        before, after = ours[move.position], theirs[move.position]
        rewards = (_rewards(before), _rewards(after)) if kept else ((), ())
        return Change(move.position, move.position, baseline.agent, move.baseline, move.candidate, *rewards)

    rank = {False: 0, True: 0}
    binary = all(_is_binary(side[task]) for side in (ours, theirs) for task in joined)
    return flips_of(moves, changed, binary=binary)


def _tasks(entry: MetricEntry) -> Mapping[int, JsonMapping]:
    found: dict[int, JsonMapping] = {}
    for task in entry.tasks:
        index = task.get(TASK_INDEX_KEY_NAME)
        if isinstance(index, int):
            found[index] = task
    return found


def _mean(task: JsonMapping) -> float | None:
    return number_in(task.get("mean/reward"))


def _is_binary(task: JsonMapping) -> bool:
    ends = [number_in(task.get(name)) for name in ("min/reward", "max/reward")]
    return all(end is None or end in _BINARY for end in ends)


def _rewards(task: JsonMapping) -> tuple[float, ...]:
    infos = task.get("rollout_infos")
    found: list[tuple[tuple[int, int], float]] = []
    for info in infos if isinstance(infos, list) else []:
        reward = number_in(info.get("reward")) if isinstance(info, Mapping) else None
        key = indices_of(info) if isinstance(info, Mapping) else None
        if reward is not None and math.isfinite(reward):
            found.append((key or (0, 0), float(reward)))
    return tuple(reward for _, reward in sorted(found, key=lambda each: each[0]))
