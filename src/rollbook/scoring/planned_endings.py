"""The latest ending of every rollout that the plan or a record names, those that left none among them.

Rules:
* A planned rollout is its plan's agent's, whoever answered; one that is in no plan is its record's agent's.
* A rollout without a record is untouched, never started or interrupted; that is a kind of ending as well.

Source: collection.md §6.6, §17.1; case RC-71.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from rollbook.records.columns import PLANNED
from rollbook.records.disposition import Disposition
from rollbook.records.standing import Standings
from rollbook.records.table import NO_ROW

UNTOUCHED: Final = NO_ROW
NEVER_SENT: Final = NO_ROW - 1
LOST: Final = NO_ROW - 2
"""The kinds of ending of rollouts without a record, beside those that records have, which are 0 and more."""

WITHOUT_RECORD: Final = {
    UNTOUCHED: Disposition.UNTOUCHED,
    NEVER_SENT: Disposition.NEVER_STARTED,
    LOST: Disposition.INTERRUPTED,
}

Ending = tuple[int, str | None, int, float]
"""Task, agent, kind of ending, reward (0 where there is none)."""


def planned_endings(standings: Standings, order: Iterable[tuple[int, int]]) -> Iterator[Ending]:
    """Yield the ending of each rollout of `order`."""
    columns, table = standings.columns, standings.table
    agents = [agent for _, agent, _ in table.sources]
    planned_for = [agent for agent, _ in columns.names]
    unsent = UNTOUCHED if standings.stop_reason is None else NEVER_SENT
    rows, flags, groups = columns.row, columns.flags, columns.group
    kinds, origins, rewards = table.kinds, table.origins, table.rewards
    for number, seat in order:
        row = rows[seat]
        agent = planned_for[groups[seat]] if flags[seat] & PLANNED else None if row == NO_ROW else agents[origins[row]]
        if row != NO_ROW:
            yield number >> 32, agent, kinds[row], rewards[row]
        elif flags[seat] & PLANNED:
            lost = columns.attempts.open_attempt(seat) is not None
            yield number >> 32, agent, LOST if lost else unsent, 0.0
