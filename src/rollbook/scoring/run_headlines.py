"""The headlines of a run's agents from its fold, for whoever wants no other number of it.

Rules:
* A headline is the one that the run's own report gives, digit for digit.
* Nothing is kept of a rollout but its reward: memory follows the rewards, at eight bytes each.

Source: collection.md §6.6; case RC-71.
"""

from array import array
from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import pairwise

from rollbook.records.disposition import Rules
from rollbook.records.headline import Headline
from rollbook.records.standing import Standings
from rollbook.records.table import SCORED_KIND
from rollbook.scoring.headline import headline_of, measured
from rollbook.scoring.imputation import NOTHING_COUNTED, Counting, zeros
from rollbook.scoring.planned_endings import planned_endings
from rollbook.scoring.tally import NO_AGENT


def run_headlines(
    standings: Standings, rules: Rules, counting: Counting = NOTHING_COUNTED, min_coverage: float | None = None
) -> tuple[tuple[str, Headline], ...]:
    """Return the headline of each agent by name, of what `counting` counts as zero besides what is scored."""
    agents: defaultdict[str, _Rewards] = defaultdict(_Rewards)
    for task, name, kind, reward in planned_endings(standings, standings.in_order(), zeros(standings, counting, rules)):
        agent = agents[name or NO_AGENT]
        agent.rollouts += 1
        if reward is not None:
            agent.add(task, reward, imputed=kind != SCORED_KIND)
    planned: Counter[str] = Counter()
    for group in standings.counted(rules)[0]:
        planned[group.agent or NO_AGENT] += group.coverage.planned
    return tuple(
        (name, headline_of(measured(of.by_task, planned[name] or of.rollouts, of.imputed), min_coverage))
        for name, of in sorted(agents.items())
    )


class _Rewards:
    """The rewards of an agent in order, and where those of each task end."""

    def __init__(self) -> None:
        self.rollouts = 0
        self.imputed = 0
        self._task: int | None = None
        self._values = array("d")
        self._starts = array("Q")

    def add(self, task: int, reward: float, *, imputed: bool) -> None:
        """Take in the reward of a rollout of `task`; tasks come one after the other."""
        if task != self._task:
            self._starts.append(len(self._values))
            self._task = task
        self._values.append(reward)
        self.imputed += imputed

    def by_task(self) -> Iterator[list[float]]:
        """Yield the rewards of each task."""
        return (self._values[start:end].tolist() for start, end in pairwise((*self._starts, len(self._values))))
