"""How many rollouts of one agent and environment server stand where.

Rules:
* Counts and sums alone: nothing here follows the number of rollouts.
"""

from collections import Counter
from dataclasses import dataclass, field

from rollbook.records.coverage import FAILED_DISPOSITIONS, Coverage, covered
from rollbook.records.disposition import Disposition
from rollbook.records.outcome import Failed
from rollbook.records.table import RecordTable


@dataclass(slots=True)
class GroupCount:
    """The counts of one group. `server` is the stamped one, else the one that its records name."""

    agent: str | None
    server: str | None
    dispositions: Counter[Disposition] = field(default_factory=Counter)
    classes: Counter[str] = field(default_factory=Counter)
    kinds: Counter[str] = field(default_factory=Counter)
    rewards: float = 0.0
    final_zeros: int = 0

    def add(self, disposition: Disposition, table: RecordTable | None, row: int) -> None:
        """Count a rollout; `row` of `table` stands, where a record does."""
        self.dispositions[disposition] += 1
        if table is None:
            return
        if self.server is None:
            self.server = table.server(row)
        if disposition is Disposition.SCORED:
            self.rewards += table.reward(row)
        elif disposition in FAILED_DISPOSITIONS:
            self._add_failure(disposition, table, row)

    def _add_failure(self, disposition: Disposition, table: RecordTable, row: int) -> None:
        failed = table.shape(row)
        if isinstance(failed, Failed):
            self.classes[failed.failure_class] += 1
            self.kinds[failed.kind or failed.failure_class] += 1
            self.final_zeros += disposition is Disposition.SETTLED and failed.counts_as_zero

    @property
    def coverage(self) -> Coverage:
        """Where the group's planned rollouts stand."""
        return covered(self.dispositions, self.classes, None, 0)

    @property
    def mean_reward(self) -> float | None:
        """The mean of the rewards that count; None where there is none."""
        scored = self.dispositions[Disposition.SCORED]
        return self.rewards / scored if scored else None
