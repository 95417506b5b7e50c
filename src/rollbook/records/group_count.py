"""How many rollouts of one agent and environment server stand where.

Rules:
* Counts and sums alone: nothing here follows the number of rollouts.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from rollbook.records.coverage import FAILED_DISPOSITIONS, Coverage, covered
from rollbook.records.disposition import Disposition
from rollbook.records.outcome import Failed, Outcome
from rollbook.records.table import NO_ROW, RecordTable


@dataclass(slots=True)
class GroupCount:
    """The counts of one group. `server` is the stamped one, else the one that its records name.

    `with_task` counts, by where they stand, rollouts that run again for the sake of their task alone; the rewards that
    they have add up to `rewards_with_task`. `zeros` are the failures that their producer marks as a score of 0,
    `final_zeros` those of them that are settled.
    """

    agent: str | None
    server: str | None
    dispositions: Counter[Disposition] = field(default_factory=Counter)
    classes: Counter[str] = field(default_factory=Counter)
    kinds: Counter[str] = field(default_factory=Counter)
    rewards: float = 0.0
    zeros: int = 0
    final_zeros: int = 0
    with_task: Counter[Disposition] = field(default_factory=Counter)
    rewards_with_task: float = 0.0

    def add(self, disposition: Disposition, table: RecordTable, row: int, count: int, rewards: float) -> None:
        """Count `count` rollouts that stand as `row` of `table` does, with the sum of their `rewards`."""
        self.dispositions[disposition] += count
        if row == NO_ROW:
            return
        if self.server is None:
            self.server = table.server(row)
        if disposition is Disposition.SCORED:
            self.rewards += rewards
        elif disposition in FAILED_DISPOSITIONS:
            self._add_failures(disposition, table.shape(row), count)

    def _add_failures(self, disposition: Disposition, failed: Outcome, count: int) -> None:
        if isinstance(failed, Failed):
            self.classes[failed.failure_class] += count
            self.kinds[failed.kind or failed.failure_class] += count
            if failed.counts_as_zero:
                self.zeros += count
                self.final_zeros += count if disposition is Disposition.SETTLED else 0

    def add_with_task(self, disposition: Disposition, reward: float) -> None:
        """Count a rollout that was counted where it stands and runs again with its task."""
        self.with_task[disposition] += 1
        self.rewards_with_task += reward

    @property
    def coverage(self) -> Coverage:
        """Where the group's planned rollouts stand."""
        return covered(self.dispositions, self.classes, None, 0, self.with_task, final_zeros=self.final_zeros)

    @property
    def mean_reward(self) -> float | None:
        """The mean of the rewards that count, and of marked zeros; None where there is none."""
        measured = self.dispositions[Disposition.SCORED] + self.zeros
        return self.rewards / measured if measured else None


def coverage_of(groups: Iterable[GroupCount], planned: int | None = None, unplanned: int = 0) -> Coverage:
    """Return where the rollouts of all `groups` stand, together with `unplanned` ones."""
    counts: Counter[Disposition] = Counter()
    classes: Counter[str] = Counter()
    with_task: Counter[Disposition] = Counter()
    final_zeros = 0
    for group in groups:
        counts.update(group.dispositions)
        classes.update(group.classes)
        with_task.update(group.with_task)
        final_zeros += group.final_zeros
    return covered(counts, classes, planned, unplanned, with_task, final_zeros=final_zeros)
