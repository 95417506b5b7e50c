"""Records folded into scores: per task and per agent, each beside what it covers.

Rules:
* Where a rollout stands is asked of `Standings`; one rollout is one measurement, whatever was attempted before.
* Only a scored rollout has a reward; nothing else is counted as zero, and nothing is left out of the counts.
* The order of the records of different rollouts changes no digit.

Source: cases RC-71, RC-74, RC-84; collection.md §4.11.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from rollbook.records.coverage import covered
from rollbook.records.disposition import Disposition
from rollbook.records.outcome import (
    Evidence,
    Failed,
    Interrupted,
    Masked,
    NeverStarted,
    Outcome,
    Scored,
    Unscored,
)
from rollbook.records.record import Record
from rollbook.records.standing import Coverage, Standings
from rollbook.records.table import SCORED_KIND
from rollbook.scoring.estimates import PassAtK, clustered_standard_error, mean_reward, pass_at_powers

NO_AGENT: Final = "(no agent)"
"""What rollouts are scored under whose records name no agent."""


@dataclass(frozen=True, slots=True)
class TaskScore:
    """One task under one agent: its mean reward (None when nothing is scored) and how its rollouts stand.

    `coverage.planned` counts the rollouts that records speak about.
    """

    agent: str
    task: int
    mean: float | None
    coverage: Coverage


@dataclass(frozen=True, slots=True)
class AgentScore:
    """One agent over its tasks: mean reward over scored rollouts, its standard error, pass@k, and what they cover.

    `standard_error` is clustered by task and None of fewer than two tasks; `pass_at_k` is empty unless every reward is
    0 or 1. `scored_tasks` of the `tasks` have at least one scored rollout.
    """

    agent: str
    tasks: int
    scored_tasks: int
    mean: float | None
    standard_error: float | None
    pass_at_k: tuple[PassAtK, ...]
    coverage: Coverage


@dataclass(frozen=True, slots=True)
class RunScores:
    """The scores of a run: agents by name, tasks by (agent, index)."""

    agents: tuple[AgentScore, ...]
    tasks: tuple[TaskScore, ...]

    def worst_tasks(self, most: int) -> tuple[TaskScore, ...]:
        """Return up to `most` tasks: those of which nothing is scored first, then those of the lowest mean reward.

        A task all of whose rollouts are untouched is not among them, nor is one that no other task does better than.
        """
        best = max((task.mean for task in self.tasks if task.mean is not None), default=None)
        candidates = [task for task in self.tasks if _is_behind(task, best)]
        return tuple(sorted(candidates, key=_badness)[:most])


@dataclass(slots=True)
class Tally:
    """The fold: records in the order in which they were written, or only those that stand."""

    _standings: Standings = field(default_factory=Standings)

    def add(self, record: Record) -> None:
        """Fold one record."""
        self._standings.add(record)

    def scores(self) -> RunScores:
        """Return the scores of what was folded so far."""
        return scores_of(self._standings)


@dataclass(slots=True)
class _Group:
    """The rollouts of one task under one agent: the number of each one's kind of ending, and the rewards there are."""

    kinds: list[int] = field(default_factory=list)
    rewards: list[float] = field(default_factory=list)


def scores_of(standings: Standings) -> RunScores:
    """Return the scores of the records that stand."""
    by_agent: defaultdict[str, defaultdict[int, _Group]] = defaultdict(lambda: defaultdict(_Group))
    for task, agent, kind, reward in standings.endings():
        group = by_agent[agent or NO_AGENT][task]
        group.kinds.append(kind)
        if kind == SCORED_KIND:
            group.rewards.append(reward)
    covered_by = _Coverages(standings.kinds_of_ending)
    agents: list[AgentScore] = []
    tasks: list[TaskScore] = []
    for agent, groups in sorted(by_agent.items()):
        agents.append(_agent_score(agent, tuple(groups.values()), covered_by))
        tasks.extend(_task_score(agent, task, groups[task], covered_by) for task in sorted(groups))
    return RunScores(tuple(agents), tuple(tasks))


def _agent_score(agent: str, groups: Sequence[_Group], covered_by: "_Coverages") -> AgentScore:
    rewards = [group.rewards for group in groups]
    return AgentScore(
        agent=agent,
        tasks=len(groups),
        scored_tasks=sum(1 for task in rewards if task),
        mean=mean_reward(rewards),
        standard_error=clustered_standard_error(rewards),
        pass_at_k=pass_at_powers(rewards, max(len(group.kinds) for group in groups)) if any(rewards) else (),
        coverage=covered_by.counted(Counter(kind for group in groups for kind in group.kinds)),
    )


def _task_score(agent: str, task: int, group: _Group, covered_by: "_Coverages") -> TaskScore:
    return TaskScore(agent, task, mean_reward([group.rewards]), covered_by(group.kinds))


class _Coverages:
    """How rollouts stand of which nothing but the kind of their latest ending is asked; tasks end in few ways."""

    def __init__(self, outcomes: Sequence[Outcome]) -> None:
        self._outcomes = outcomes
        self._known: dict[tuple[int, ...], Coverage] = {}

    def __call__(self, kinds: Iterable[int]) -> Coverage:
        """Return the coverage of rollouts by the number of each one's kind of ending."""
        key = tuple(sorted(kinds))
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self.counted(Counter(key))
        return found

    def counted(self, kinds: Mapping[int, int]) -> Coverage:
        """Return the coverage of so many rollouts of each kind."""
        counts: Counter[Disposition] = Counter()
        classes: Counter[str] = Counter()
        for kind, count in kinds.items():
            outcome = self._outcomes[kind]
            counts[_STANDING[type(outcome)]] += count
            if isinstance(outcome, Failed):
                classes[outcome.failure_class] += count
        return covered(counts, classes, None, 0)


_STANDING: Final[Mapping[type, Disposition]] = {
    Scored: Disposition.SCORED,
    Masked: Disposition.MASKED,
    Unscored: Disposition.UNSCORED,
    Failed: Disposition.RETRYABLE,
    Interrupted: Disposition.INTERRUPTED,
    NeverStarted: Disposition.NEVER_STARTED,
    Evidence: Disposition.INTERRUPTED,
}


def _is_behind(task: TaskScore, best: float | None) -> bool:
    if task.mean is None:
        return task.coverage.untouched < task.coverage.planned
    return best is not None and task.mean < best


def _badness(task: TaskScore) -> tuple[bool, float, int, str, int]:
    behind = task.coverage.planned - task.coverage.scored
    return (task.mean is not None, task.mean or 0.0, -behind, task.agent, task.task)
