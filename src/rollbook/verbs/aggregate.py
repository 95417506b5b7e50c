"""Aggregation at the end of a run: saved results → the servers' own metrics → one file.

Rules:
* Results are grouped by the environment server that produced them; each server is asked once.
* A server that cannot answer, or does not in time, gets an entry that says so, with what any server computes; the
  others keep theirs.
* Rollouts that count as zero are rows among the others, so that the number at the end is the number of the run.
* The file appears whole; of an aggregation that is cancelled there is none.

Source: collection.md §6.1, §6.3, §6.5, §1.10.
"""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any, Final, NamedTuple, Protocol, TypeVar

import msgspec

from rollbook.dispatch.transport import Transport
from rollbook.dispatch.waiting import to_the_end
from rollbook.errors import RollbookError
from rollbook.ledger.paths import RunPaths
from rollbook.outcomes.error_text import kept_text
from rollbook.records.exchange import Reply, SendFailed
from rollbook.records.half_pairs import half_pair_in
from rollbook.records.identity import TASK_INDEX_KEY_NAME
from rollbook.records.json_values import JsonObject
from rollbook.records.keys import AGENT_REF_KEY, NG_ENVIRONMENT_SERVER_KEY
from rollbook.records.nesting import not_too_deep
from rollbook.records.standing import Standings
from rollbook.scoring.coverage_report import ScoreShare
from rollbook.scoring.streamed import Expected
from rollbook.verbs.light_rows import (
    NOTHING_CHOSEN,
    BodyFile,
    Chosen,
    ServerResults,
    Serving,
    labels_of,
    named_group,
    results_by_server,
    stamped,
)
from rollbook.verbs.metrics_file import ERROR_KEY, LOCALLY_KEY, NOTE_KEY, LocalEntry, some_at_a_time, write_metrics
from rollbook.verbs.result_counts import disputed_counts, result_counts, share_of

T = TypeVar("T")

AGGREGATION_SECONDS: Final = 600.0
"""How long a server has for its metrics, besides the time that its results are given to arrive."""
BYTES_A_SECOND: Final = 1 << 20

_LOCAL_NOTE: Final = "the server's own metrics are missing; these are the ones that any server computes"
_OK: Final = 200
_SHOWN: Final = 500


class _Metrics(msgspec.Struct):
    """What a server answers; anything else is no answer."""

    agent_metrics: dict[str, object]
    key_metrics: dict[str, object]
    group_level_metrics: list[dict[str, object]]
    repeat_level_metrics: list[dict[str, object]] = msgspec.field(default_factory=list)
    perf_summary: dict[str, object] | None = None


_METRICS: Final = msgspec.json.Decoder(_Metrics)


class Planned(Protocol):
    """What a server cannot know of the results that it was not sent."""

    def rollouts(self, server: str) -> int:
        """Return how many rollouts of the plan go to `server`."""
        ...

    def by_task(self, server: str) -> Mapping[int, int]:
        """Return how many rollouts of the plan go to `server`, by task."""
        ...


async def aggregate(
    paths: RunPaths,
    standings: Standings,
    plan: Planned,
    transport: Transport,
    seconds: float = AGGREGATION_SECONDS,
    *,
    serving: Serving = stamped,
    chosen: Chosen = NOTHING_CHOSEN,
) -> list[JsonObject]:
    """Ask every server for the metrics of the results that stand, write the metrics file, and return its entries.

    A server has `seconds`, and a second more for every `BYTES_A_SECOND` of its results. Where it does not answer, what
    any server computes is computed here; of such an entry the entries of tasks are in the file alone.

    Raises:
        OSError: the results cannot be read, or the disk does not take what is written.

    """
    over = threading.Event()
    with ExitStack() as holding:
        groups = await in_thread(
            over, lambda: results_by_server(paths, standings, holding, over.is_set, serving=serving, chosen=chosen)
        )
        entered = await in_thread(over, lambda: _entered(groups, standings, serving, plan))
        answers = await all_of(_entry(of, plan, transport, seconds) for of in entered)
        entries = [
            local(entry, of.group, plan, of.share) if ERROR_KEY in entry else entry
            for entry, of in zip(answers, entered, strict=True)
        ]
        return await in_thread(over, lambda: write_metrics(paths.aggregate_metrics, entries, over.is_set))


def local(entry: JsonObject, group: ServerResults, plan: Planned, share: ScoreShare) -> LocalEntry:
    """Return the entry of a server that did not answer, with metrics that are computed here."""
    complete = share.expected == group.rows
    by_task = {} if complete else plan.by_task(group.server)
    rows = group.body.rows
    return LocalEntry(
        locally(entry), lambda: some_at_a_time(rows()), by_task.get, lambda metrics: with_share(metrics, share)
    )


def locally(entry: JsonObject) -> JsonObject:
    """Return the head of an entry whose metrics are computed here, which says so."""
    return entry | {LOCALLY_KEY: True, NOTE_KEY: _LOCAL_NOTE}


