"""The metrics of one server's results: the field's `/aggregate_metrics`, computed without a data frame.

Rules:
* The order of the rows changes nothing: they are sorted by (task, rollout) before anything positional is computed.
* A masked result is no measurement: it counts as coverage and in `perf_summary`, never in a quality metric.
* No number is invented and none is infinite: what is undefined has no key.
* Both models are built when they are defined: the framework warns of a route's model that is built while it answers.
* A hook sees what the field's hooks see; where a server awaits the metrics, its hooks may be coroutine functions.

Source: collection.md §6.4; servers.md §3.7, §8.11.
"""

import inspect
import logging
from collections.abc import Callable, Generator, Mapping, Sequence
from functools import partial
from typing import Any

import msgspec
from pydantic import BaseModel, Field

from rollbook.records.json_values import JsonObject
from rollbook.scoring.across_repeats import across_repeats
from rollbook.scoring.columns import described
from rollbook.scoring.finite import finite_fields
from rollbook.scoring.performance import perf_summary
from rollbook.scoring.repeats import kept_of_hook, repeat_entries, rows_by_repeat, unequal
from rollbook.scoring.rows import Split, split_rows, tasks_of
from rollbook.scoring.streamed_metrics import default_key_metrics
from rollbook.scoring.task_entries import merge_task_metrics, task_entries

_log = logging.getLogger(__name__)
PER_TASK_METRICS = "per_task_metrics"

HookAnswer = Mapping[str, Any] | None
Hook = Callable[[Any], HookAnswer]
_Call = Callable[[], Any]


class AggregateMetricsRequest(BaseModel):
    """The results of one server: stored rows without their bulk."""

    verify_responses: list[dict[str, Any]]


class AggregateMetrics(BaseModel):
    """What a server makes of its results, per task, overall and per repeat."""

    group_level_metrics: list[dict[str, Any]] = Field(default_factory=list)
    agent_metrics: dict[str, Any] = Field(default_factory=dict)
    key_metrics: dict[str, Any] = Field(default_factory=dict)
    perf_summary: dict[str, Any] | None = None
    repeat_level_metrics: list[dict[str, Any]] = Field(default_factory=list)


def compute_aggregate_metrics(
    verify_responses: Sequence[Mapping[str, Any]],
    compute_metrics_fn: Hook | None = None,
    get_key_metrics_fn: Hook | None = None,
    compute_repeat_metrics_fn: Hook | None = None,
) -> AggregateMetrics:
    """Return the metrics of `verify_responses`, the rows of one server, each with its task and rollout index.

    `compute_metrics_fn` and `compute_repeat_metrics_fn` take tasks as lists of unmasked rows (all repeats, or one);
    `get_key_metrics_fn` takes the agent metrics. Rates of the generic metrics are fractions, as the rows hold them.
    That repeats cover different tasks is logged; of an answer of `AggregateMetricsMixin`, whoever asked for it tells.

    Raises:
        InputError: a row names no rollout, or two rows name the same one.
        TypeError: a hook is a coroutine function; `AggregateMetricsMixin` awaits those.

    """
    steps = _aggregation(verify_responses, _Hooks(compute_metrics_fn, get_key_metrics_fn, compute_repeat_metrics_fn))
    step = _advance(steps, None)
    while not isinstance(step, AggregateMetrics):
        step = _advance(steps, _at_once(step()))
    told = unequal(step.repeat_level_metrics)
    if told is not None:
        _log.warning("%s", told)
    return step


class AggregateMetricsMixin:
    """The route `/aggregate_metrics` and its three hooks; an override may be a coroutine function."""

    def compute_metrics(self, tasks: list[list[dict[str, Any]]]) -> dict[str, Any]:
        """Return metrics of all unmasked rows, given by task; `per_task_metrics` may list entries for single tasks."""
        del tasks
        return {}

    def compute_repeat_metrics(self, tasks: list[list[dict[str, Any]]]) -> dict[str, Any]:
        """Return metrics of one repeat, one unmasked row a task; they replace generic ones of the same name."""
        del tasks
        return {}

    def get_key_metrics(self, agent_metrics: dict[str, Any]) -> dict[str, Any]:
        """Return the few metrics that stand for this server."""
        return default_key_metrics(agent_metrics)

    async def aggregate_metrics(self, body: AggregateMetricsRequest) -> AggregateMetrics:
        """Answer `POST /aggregate_metrics`; raises as `compute_aggregate_metrics` does."""
        hooks = _Hooks(self.compute_metrics, self.get_key_metrics, self.compute_repeat_metrics)
        steps = _aggregation(body.verify_responses, hooks)
        step = _advance(steps, None)
        while not isinstance(step, AggregateMetrics):
            answer = step()
            step = _advance(steps, await answer if inspect.isawaitable(answer) else answer)
        return step


class _Hooks(msgspec.Struct, frozen=True):
    metrics: Callable[[Any], Any] | None
    key_metrics: Callable[[Any], Any] | None
    repeat_metrics: Callable[[Any], Any] | None


_Steps = Generator[_Call, Any, AggregateMetrics]


def _advance(steps: _Steps, answer: object) -> _Call | AggregateMetrics:
    try:
        return steps.send(answer)
    except StopIteration as end:
        result: AggregateMetrics = end.value
        return result


def _at_once(answer: object) -> object:
    if not inspect.isawaitable(answer):
        return answer
    if inspect.iscoroutine(answer):
        answer.close()
    raise TypeError("a hook is a coroutine function: override it on AggregateMetricsMixin, whose route awaits it")


def _aggregation(rows: Sequence[Mapping[str, Any]], hooks: _Hooks) -> _Steps:
    split = split_rows(rows)
    coverage = split.coverage()
    perf = perf_summary(rows)
    if not split.measured:
        return AggregateMetrics(agent_metrics=dict(coverage), key_metrics=dict(coverage), perf_summary=perf)
    groups = task_entries(split.measured)
    agent_metrics = described(split.measured)
    repeats = yield from _repeat_level(split, hooks.repeat_metrics)
    agent_metrics |= across_repeats(repeats)
    agent_metrics |= yield from _custom(split, groups, hooks.metrics)
    agent_metrics["num_repeats"] = split.num_repeats
    agent_metrics |= coverage
    key_hook = hooks.key_metrics or default_key_metrics
    key_metrics = (yield partial(key_hook, dict(agent_metrics))) or {}
    return AggregateMetrics(
        group_level_metrics=groups,
        agent_metrics=agent_metrics,
        key_metrics=finite_fields(key_metrics) | coverage,
        perf_summary=perf,
        repeat_level_metrics=repeats,
    )


def _repeat_level(split: Split, hook: Callable[[Any], Any] | None) -> Generator[_Call, HookAnswer, list[JsonObject]]:
    repeats = rows_by_repeat(split.measured)
    if len(repeats) <= 1:
        return []
    entries = repeat_entries(repeats)
    if hook is None:
        return entries
    answers: list[Mapping[str, Any]] = []
    for rows in repeats.values():
        answers += [(yield partial(hook, tasks_of(rows))) or {}]
    for entry, kept in zip(entries, kept_of_hook(answers), strict=True):
        entry.update(kept)
    return entries


def _custom(
    split: Split, groups: list[JsonObject], hook: Callable[[Any], Any] | None
) -> Generator[_Call, HookAnswer, JsonObject]:
    if hook is None:
        return {}
    answer = finite_fields((yield partial(hook, tasks_of(split.measured))) or {})
    own = answer.pop(PER_TASK_METRICS, None)
    merge_task_metrics(groups, own if isinstance(own, list) else [])
    return answer
