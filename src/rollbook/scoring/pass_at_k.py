"""pass@k, average and majority of k: what a task's first k, or any k, rollouts achieve. All values are percentages.

Rules:
* For a given k only tasks with at least k values count; what fewer samples could say about more is not guessed.
* A rollout without an answer has no vote in majority@k and still counts, with its score, in pass@k; its share is
  shown beside both as `no_answer`. A tie is worth the mean of the tied, and no vote at all is worth 0.
* Rollouts are taken in the order given, which is that of the repeats.

Source: collection.md §6.4; servers.md §8.11; Chen et al. 2021, "Evaluating Large Language Models Trained on Code", §2.1
(the unbiased estimator 1 - C(n - c, k) / C(n, k)); cases RC-74, RC-76, RC-84.
"""

import itertools
import math
import re
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from typing import Any, Final

from rollbook.records.json_values import JsonObject
from rollbook.records.keys import REWARD_KEY
from rollbook.scoring.rows import Number, number_in
from rollbook.scoring.series import average_series, majority_series, pass_series
from rollbook.scoring.spread import mean, sample_std

ScoreFn = Callable[[Any], Mapping[str, Any]]
Tasks = Sequence[Sequence[Mapping[str, Any]]]
Scores = dict[str, Number]

STD_DEV: Final = "/std_dev_across_runs"
STD_ERR: Final = "/std_err_across_runs"
AVG_SAMPLE_STD_DEV: Final = "/avg_sample_std_dev"
COMPANIONS: Final = (STD_DEV, STD_ERR, AVG_SAMPLE_STD_DEV)
"""Endings of metrics that say how sure another metric is."""

PER_SAMPLE_AGGREGATE: Final = "per_sample_aggregate"
_NO_ANSWER: Final = "no_answer"
_PERCENT: Final = 100.0
_ANY_OF: Final = "pass@{k}"
_AVERAGE: Final = "pass@1[avg-of-{k}]"
_MAJORITY: Final = "majority@{k}"


def pass_at_k(n: int, correct: int, k: int) -> float:
    """Return the chance that k of n rollouts, `correct` of which are right, hold a right one; n >= k."""
    return 1 - math.comb(n - correct, k) / math.comb(n, k)


def compute_pass_majority_metrics(
    tasks: Tasks, score_fn: ScoreFn | None = None, answer_key: str | None = None
) -> tuple[dict[str, object], list[list[Scores]], list[str], int]:
    """Return (metrics, scores of every rollout of every task, names of the scores, the largest k).

    `tasks[i]` holds the rollouts of task i in the order of their repeats; `score_fn(rollout)` gives named scores, by
    default `{"accuracy": reward}`. With `answer_key`, majority@k and the share without an answer are computed as well.
    No tasks have no metrics.
    """
    scores = [[_scores(rollout, score_fn or _accuracy, answer_key) for rollout in rollouts] for rollouts in tasks]
    names = list(dict.fromkeys(name for task in scores for rollout in task for name in rollout))
    max_k = max((len(rollouts) for rollouts in tasks), default=0)
    votes = [[_ballot(rollout.get(answer_key)) for rollout in rollouts] for rollouts in tasks] if answer_key else None
    metrics: JsonObject = {}
    runs: JsonObject = {}
    for name in names:
        runs[name] = averages = _run_averages(scores, name, max_k)
        series = _series_of(scores, votes, name)
        for k in range(1, max_k + 1):
            metrics |= _at(series, name, k) | _across_runs(averages, name, k)
    if tasks:
        metrics[PER_SAMPLE_AGGREGATE] = runs
    return metrics, scores, names, max_k


def add_avg_sample_std_dev(
    metrics: dict[str, object], all_score_dicts: Sequence[Sequence[Scores]], score_names: Sequence[str], max_k: int
) -> None:
    """Add to `metrics` how much a task's first k rollouts differ: the mean, over tasks, of their sample deviation."""
    for name in score_names:
        values = [[rollout[name] for rollout in task if name in rollout] for task in all_score_dicts]
        for k in range(2, max_k + 1):
            spread = mean([std for task in values if len(task) >= k and (std := sample_std(task[:k])) is not None])
            if spread is not None:
                metrics[f"{_AVERAGE.format(k=k)}/{name}{AVG_SAMPLE_STD_DEV}"] = _PERCENT * spread


