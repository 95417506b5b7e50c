"""What the end of an allocation costs a rollout that was in flight in it.

Rules:
* An attempt that was handed out and left neither an ending nor a word was lost with the process that had sent it.
* A rollout's first such loss is free; each later one is a failure that spends one of the cap.
* Only a rollout that a resume would run again is charged. The charge is an ending, so no loss is charged twice.

Source: collection.md §5.4.4, §21.3 (21).
"""

from collections.abc import Mapping
from typing import Final

from rollbook.records.disposition import OWED, Rules
from rollbook.records.ending import Ending
from rollbook.records.failure_kinds import ALLOCATION_ENDED_FAILURE_CLASS, Delivery
from rollbook.records.identity import RolloutKey
from rollbook.records.outcome import Failed
from rollbook.records.standing import Standings

ALLOCATION_ENDED: Final = Ending(
    Failed(
        failure_class=ALLOCATION_ENDED_FAILURE_CLASS,
        message="the process that had sent this attempt ended before the attempt did, as an earlier one had",
        kind="kill_shaped",
        delivery=Delivery.POSSIBLY_DELIVERED,
    )
)


def allocation_end_charges(standings: Standings, rules: Rules) -> Mapping[RolloutKey, tuple[int, ...]]:
    """Return the attempts that are charged, by rollout."""
    return {
        key: lost[1:]
        for key, lost in standings.losses()
        if len(lost) > 1 and standings.standing(key, rules).disposition in OWED
    }
