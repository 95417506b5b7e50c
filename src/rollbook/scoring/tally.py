"""Records folded into scores: per task and per agent, each beside what it covers.

Rules:
* Where a rollout stands is asked of `Standings`; one rollout is one measurement, whatever was attempted before.
* Of a run with a plan, an agent's share is that of everything planned for it: what was not started counts as well.
* Tasks are gone through in order, and none is kept but the worst: memory follows the agents.
* Only a scored rollout has a reward, and what counts as zero by choice; nothing is left out of the counts.
* The order of the records of different rollouts changes no digit.

Source: cases RC-71, RC-74, RC-84; collection.md §4.11.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Final

import msgspec
from msgspec.structs import replace

from rollbook.records.coverage import covered
from rollbook.records.disposition import DEFAULT_RULES, Disposition, Rules
from rollbook.records.group_count import GroupCount, coverage_of
from rollbook.records.headline import Headline, Measured
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
from rollbook.scoring.estimates import ClusteredError, PassAtK, PassAtPowers
from rollbook.scoring.exact_sum import Mean
from rollbook.scoring.headline import headline_of, within_unit
from rollbook.scoring.imputation import NOTHING_COUNTED, Counting, zeros
from rollbook.scoring.planned_endings import NEVER_SENT, UNTOUCHED, WITHOUT_RECORD, Ending, planned_endings
from rollbook.scoring.retry_bias import RetryBias, retry_biases
from rollbook.scoring.spread import mean
from rollbook.scoring.worst_tasks import TaskScore, WorstTasks

NO_AGENT: Final = "(no agent)"
"""What rollouts are scored under whose records name no agent."""


class AgentScore(msgspec.Struct, frozen=True):
    """One agent over its tasks: mean reward over measured rollouts, its standard error, pass@k, and what they cover.

    Measured are scored rollouts, and the `imputed` ones, which count as zero by choice. `standard_error` is clustered
    by task and None of fewer than two tasks; `pass_at_k` is empty unless every reward is 0 or 1. `scored_tasks` of the
    `tasks`, which are those that were planned for it, have at least one measured rollout. `within_unit`: every reward
    lies from 0 to 1.
    """

    agent: str
    tasks: int
    scored_tasks: int
    mean: float | None
    standard_error: float | None
    pass_at_k: tuple[PassAtK, ...]
    coverage: Coverage
    imputed: int = 0
    within_unit: bool = True

    def headline(self, min_coverage: float | None = None) -> Headline:
        """Return the agent's headline, or why there is none."""
        rollouts = self.coverage.scored + self.imputed
        observed = Measured(
            self.mean,
            self.standard_error,
            self.scored_tasks,
            rollouts,
            self.coverage.planned,
            self.imputed,
            self.within_unit,
        )
        return headline_of(observed, min_coverage)


class RunScores(msgspec.Struct, frozen=True):
    """The scores of a run: agents by name, and the tasks that do worst.

    A headline speaks for `min_coverage` of an agent's plan at least. `warnings` say what puts the scores in doubt;
    `covers` is what the metrics speak for, as the field reports it, and `exported` the same as numbers. `rejected`
    is why the run has not come to what it was to, and has no headline.
    """

    agents: tuple[AgentScore, ...]
    worst: tuple[TaskScore, ...]
    min_coverage: float | None = None
    retries: tuple[RetryBias, ...] = ()
    warnings: tuple[str, ...] = ()
    covers: tuple[str, ...] = ()
    exported: Mapping[str, int] = msgspec.field(default_factory=dict)
    rejected: Exception | None = None

    def headline(self, score: AgentScore) -> Headline:
        """Return the headline of one of the agents, or why there is none; a rejected run has none."""
        headline = score.headline(self.min_coverage)
        return headline if self.rejected is None else headline.rejected_by(self.rejected)

    def rejected_by(self, error: Exception) -> "RunScores":
        """Return the scores of a run that is rejected for what `error` says."""
        return replace(self, rejected=error)

    def worst_tasks(self, most: int) -> tuple[TaskScore, ...]:
        """Return up to `most` of the worst `MOST` tasks: those of which nothing is scored, then the lowest means.

        A task of which nothing was started is not among them, nor is one that no other task does better than.
        """
        return self.worst[:most]


class Tally(msgspec.Struct):
    """The fold: records in the order in which they were written, or only those that stand."""

    _standings: Standings = msgspec.field(default_factory=Standings)

    def add(self, record: Record) -> None:
        """Fold one record."""
        self._standings.add(record)

    def scores(self) -> RunScores:
        """Return the scores of what was folded so far."""
        return scores_of(self._standings)


class _Group(msgspec.Struct):
    """The rollouts of one task under one agent: the number of each one's kind of ending, and the rewards there are."""

    kinds: list[int] = msgspec.field(default_factory=list)
    rewards: list[float] = msgspec.field(default_factory=list)
    imputed: int = 0


