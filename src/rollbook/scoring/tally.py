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
from functools import lru_cache
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


def scores_of(standings: Standings) -> RunScores:
    """Return the scores of the records that stand."""
    by_agent: defaultdict[str, defaultdict[int, list[Outcome]]] = defaultdict(lambda: defaultdict(list))
    for record in standings:
        by_agent[record.agent or NO_AGENT][record.key.task].append(record.outcome)
    agents: list[AgentScore] = []
    tasks: list[TaskScore] = []
    for agent, outcomes in sorted(by_agent.items()):
        groups = [outcomes[task] for task in sorted(outcomes)]
        agents.append(_agent_score(agent, groups))
        tasks.extend(_task_score(agent, task, outcomes[task]) for task in sorted(outcomes))
    return RunScores(tuple(agents), tuple(tasks))


def _agent_score(agent: str, groups: Sequence[Sequence[Outcome]]) -> AgentScore:
    rewards = [_rewards(group) for group in groups]
    return AgentScore(
        agent=agent,
        tasks=len(groups),
        scored_tasks=sum(1 for task in rewards if task),
        mean=mean_reward(rewards),
        standard_error=clustered_standard_error(rewards),
        pass_at_k=pass_at_powers(rewards, max(map(len, groups))) if any(rewards) else (),
        coverage=_coverage(outcome for group in groups for outcome in group),
    )


def _task_score(agent: str, task: int, group: Sequence[Outcome]) -> TaskScore:
    return TaskScore(agent, task, mean_reward([_rewards(group)]), _coverage(group))


def _rewards(group: Iterable[Outcome]) -> list[float]:
    return [outcome.reward for outcome in group if isinstance(outcome, Scored)]


def _coverage(outcomes: Iterable[Outcome]) -> Coverage:
    """Count how rollouts stand of which nothing but their latest outcome is asked."""
    return _covered(tuple(sorted(Counter(map(_ending, outcomes)).items())))


def _ending(outcome: Outcome) -> tuple[str, str]:
    """Return how an outcome counts, and its class where it is a failure."""
    return _STANDING[type(outcome)].value, outcome.failure_class if isinstance(outcome, Failed) else ""


@lru_cache(maxsize=4096)
def _covered(endings: tuple[tuple[tuple[str, str], int], ...]) -> Coverage:
    """Return the coverage of so many endings of each kind; the tasks of a run end in few ways."""
    counts: Counter[Disposition] = Counter()
    classes: Counter[str] = Counter()
    for (standing, failure_class), count in endings:
        counts[Disposition(standing)] += count
        if failure_class:
            classes[failure_class] += count
    return covered(counts, classes, None, 0)


_STANDING: Final[Mapping[type, Disposition]] = {
    Scored: Disposition.SCORED,
    Masked: Disposition.MASKED,
    Unscored: Disposition.UNSCORED,
    Failed: Disposition.RETRYABLE,
    Interrupted: Disposition.INTERRUPTED,
    NeverStarted: Disposition.NEVER_STARTED,
    Evidence: Disposition.UNTOUCHED,
}


def _is_behind(task: TaskScore, best: float | None) -> bool:
    if task.mean is None:
        return task.coverage.untouched < task.coverage.planned
    return best is not None and task.mean < best


def _badness(task: TaskScore) -> tuple[bool, float, int, str, int]:
    behind = task.coverage.planned - task.coverage.scored
    return (task.mean is not None, task.mean or 0.0, -behind, task.agent, task.task)
