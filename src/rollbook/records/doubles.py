"""Results that one attempt has several of: lines that were copied, or written by two processes.

Rules:
* A result that says which saved answer it judges anew is none: it follows what it names.
* Of rows that name no run, the number that they carry is their attempt, whatever number the fold gave them.
* Disputed is a rollout where two such results differ in ending or reward: one of the lines is wrong, and nothing says
  which. The later one counts, as a standing has it.

Source: collection.md §5.4.1, §5.4.7, §20 (11).
"""

import math
from collections.abc import Iterator

import msgspec

from rollbook.records.columns import PLANNED, RolloutColumns
from rollbook.records.group_count import Groups
from rollbook.records.outcome import Result
from rollbook.records.record import Record
from rollbook.records.table import NO_ROW, RecordTable


class Doubles(msgspec.Struct):
    """`pairs`: by seat, (earlier row, later row) of one double of each rollout; `disputed`: where the two differ."""

    pairs: dict[int, tuple[int, int]] = msgspec.field(default_factory=dict)
    disputed: set[int] = msgspec.field(default_factory=set)

    def note(self, table: RecordTable, seat: int, earlier: int, later: int) -> None:
        """Note that both rows are results of one attempt of the rollout at `seat`."""
        if _differ(table, earlier, later) and seat not in self.disputed:
            self.pairs[seat] = earlier, later
            self.disputed.add(seat)
        self.pairs.setdefault(seat, (earlier, later))

    def rows(self, columns: RolloutColumns) -> Iterator[int]:
        """Yield the row that stands of each disputed rollout."""
        return map(columns.row.__getitem__, tuple(self.disputed))


def earlier_result(columns: RolloutColumns, table: RecordTable, seat: int, record: Record) -> int | None:
    """Return the latest row that is a result of the attempt which `record`, not folded yet, is a result of."""
    last = columns.last[seat]
    if last == NO_ROW or not (isinstance(record.outcome, Result) and columns.attempts.has_ended(seat, record.attempt)):
        return None
    for row in table.chain(last):
        is_its = record.run_id is None or table.attempt(row) == record.attempt
        if is_its and isinstance(table.shape(row), Result):
            return row
    return None


def count_disputed(doubles: Doubles, columns: RolloutColumns, groups: Groups, *, of_plan_only: bool) -> None:
    """Count the disputed rollouts with the group of each; those that are in no plan only where there is none."""
    for seat in tuple(doubles.disputed):
        planned = bool(columns.flags[seat] & PLANNED)
        if planned or not of_plan_only:
            groups.at(columns.group[seat], columns.row[seat], planned=planned).disputed += 1


def _differ(table: RecordTable, row: int, other: int) -> bool:
    if table.shape_number(row) != table.shape_number(other):
        return True
    reward, its = table.reward(row), table.reward(other)
    return reward != its and not (math.isnan(reward) and math.isnan(its))
