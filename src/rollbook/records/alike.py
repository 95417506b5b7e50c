"""Rollouts that stand alike, counted together: a million of them end in a few dozen ways.

Rules:
* Alike: of one group, with every attempt ended, the same kind of ending, named by a run or not, and as much spent;
  where the plan names no server, answered by the same source as well.
* What is not plain (an open attempt, a number beyond the columns, a seat that is set `apart`) is left to the caller.
* Another thread may fold records meanwhile: what is counted stands as it did when it was reached, and no attempt is
  seen to have ended before the row that it left. No rollout is named anew meanwhile.
"""

from collections.abc import Iterator
from itertools import chain
from typing import Final

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
    for seat, (over, out, row, flags, group, spent) in enumerate(_seats(columns, table, unnamed)):
        if out & ~over or seat in wide or (of_plan_only and not flags & PLANNED):
            others.add(seat)
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
        alike.count += 1
        if kind == SCORED_KIND:
            alike.rewards += rewards[row]
    left = ((packed, seat) for packed, seat in columns.seats.items() if seat in others) if others else iter(())
    return list(found.values()), left


def _seats(
    columns: RolloutColumns, table: RecordTable, unnamed: list[bool]
) -> Iterator[tuple[int, int, int, int, int, int]]:
    """Return (ended, handed out, row, flags, group, spent) of every seat; `unnamed` knows the source of every row."""
    ended, handed_out = columns.attempts.ended.bits, columns.attempts.handed_out.bits
    of_row = (columns.row, columns.flags, columns.group, columns.spent)

    def part(start: int) -> Iterator[tuple[int, int, int, int, int, int]]:
        here = slice(start, start + _AT_ONCE)
        taken = ended[here], handed_out[here], *(column[here] for column in of_row)
        unnamed.extend(source[0] is None for source in list(table.sources)[len(unnamed) :])
        return zip(*taken, strict=True)

    return chain.from_iterable(map(part, range(0, len(columns.row), _AT_ONCE)))
