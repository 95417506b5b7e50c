"""The scores of a run as one would write them down: every reward of every task in lists, each number from all of them.

`endings` is (task, rollout) → (agent, outcome).
"""

import math

from rollbook.records.outcome import Failed, Interrupted, Masked, NeverStarted, Scored, Unscored
from rollbook.records.standing import Coverage
from rollbook.scoring.estimates import PassAtK
from rollbook.scoring.pass_at_k import pass_at_k
from rollbook.scoring.tally import AgentScore
from rollbook.scoring.worst_tasks import TaskScore

PARTS = {
    Scored: ("scored",),
    Masked: ("masked",),
    Unscored: ("unscored",),
    Failed: ("failed", "retryable"),
    Interrupted: ("interrupted",),
    NeverStarted: ("never_started",),
}


def scores(endings, most=100):
    """Return (scores of agents, scores of the worst tasks)."""
    named = sorted({agent for agent, _ in endings.values()})
    agents = {agent: _tasks(endings, agent) for agent in named}
    return [_agent(agent, tasks) for agent, tasks in agents.items()], _worst(agents)[:most]


def _tasks(endings, agent):
    tasks = {}
    for (task, _), (named, outcome) in sorted(endings.items(), key=lambda item: item[0]):
        if named == agent:
            tasks.setdefault(task, []).append(outcome)
    return tasks


def _rewards(outcomes):
    return [outcome.reward for outcome in outcomes if isinstance(outcome, Scored)]


def _mean(values):
    return math.fsum(values) / len(values) if values else None


def _coverage(outcomes):
    counts, classes = {}, {}
    for outcome in outcomes:
        for part in PARTS[type(outcome)]:
            counts[part] = counts.get(part, 0) + 1
        if isinstance(outcome, Failed):
            classes[outcome.failure_class] = classes.get(outcome.failure_class, 0) + 1
    return Coverage(planned=len(outcomes), failed_by_class=classes, **counts)


def _agent(agent, tasks):
    every = [outcome for outcomes in tasks.values() for outcome in outcomes]
    rewards = [_rewards(outcomes) for outcomes in tasks.values()]
    return AgentScore(
        agent=agent,
        tasks=len(tasks),
        scored_tasks=sum(map(bool, rewards)),
        mean=_mean(_rewards(every)),
        standard_error=_error(rewards),
        pass_at_k=_pass(rewards, max(map(len, tasks.values()))),
        coverage=_coverage(every),
        within_unit=all(0 <= reward <= 1 for reward in _rewards(every)),
    )


def _error(rewards):
    clusters = [values for values in rewards if values]
    every = [value for values in clusters for value in values]
    if len(clusters) < 2:
        return None
    center = _mean(every)
    sums = [math.fsum(value - center for value in values) for values in clusters]
    squares = math.fsum(total * total for total in sums)
    return math.sqrt(len(clusters) / (len(clusters) - 1) * squares) / len(every)


def _pass(rewards, repeats):
    every = [value for values in rewards for value in values]
    if not every or set(every) - {0.0, 1.0}:
        return ()
    return tuple(_pass_at(rewards, k) for k in (1, 2, 4, 8, 16) if k <= repeats)


def _pass_at(rewards, k):
    chances = [pass_at_k(len(values), values.count(1), k) for values in rewards if len(values) >= k]
    return PassAtK(k, _mean(chances), len(chances), len(rewards) - len(chances))


def _worst(agents):
    tasks = [
        TaskScore(agent, task, _mean(_rewards(outcomes)), _coverage(outcomes))
        for agent, of_agent in agents.items()
        for task, outcomes in of_agent.items()
        if not all(isinstance(outcome, NeverStarted) for outcome in outcomes)
    ]
    best = max((task.mean for task in tasks if task.mean is not None), default=None)
    return sorted((task for task in tasks if task.mean is None or task.mean < best), key=_badness)


def _badness(task):
    unscored = task.coverage.planned - task.coverage.scored
    return task.mean is not None, task.mean or 0.0, -unscored, task.agent, task.task
