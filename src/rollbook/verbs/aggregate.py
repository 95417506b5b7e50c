"""Aggregation at the end of a run: saved results → the servers' own metrics → one file.

Rules:
* Results are grouped by the environment server that produced them; each server is asked once.
* A server that cannot answer, or does not in time, gets an entry that says so, and the others keep theirs.
* The file appears whole; of an aggregation that is cancelled there is none.

Source: collection.md §6.1, §6.3, §1.10.
"""

import asyncio
import threading
from collections.abc import Coroutine, Iterable, Mapping
from contextlib import ExitStack
from typing import Final, Protocol

import msgspec

from rollbook.dispatch.transport import Transport
from rollbook.dispatch.waiting import to_the_end
from rollbook.ledger.paths import RunPaths
from rollbook.ledger.whole_file import whole_file
from rollbook.records.codec import encode
from rollbook.records.exchange import Reply, SendFailed
from rollbook.records.identity import TASK_INDEX_KEY_NAME
from rollbook.records.json_values import JsonObject
from rollbook.records.keys import AGENT_REF_KEY, NG_ENVIRONMENT_SERVER_KEY
from rollbook.records.nesting import not_too_deep
from rollbook.records.standing import Standings
from rollbook.verbs.light_rows import ServerResults, labels_of, results_by_server

AGGREGATION_SECONDS: Final = 600.0
"""How long a server has for its metrics, besides the time that its results are given to arrive."""
BYTES_A_SECOND: Final = 1 << 20

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
    paths: RunPaths, standings: Standings, plan: Planned, transport: Transport, seconds: float = AGGREGATION_SECONDS
) -> list[JsonObject]:
    """Ask every server for the metrics of the results that stand, write the metrics file, and return its entries.

    A server has `seconds`, and a second more for every `BYTES_A_SECOND` of its results.

    Raises:
        OSError: the results cannot be read, or the disk does not take what is written.

    """
    with ExitStack() as holding:
        groups = await _groups(paths, standings, holding)
        labels = labels_of(groups)
        entries = await _all(_entry(group, labels[group.server], plan, transport, seconds) for group in groups)
    with whole_file(paths.aggregate_metrics) as file:
        file.write(msgspec.json.format(_array(entries), indent=2) + b"\n")
    return entries


async def _all(asked: Iterable[Coroutine[None, None, JsonObject]]) -> list[JsonObject]:
    """Return what all of `asked` return; where one fails, none of the others outlives it."""
    asking = [asyncio.create_task(one) for one in asked]
    try:
        return await asyncio.gather(*asking)
    finally:
        for task in asking:
            task.cancel()
        await asyncio.gather(*asking, return_exceptions=True)


async def _groups(paths: RunPaths, standings: Standings, holding: ExitStack) -> tuple[ServerResults, ...]:
    """Read the results in a thread, which a cancellation ends soon and waits for: files and fold are in its hands."""
    over = threading.Event()
    reading = asyncio.ensure_future(asyncio.to_thread(results_by_server, paths, standings, holding, over.is_set))
    try:
        return await asyncio.shield(reading)
    except asyncio.CancelledError:
        over.set()
        await to_the_end(asyncio.gather(reading, return_exceptions=True))
        raise


def _array(entries: Iterable[JsonObject]) -> bytes:
    return b"[" + b",".join(map(encode, entries)) + b"]"


async def _entry(group: ServerResults, label: str, plan: Planned, transport: Transport, seconds: float) -> JsonObject:
    entry: JsonObject = {AGENT_REF_KEY: {"name": label}, NG_ENVIRONMENT_SERVER_KEY: group.server}
    seconds += group.body.size / BYTES_A_SECOND
    limit = asyncio.timeout(seconds)
    try:
        async with limit:
            reply = await transport.send(group.server, "/aggregate_metrics", group.body)
    except SendFailed as failure:
        return entry | _failed(failure.exception_type, failure.message, failure.status)
    except OSError as error:
        said = f"no reply within {seconds:.0f} s" if limit.expired() else f"the results were not read back: {error}"
        return entry | _failed(type(error).__name__, said, None)
    return entry | covered(_metrics(reply), group, plan)


def _metrics(reply: Reply) -> JsonObject:
    shown = reply.body[:_SHOWN].decode(errors="replace")
    if reply.status != _OK:
        return _failed("ClientResponseError", shown, reply.status)
    try:
        metrics = _METRICS.decode(not_too_deep(reply.body))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return _failed(type(error).__name__, f"{error}: {shown}", reply.status)
    named: JsonObject = msgspec.to_builtins(metrics)
    if metrics.perf_summary is None:
        del named["perf_summary"]
    return named


def covered(metrics: JsonObject, group: ServerResults, plan: Planned) -> JsonObject:
    """Return a server's metrics with what they cover of the plan: each task's share and, if any is missing, the sum."""
    expected = plan.rollouts(group.server)
    missing = expected - group.rows
    share = {"coverage/expected": expected, "coverage/scored": group.rows, "coverage/missing": missing}
    for name in ("agent_metrics", "key_metrics") if missing > 0 else ():
        metrics[name] = _object(metrics[name]) | share
    tasks = metrics["group_level_metrics"]
    if isinstance(tasks, list) and tasks:
        planned = plan.by_task(group.server)
        for task in tasks:
            _cover_task(task, planned)
    return metrics


def _cover_task(task: JsonObject, planned: Mapping[int, int]) -> None:
    index, found = task.get(TASK_INDEX_KEY_NAME), task.get("num_rollouts")
    count = planned.get(index) if isinstance(index, int) else None
    if count and isinstance(found, int):
        task["expected_num_rollouts"], task["missing_num_rollouts"] = count, count - found
        task["reward_profile_completion_pct"] = 100.0 * found / count


def _object(value: object) -> JsonObject:
    return dict(value) if isinstance(value, Mapping) else {}


def _failed(exception_type: str, message: str, status: int | None) -> JsonObject:
    error: JsonObject = {"type": exception_type, "message": message}
    if status is not None:
        error["http_status"] = status
    return {
        "agent_metrics": {},
        "key_metrics": {},
        "group_level_metrics": [],
        "repeat_level_metrics": [],
        "aggregation_error": error,
    }
