"""The latest ending of every rollout of a plan, those that left none among them; without a plan, of those recorded.

Rules:
* A planned rollout is its plan's agent's, whoever answered; without a plan it is its record's agent's.
* What is in no plan, though there is one, is passed over: it is in no number.
* A rollout without a record is untouched, never started or interrupted; that is a kind of ending as well.
* What counts as zero by choice has a reward, and the kind of ending that it has.

Source: collection.md §4.9, §6.6, §17.1; case RC-71.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from rollbook.records.columns import PLANNED
from rollbook.records.disposition import Disposition
from rollbook.records.standing import Standings
from rollbook.records.table import NO_ROW, SCORED_KIND

UNTOUCHED: Final = NO_ROW
NEVER_SENT: Final = NO_ROW - 1
LOST: Final = NO_ROW - 2
"""The kinds of ending of rollouts without a record, beside those that records have, which are 0 and more."""

WITHOUT_RECORD: Final = {
    UNTOUCHED: Disposition.UNTOUCHED,
    NEVER_SENT: Disposition.NEVER_STARTED,
    LOST: Disposition.INTERRUPTED,
}

_NO_ZERO: Final = (-1, 0.0)

Ending = tuple[int, str | None, int, float | None]
"""Task, agent, kind of ending, and the reward that counts (None where there is none)."""


def planned_endings(
    standings: Standings, order: Iterable[tuple[int, int]], zeros: Iterable[tuple[int, float]] = ()
) -> Iterator[Ending]:
    """Yield the ending of each rollout of `order`, whose packed keys rise.

    `zeros` are those that count as zero, as (packed key, reward).
    """
    columns, table = standings.columns, standings.table
    agents = [agent for _, agent, _ in table.sources]
    planned_for = [agent for agent, _ in columns.names]
    unsent = UNTOUCHED if standings.stop_reason is None else NEVER_SENT
    rows, flags, groups = columns.row, columns.flags, columns.group
    kinds, origins, rewards = table.kinds, table.origins, table.rewards
    has_plan = any(flags)
    counted = iter(zeros)
    zero, its_reward = next(counted, _NO_ZERO)
    for number, seat in order:
        row, reward = rows[seat], None
        if number == zero:
            reward, (zero, its_reward) = its_reward, next(counted, _NO_ZERO)
        if has_plan and not flags[seat] & PLANNED:
            continue
        agent = planned_for[groups[seat]] if flags[seat] & PLANNED else None if row == NO_ROW else agents[origins[row]]
        if row != NO_ROW:
            kind = kinds[row]
            yield number >> 32, agent, kind, rewards[row] if kind == SCORED_KIND else reward
        elif flags[seat] & PLANNED:
            lost = columns.attempts.open_attempt(seat) is not None
            yield number >> 32, agent, LOST if lost else unsent, reward
