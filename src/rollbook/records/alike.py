"""Rollouts that stand alike, counted together: a million of them end in a few dozen ways.

Rules:
* Alike: of one group, with every attempt ended, the same kind of ending, named by a run or not, and as much spent;
  where the plan names no server, answered by the same source as well.
* What is not plain (an open attempt, a number beyond the columns, a seat that is set `apart`) is left to the caller.
* Another thread may fold records meanwhile: what is counted stands as it did when it was reached, and no attempt is
  seen to have ended before the row that it left. No rollout is named anew meanwhile.
"""

from array import array
from collections.abc import Iterator
from functools import reduce
from operator import add
from typing import Any, Final

import msgspec

from rollbook.records.columns import PLANNED, RolloutColumns
from rollbook.records.table import NO_ROW, SCORED_KIND, RecordTable

_AT_ONCE: Final = 1 << 14
_UNNAMED: Final = NO_ROW - 1


class Alike(msgspec.Struct):
    """So many rollouts that stand as the one at `row` does (as one without a row), and the sum of their rewards."""

    group: int
    row: int
    spent: int
    planned: bool
    count: int = 0
    rewards: float = 0.0


def alike_rollouts(
    columns: RolloutColumns, table: RecordTable, *, apart: set[int], of_plan_only: bool
) -> tuple[list[Alike], Iterator[tuple[int, int]]]:
    """Return what could be counted together, and (packed key, seat) of every other rollout."""
    found: dict[tuple[int, int, int, int, int], Alike] = {}
    others: set[int] = set()
    kinds, sources, rewards = table.kinds, table.origins, table.rewards
    unnamed: list[bool] = []
    of_source = [server is None for _, server in columns.names]
    wide = {*columns.attempts.handed_out.wide, *columns.attempts.ended.wide, *apart}
    for start, taken, times in _parts(columns, table, unnamed, one_by_one=bool(wide)):
        rows = zip(*taken, strict=True) if times == 1 else [next(zip(*taken, strict=True))]
        for seat, (over, out, row, flags, group, spent) in enumerate(rows, start):
            if out & ~over or seat in wide or (of_plan_only and not flags & PLANNED):
                others.update(range(seat, seat + times))
                continue
            kind = source = NO_ROW
            if row != NO_ROW:
                kind, source = kinds[row], sources[row]
                if not of_source[group]:
                    source = _UNNAMED if unnamed[source] else NO_ROW
            key = (group, kind, source, spent, flags)
            alike = found.get(key)
            if alike is None:
                alike = found[key] = Alike(group, row, spent, bool(flags & PLANNED))
            alike.count += times
            if kind == SCORED_KIND:
                many = map(rewards.__getitem__, taken[2]) if times > 1 else (rewards[row],)
                alike.rewards = reduce(add, many, alike.rewards)
    left = ((packed, seat) for packed, seat in columns.seats.items() if seat in others) if others else iter(())
    return list(found.values()), left


_Taken = tuple["array[int]", "array[int]", "array[int]", "array[int]", "array[int]", "array[int]"]


def _parts(
    columns: RolloutColumns, table: RecordTable, unnamed: list[bool], *, one_by_one: bool
) -> Iterator[tuple[int, _Taken, int]]:
    """Yield the first seat of each part with (ended, handed out, row, flags, group, spent) of its seats.

    Last comes how many seats the first one stands for: all of the part where they are alike, else itself. `unnamed`
    knows the source of every row.
    """
    ended, handed_out = columns.attempts.ended.bits, columns.attempts.handed_out.bits
    of_row = (columns.row, columns.flags, columns.group, columns.spent)
    for start in range(0, len(columns.row), _AT_ONCE):
        here = slice(start, start + _AT_ONCE)
        taken: Any = ended[here], handed_out[here], *(column[here] for column in of_row)
        unnamed.extend(source[0] is None for source in list(table.sources)[len(unnamed) :])
        yield start, taken, 1 if one_by_one or not _are_alike(taken, table) else len(taken[0])


def _are_alike(taken: _Taken, table: RecordTable) -> bool:
    """Whether all seats of a part stand as its first one does, each by a row of its own."""
    over, out, rows, flags, group, spent = taken
    if min(rows) < 0 or any(column.count(column[0]) < len(column) for column in (over, out, flags, group, spent)):
        return False
    return all(len(set(map(column.__getitem__, rows))) == 1 for column in (table.kinds, table.origins))
