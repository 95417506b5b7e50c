"""Aggregation at the end of a run: saved results → the servers' own metrics → one file.

Rules:
* Results are grouped by the environment server that produced them; each server is asked once.
* A server that cannot answer gets an entry that says so, and the others keep theirs.
* The file appears whole.

Source: collection.md §6.1, §6.3, §1.10.
"""

import asyncio
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from typing import Final, Protocol

import msgspec

from rollbook.dispatch.transport import Transport
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


async def aggregate(paths: RunPaths, standings: Standings, plan: Planned, transport: Transport) -> list[JsonObject]:
    """Ask every server for the metrics of the results that stand, write the metrics file, and return its entries."""
    with ExitStack() as holding:
        groups = await asyncio.to_thread(results_by_server, paths, standings, holding)
        labels = labels_of(groups)
        entries = await asyncio.gather(*(_entry(group, labels[group.server], plan, transport) for group in groups))
    with whole_file(paths.aggregate_metrics) as file:
        file.write(msgspec.json.format(_array(entries), indent=2) + b"\n")
    return list(entries)


def _array(entries: Iterable[JsonObject]) -> bytes:
    return b"[" + b",".join(map(encode, entries)) + b"]"


async def _entry(group: ServerResults, label: str, plan: Planned, transport: Transport) -> JsonObject:
    entry: JsonObject = {AGENT_REF_KEY: {"name": label}, NG_ENVIRONMENT_SERVER_KEY: group.server}
    try:
        reply = await transport.send(group.server, "/aggregate_metrics", group.body)
    except SendFailed as failure:
        return entry | _failed(failure.exception_type, failure.message, failure.status)
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