async def all_of(asked: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Return what all of `asked` return; where one fails, none of the others outlives it."""
    asking = [asyncio.create_task(one) for one in asked]
    try:
        return await asyncio.gather(*asking)
    finally:
        for task in asking:
            task.cancel()
        await asyncio.gather(*asking, return_exceptions=True)


async def in_thread(over: threading.Event, work: Callable[[], T]) -> T:
    """Do `work` in a thread, which a cancellation ends soon and waits for: files and fold are in its hands."""
    working = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        return await asyncio.shield(working)
    except asyncio.CancelledError:
        over.set()
        await to_the_end(asyncio.gather(working, return_exceptions=True))
        raise


class _Entered(NamedTuple):
    """What is to have an entry: what it is called, and what of the plan is in its mean."""

    group: ServerResults
    label: str
    share: ScoreShare


def _entered(groups: Sequence[ServerResults], standings: Standings, serving: Serving, plan: Planned) -> list[_Entered]:
    labels = labels_of(groups)

    def named(agent: str | None, server: str | None) -> str:
        return named_group(serving, agent, server)[0]

    counts, disputed = result_counts(standings, named), disputed_counts(standings, named)
    return [
        _Entered(
            group,
            labels[group.server],
            share_of(plan.rollouts(group.server), counts.get(group.server, {}), group.added, disputed[group.server]),
        )
        for group in groups
    ]


async def _entry(of: _Entered, plan: Planned, transport: Transport, seconds: float) -> JsonObject:
    group = of.group
    server = group.server if group.is_served else None
    entry: JsonObject = {AGENT_REF_KEY: {"name": of.label}, NG_ENVIRONMENT_SERVER_KEY: server}
    if not group.is_served:
        return entry | not_served(group.server)
    answer = await asked(group.server, group.body, transport, seconds)
    return entry | (answer if ERROR_KEY in answer else covered(answer, group, plan, of.share))


def not_served(agent: str) -> JsonObject:
    """Return what stands in an entry of rows whose server nobody knows."""
    said = f"no environment server, or more than one, fronts {agent}; rows that name theirs are scored there"
    return failed("AgentWithoutEnvironmentServerError", said, None)


async def asked(server: str, body: BodyFile, transport: Transport, seconds: float = AGGREGATION_SECONDS) -> JsonObject:
    """Return what a server makes of the results in `body`, or the error that kept it from that."""
    seconds += body.size / BYTES_A_SECOND
    limit = asyncio.timeout(seconds)
    try:
        async with limit:
            reply = await transport.send(server, "/aggregate_metrics", body)
    except SendFailed as failure:
        return failed(failure.exception_type, failure.message, failure.status)
    except RollbookError as error:
        return failed(type(error).__name__, str(error), None)
    except OSError as error:
        said = f"no reply within {seconds:.0f} s" if limit.expired() else f"the results were not read back: {error}"
        return failed(type(error).__name__, said, None)
    return _metrics(reply)


def _metrics(reply: Reply) -> JsonObject:
    if reply.status != _OK:
        return failed("ClientResponseError", told_instead(reply), reply.status)
    try:
        metrics = _METRICS.decode(not_too_deep(reply.body))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return failed(type(error).__name__, told_instead(reply, error), reply.status)
    named: JsonObject = msgspec.to_builtins(metrics)
    if metrics.perf_summary is None:
        del named["perf_summary"]
    return named


def told_instead(reply: Reply, error: Exception | None = None) -> str:
    """Return what is shown of a reply that holds no metrics: its beginning, and what is wrong with it."""
    shown = kept_text(reply.body)[:_SHOWN]
    return shown if error is None else f"{half_pair_in(reply.body) or error}: {shown}"


def covered(metrics: JsonObject, group: ServerResults, plan: Planned, share: ScoreShare) -> JsonObject:
    """Return a server's metrics with what they cover of the plan: each task's share and, unless it is all, the sum."""
    metrics = with_share(metrics, share)
    tasks = metrics["group_level_metrics"]
    if isinstance(tasks, list) and tasks:
        cover_tasks(tasks, plan.by_task(group.server).get)
    return metrics


def cover_tasks(tasks: Iterable[JsonObject], expected: Expected) -> None:
    """Say in the entries of tasks which share of the plan each has."""
    for task in tasks:
        _cover_task(task, expected)


def with_share(metrics: JsonObject, share: ScoreShare) -> JsonObject:
    """Return metrics with what of the plan is in them, unless all of it is."""
    if not share.is_whole:
        for name in ("agent_metrics", "key_metrics"):
            metrics[name] = _object(metrics[name]) | share.metrics()
    return metrics


def _cover_task(task: JsonObject, expected: Expected) -> None:
    index, found = task.get(TASK_INDEX_KEY_NAME), task.get("num_rollouts")
    count = expected(index) if isinstance(index, int) else None
    if count and isinstance(found, int):
        task["expected_num_rollouts"], task["missing_num_rollouts"] = count, count - found
        task["reward_profile_completion_pct"] = 100.0 * found / count


def _object(value: object) -> JsonObject:
    return dict(value) if isinstance(value, Mapping) else {}


def failed(exception_type: str, message: str, status: int | None) -> JsonObject:
    """Return what stands in an entry whose server could not answer."""
    error: JsonObject = {"type": exception_type, "message": message}
    if status is not None:
        error["http_status"] = status
    return {ERROR_KEY: error}