def compute_subset_metrics(
    tasks: Tasks, subset_key: str, score_fn: ScoreFn | None = None, answer_key: str | None = None
) -> dict[str, object]:
    """Return `<subset>/<metric>`: the metrics of tasks with one value in `subset_key`, for every value there is.

    A task belongs where its first rollout that has the field says; a task without the field belongs nowhere. Every
    value is a number: runs one by one are told of all tasks together alone.
    """
    subsets: dict[str, list[Sequence[Mapping[str, Any]]]] = {}
    for rollouts in tasks:
        subset = next((value for rollout in rollouts if (value := rollout.get(subset_key)) is not None), None)
        if subset is not None:
            subsets.setdefault(str(subset), []).append(rollouts)
    return {
        f"{subset}/{name}": value
        for subset, members in subsets.items()
        for name, value in compute_pass_majority_metrics(members, score_fn, answer_key)[0].items()
        if name != PER_SAMPLE_AGGREGATE
    }


def highest_k_metrics(
    agent_metrics: Mapping[str, Any],
    pattern: str,
    score_names: Collection[str] | None = None,
    exclude_names: Collection[str] | None = None,
) -> dict[str, object]:
    """Return the metrics that `pattern` (for example `pass@{k}`) names at the largest k, without companions."""
    before, _, after = pattern.partition("{k}")
    shape = re.compile(rf"{re.escape(before)}(\d+){re.escape(after)}/(.+)", re.DOTALL)
    by_k: dict[int, dict[str, object]] = {}
    for key, value in agent_metrics.items():
        match = shape.fullmatch(key)
        if match and _is_wanted(match[2], score_names, exclude_names):
            by_k.setdefault(int(match[1]), {})[key] = value
    return by_k[max(by_k)] if by_k else {}


def _is_wanted(name: str, wanted: Collection[str] | None, unwanted: Collection[str] | None) -> bool:
    return not name.endswith(COMPANIONS) and (wanted is None or name in wanted) and name not in (unwanted or ())


def _accuracy(rollout: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"accuracy": rollout[REWARD_KEY]} if rollout.get(REWARD_KEY) is not None else {}


def _scores(rollout: Mapping[str, Any], score_fn: ScoreFn, answer_key: str | None) -> Scores:
    given = score_fn(rollout).items()
    scores = {name: number for name, value in given if (number := number_in(value)) is not None}
    if answer_key:
        scores[_NO_ANSWER] = int(rollout.get(answer_key) is None)
    return scores


def _series_of(
    scores: Sequence[Sequence[Scores]], votes: Sequence[Sequence[object]] | None, name: str
) -> dict[str, Sequence[Sequence[float | None]]]:
    values = [[rollout[name] for rollout in task if name in rollout] for task in scores]
    averages = [_known_averages([rollout.get(name) for rollout in task]) for task in scores]
    series: dict[str, Sequence[Sequence[float | None]]] = {
        _ANY_OF: [pass_series(task) for task in values],
        _AVERAGE: averages,
    }
    if votes is not None:
        ballots = zip(votes, scores, strict=True)
        series[_MAJORITY] = [
            majority_series(zip(answers, (rollout.get(name) for rollout in task), strict=True))
            for answers, task in ballots
        ]
    return series


def _known_averages(values: Sequence[Number | None]) -> list[float | None]:
    """Return the mean of the first k values, for every k, over those that there are: None where there are none."""
    averages = average_series([value for value in values if value is not None])
    counts = itertools.accumulate(value is not None for value in values)
    return [averages[count - 1] if count else None for count in counts]


def _at(series: Mapping[str, Sequence[Sequence[float | None]]], name: str, k: int) -> JsonObject:
    values = {
        pattern: [value for task in tasks if len(task) >= k and (value := task[k - 1]) is not None]
        for pattern, tasks in series.items()
    }
    return {f"{pattern.format(k=k)}/{name}": _percent(enough) for pattern, enough in values.items() if enough}


def _run_averages(scores: Sequence[Sequence[Scores]], name: str, max_k: int) -> list[float]:
    runs = ([task[run][name] for task in scores if len(task) > run and name in task[run]] for run in range(max_k))
    return [_percent(values) for values in runs if values]


def _across_runs(averages: Sequence[float], name: str, k: int) -> JsonObject:
    std = sample_std(averages[:k]) if k <= len(averages) else None
    if std is None:
        return {}
    key = f"{_AVERAGE.format(k=k)}/{name}"
    return {key + STD_DEV: std, key + STD_ERR: std / math.sqrt(k)}


def _ballot(answer: object) -> object:
    return answer if isinstance(answer, Hashable) else repr(answer)


def _percent(values: Sequence[Number]) -> float:
    return _PERCENT * math.fsum(values) / len(values)
