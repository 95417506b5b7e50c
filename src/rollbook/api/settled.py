"""What stands before a session sends anything, and is not run again: so the live mean is the one that is told last.

Rules:
* Standing decides, as it does for the mean of the whole output: nothing is left out of one and in the other.

Source: collection.md §3.9, §4.9.
"""

from collections.abc import Callable
from typing import NamedTuple

from rollbook.records.disposition import Disposition, Rules
from rollbook.records.identity import RolloutKey
from rollbook.records.standing import Standings
from rollbook.scoring.imputation import NOTHING_COUNTED, added


class Settled(NamedTuple):
    """How many rollouts are scored, what their rewards add up to, and how many others count as zero by their mark."""

    scored: int
    rewards: float
    zeros: int


def _nothing(_key: RolloutKey) -> bool:
    return False


def settled_scores(standings: Standings, rules: Rules, runs_again: Callable[[RolloutKey], bool] = _nothing) -> Settled:
    """Return what stands of a run and is not owed; of failures, `runs_again` may name more that a session takes up."""
    groups, _ = standings.counted(rules)
    scored = sum(group.coverage.scored - group.with_task[Disposition.SCORED] for group in groups)
    rewards = sum(group.rewards - group.rewards_with_task for group in groups)
    marked = (one.key for one in added(standings, NOTHING_COUNTED, rules))
    zeros = sum(not (standings.standing(key, rules).is_owed or runs_again(key)) for key in marked)
    return Settled(scored, rewards, zeros)
