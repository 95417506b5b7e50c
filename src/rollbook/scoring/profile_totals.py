"""What a profile comes to, by label and altogether: completeness, pass rates, and what a condition kept.

Rules:
* Tasks whose rewards are all 0 or 1, in whatever order, are alike where as many are right: they are decided once.
* A task of fewer than k rollouts is in no pass@k and is counted beside it.
* What a condition did not keep is told with the reason: it does not hold, or something in it is undefined, and what.

Source: collection.md §9.4; case RC-74.
"""

import math
from array import array
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from rollbook.records.headline import Headline
from rollbook.scoring.headline import headline_of, measured
from rollbook.scoring.profile import Task
from rollbook.scoring.profile_filter import PASS, Condition, names_in
from rollbook.scoring.profile_rates import TaskRates

NOTHING_SCORED: Final = "no rollout of it is scored"
_FEW: Final = 2
_MOST_KNOWN: Final = 1 << 12


@dataclass(slots=True)
class LabelTotals:
    """The tasks of one label: how many are complete, partial or missing, and their pass rates.

    `other_ks`: of which pass@k is told besides those that always are. `zeros` failed and count as 0.
    """

    label: str | None
    other_ks: Sequence[int] = ()
    complete: int = 0
    partial: int = 0
    missing: int = 0
    planned: int = 0
    found: int = 0
    masked: int = 0
    scored: int = 0
    zeros: int = 0
    mean_reward: float | None = None
    _rewards: "array[float]" = field(default_factory=lambda: array("d"))
    _ends: "array[int]" = field(default_factory=lambda: array("Q"))
    _alike: Counter[tuple[int, int]] = field(default_factory=Counter)
    _sums: dict[int, float] = field(default_factory=dict)
    _squares: dict[int, float] = field(default_factory=dict)
    _tasks_of: Counter[int] = field(default_factory=Counter)

    def add(self, task: Task[Any]) -> None:
        """Count one task."""
        if not task.found:
            self.missing += 1
        elif task.found < task.planned:
            self.partial += 1
        else:
            self.complete += 1
        self.planned += task.planned
        self.found += task.found
        self.masked += task.masked
        self.scored += len(task.rewards) - task.zeros
        self.zeros += task.zeros
        self._rewards.extend(task.rewards)
        self._ends.append(len(self._rewards))
        rates = task.rates
        correct = rates.correct
        if correct is None:
            self._add_rates(rates, 1)
        else:
            self._alike[len(rates.rewards), correct] += 1

    def _add_rates(self, rates: TaskRates, tasks: int) -> None:
        """Add the rates of so many tasks that are alike."""
        others = {k: rate for k in self.other_ks if (rate := rates.pass_at(k)) is not None}
        for k, rate in (rates.shown() | others).items():
            self._sums[k] = self._sums.get(k, 0.0) + rate * tasks
            self._squares[k] = self._squares.get(k, 0.0) + rate * rate * tasks
            self._tasks_of[k] += tasks

    def headline(self) -> Headline:
        """Return the mean of the rewards with its standard error, clustered by task, and its interval."""
        return headline_of(measured(self._by_task, self.planned, self.zeros), 0.0)

    def _by_task(self) -> Iterator[list[float]]:
        begin = 0
        for end in self._ends:
            yield self._rewards[begin:end].tolist()
            begin = end

    @property
    def tasks(self) -> int:
        """How many tasks there are."""
        return self.complete + self.partial + self.missing

    def pass_rates(self) -> Mapping[int, tuple[float, int]]:
        """Return, for each k of which a task has so many rollouts, pass@k and how many tasks it is the mean of."""
        for (n, correct), tasks in sorted(self._alike.items()):
            self._add_rates(TaskRates((1.0,) * correct + (0.0,) * (n - correct), n), tasks)
        self._alike.clear()
        return {k: (self._sums[k] / self._tasks_of[k], self._tasks_of[k]) for k in sorted(self._sums)}

    def pass_errors(self) -> Mapping[int, float]:
        """Return the standard error of each of `pass_rates`, over tasks; none of a single task, nor of huge rewards."""
        found = {}
        for k, (mean, tasks) in self.pass_rates().items():
            spread = self._squares[k] / tasks - mean * mean
            if tasks > 1 and math.isfinite(spread):
                found[k] = math.sqrt(max(0.0, spread) / (tasks - 1))
        return found


@dataclass(slots=True)
class Kept:
    """How many tasks a condition kept and dropped, and why; `text` is the condition as it was written."""

    text: str
    condition: Condition
    kept: int = 0
    dropped: int = 0
    undefined: Counter[str] = field(default_factory=Counter)
    exported: str | None = None
    _decided: dict[tuple[tuple[int, int, int | None], ...], bool | str] = field(default_factory=dict)

    def verdict(self, rates: Sequence[TaskRates]) -> bool:
        """Whether a task is kept whose rollouts achieved `rates`, by label: the condition holds under each."""
        alike = tuple((one.planned, len(one.rewards), one.correct) for one in rates)
        decided = self._decided.get(alike)
        if decided is None:
            decided = self._decision(rates)
            if all(correct is not None for _, _, correct in alike) and len(self._decided) < _MOST_KNOWN:
                self._decided[alike] = decided
        if isinstance(decided, str):
            self.undefined[decided] += 1
        elif decided:
            self.kept += 1
        else:
            self.dropped += 1
        return decided is True

    def _decision(self, rates: Sequence[TaskRates]) -> bool | str:
        """Return whether the condition holds, or why that cannot be told."""
        verdicts = [self.condition.holds(one.value) for one in rates]
        if False in verdicts:
            return False
        return self._reason(rates[verdicts.index(None)]) if None in verdicts else True

    def _reason(self, rates: TaskRates) -> str:
        if not rates.rewards:
            return NOTHING_SCORED
        name = next(name for name in names_in(self.condition) if rates.value(name) is None)
        needed = int(name.removeprefix(PASS)) if name.startswith(PASS) else _FEW
        if name == "mean" or len(rates.rewards) >= needed:
            return f"{name} is too large to be represented"
        return f"{name} of fewer than {'1 rollout' if needed == 1 else f'{needed} rollouts'}"

    @property
    def tasks(self) -> int:
        """How many tasks were asked about."""
        return self.kept + self.dropped + self.undefined.total()


@dataclass(frozen=True, slots=True)
class Profile:
    """What a profile came to: its labels, what a condition kept, where everything was written, and what is damaged.

    `warnings` are what puts its metrics in doubt.
    """

    runs: Sequence[str]
    labels: Sequence[LabelTotals]
    kept: Kept | None
    files: Mapping[str, str]
    has_plan: bool
    damage: Sequence[str] = ()
    warnings: Sequence[str] = ()