class _Sums(msgspec.Struct):
    """What an agent's tasks come to, of which none is kept."""

    tasks: int = 0
    scored_tasks: int = 0
    most_repeats: int = 0
    imputed: int = 0
    within_unit: bool = True
    kinds: Counter[int] = msgspec.field(default_factory=Counter)
    rewards: Mean = msgspec.field(default_factory=Mean)
    passes: PassAtPowers = msgspec.field(default_factory=PassAtPowers)

    def add(self, group: _Group) -> None:
        """Take in a task."""
        self.tasks += 1
        self.scored_tasks += bool(group.rewards)
        self.imputed += group.imputed
        self.within_unit = self.within_unit and within_unit(group.rewards)
        self.most_repeats = max(self.most_repeats, len(group.kinds))
        self.kinds.update(group.kinds)
        self.rewards.add(group.rewards)
        self.passes.add(group.rewards)


def scores_of(
    standings: Standings,
    rules: Rules = DEFAULT_RULES,
    counting: Counting = NOTHING_COUNTED,
    min_coverage: float | None = None,
) -> RunScores:
    """Return the scores of a run by where its rollouts stand, and by what counts as zero."""
    order = standings.in_order()

    def endings() -> Iterator[Ending]:
        return planned_endings(standings, order, zeros(standings, counting, rules))

    sums: defaultdict[str, _Sums] = defaultdict(_Sums)
    worst = WorstTasks()
    covered_by = _Coverages(standings.kinds_of_ending)
    for task, agent, group in _groups(endings()):
        sums[agent].add(group)
        if covered_by.was_started(group.kinds):
            worst.add(agent, task, mean(group.rewards), len(group.rewards), group.kinds)
    errors = _errors(endings(), sums)
    planned = _planned(standings, rules)
    agents = (
        _agent_score(agent, of, errors.get(agent), planned.get(agent) or covered_by.counted(of.kinds))
        for agent, of in sorted(sums.items())
    )
    return RunScores(tuple(agents), worst.scores(covered_by), min_coverage, retry_biases(standings))


def _planned(standings: Standings, rules: Rules) -> dict[str, Coverage]:
    """Return where the rollouts stand that are planned for each agent."""
    by_agent: defaultdict[str, list[GroupCount]] = defaultdict(list)
    for group in standings.counted(rules)[0]:
        by_agent[group.agent or NO_AGENT].append(group)
    return {agent: coverage_of(groups) for agent, groups in by_agent.items()}


def _groups(endings: Iterable[Ending]) -> Iterator[tuple[int, str, _Group]]:
    """Yield each task's rollouts by agent; the endings of a task follow each other."""
    for task, of_task in groupby(endings, itemgetter(0)):
        groups: dict[str, _Group] = {}
        for _, name, kind, reward in of_task:
            agent = name or NO_AGENT
            group = groups.get(agent)
            if group is None:
                group = groups[agent] = _Group()
            group.kinds.append(kind)
            if reward is not None:
                group.rewards.append(reward)
                group.imputed += kind != SCORED_KIND
        for agent, group in groups.items():
            yield task, agent, group


def _errors(endings: Iterable[Ending], sums: Mapping[str, _Sums]) -> dict[str, ClusteredError]:
    """Return the error of each agent's mean, which is known once every reward was seen: another pass."""
    means = {agent: of.rewards.value() for agent, of in sums.items() if of.scored_tasks > 1}
    errors = {agent: ClusteredError(center) for agent, center in means.items() if center is not None}
    for _, agent, group in _groups(endings) if errors else ():
        if group.rewards and agent in errors:
            errors[agent].add(group.rewards)
    return errors


def _agent_score(agent: str, sums: _Sums, error: ClusteredError | None, coverage: Coverage) -> AgentScore:
    return AgentScore(
        agent=agent,
        tasks=sums.tasks,
        scored_tasks=sums.scored_tasks,
        mean=sums.rewards.value(),
        standard_error=error.value() if error else None,
        pass_at_k=sums.passes.values(sums.most_repeats) if sums.scored_tasks else (),
        coverage=coverage,
        imputed=sums.imputed,
        within_unit=sums.within_unit,
    )


class _Coverages:
    """How rollouts stand of which nothing but the kind of their latest ending is asked; tasks end in few ways."""

    def __init__(self, outcomes: Sequence[Outcome]) -> None:
        self._outcomes = outcomes
        self._known: dict[tuple[int, ...], Coverage] = {}
        never = {kind for kind, outcome in enumerate(outcomes) if isinstance(outcome, NeverStarted)}
        self._unstarted = never | {UNTOUCHED, NEVER_SENT}

    def was_started(self, kinds: Sequence[int]) -> bool:
        """Whether any of rollouts with these kinds of ending was sent."""
        return not self._unstarted.issuperset(kinds)

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
            if kind in WITHOUT_RECORD:
                counts[WITHOUT_RECORD[kind]] += count
                continue
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
