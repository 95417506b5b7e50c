"""Aggregation at the end of a run: saved results → the servers' own metrics → one file.

Rules:
* Results are grouped by the environment server that produced them; each server is asked once.
* A server that cannot answer gets an entry that says so, and the others keep theirs.
* The file appears whole.

Source: collection.md §6.1, §6.3, §1.10.
"""

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

import msgspec

from rollbook.dispatch.transport import Transport
from rollbook.ledger.paths import RunPaths
from rollbook.ledger.reader import read_lines
from rollbook.ledger.whole_file import whole_file
from rollbook.plan.targets import name_in
from rollbook.records.codec import File, encode
from rollbook.records.exchange import Reply, SendFailed
from rollbook.records.identity import ROLLOUT_INDEX_KEY_NAME, TASK_INDEX_KEY_NAME, RolloutKey
from rollbook.records.json_values import JsonMapping, JsonObject
from rollbook.records.keys import (
    AGENT_REF_KEY,
    BULKY_KEYS,
    NG_ENVIRONMENT_SERVER_KEY,
    RESPONSE_KEY,
)
from rollbook.records.nesting import not_too_deep
from rollbook.records.outcome import Result
from rollbook.records.reading import UNREADABLE, read_row
from rollbook.records.record import Record
from rollbook.records.standing import Standings

_OK: Final = 200
_KEPT_OF_RESPONSE: Final = ("usage", "incomplete_details")
_SHOWN: Final = 500


@dataclass(frozen=True, slots=True)
class ServerResults:
    """The rows that one environment server produced, without their bulk, in (task, rollout) order."""

    server: str
    rows: tuple[JsonMapping, ...]

    @property
    def agents(self) -> tuple[str, ...]:
        """The agents that the rows name."""
        return tuple(sorted({name for row in self.rows if (name := name_in(row.get(AGENT_REF_KEY)))}))


class _Metrics(msgspec.Struct):
    """What a server answers; anything else is no answer."""

    agent_metrics: dict[str, object]
    key_metrics: dict[str, object]
    group_level_metrics: list[dict[str, object]]
    repeat_level_metrics: list[dict[str, object]] = msgspec.field(default_factory=list)
    perf_summary: dict[str, object] | None = None


_METRICS: Final = msgspec.json.Decoder(_Metrics)


async def aggregate(
    paths: RunPaths, standings: Standings, planned: Mapping[tuple[str, int], int], transport: Transport
) -> list[JsonObject]:
    """Ask every server for the metrics of the results that stand, write the metrics file, and return its entries.

    `planned` counts the plan's rollouts by (server, task): what a server cannot know of the results it was not sent.
    """
    groups = results_by_server(paths, standings)
    labels = labels_of(groups)
    entries = await asyncio.gather(*(_entry(group, labels[group.server], planned, transport) for group in groups))
    with whole_file(paths.aggregate_metrics) as file:
        file.write(msgspec.json.format(encode_list(entries), indent=2) + b"\n")
    return list(entries)


def results_by_server(paths: RunPaths, standings: Standings) -> tuple[ServerResults, ...]:
    """Return the results that stand, without their bulk, grouped by the server that produced them."""
    groups: defaultdict[str, list[JsonObject]] = defaultdict(list)
    for row in _standing_rows(paths, standings):
        groups[str(row.get(NG_ENVIRONMENT_SERVER_KEY))].append(row)
    return tuple(ServerResults(server, tuple(sorted(rows, key=_position))) for server, rows in sorted(groups.items()))


def labels_of(groups: tuple[ServerResults, ...]) -> Mapping[str, str]:
    """Return what each server's entry is called: its agent where no other server has that agent, else the server."""
    wanted = {group.server: group.agents[0] if len(group.agents) == 1 else group.server for group in groups}
    names = list(wanted.values())
    return {server: name if names.count(name) == 1 else server for server, name in wanted.items()}


def light_row(row: JsonMapping) -> JsonObject:
    """Return `row` without its bulky values; of the response only usage and the reason of an early end stay."""
    light = {key: value for key, value in row.items() if key not in BULKY_KEYS}
    response = row.get(RESPONSE_KEY)
    if isinstance(response, Mapping):
        kept = {key: response[key] for key in _KEPT_OF_RESPONSE if response.get(key) is not None}
        if kept:
            light[RESPONSE_KEY] = kept
    return light


def encode_list(entries: list[JsonObject] | tuple[JsonObject, ...]) -> bytes:
    """Return `entries` as a JSON array."""
    return b"[" + b",".join(encode(entry) for entry in entries) + b"]"


def _standing_rows(paths: RunPaths, standings: Standings) -> Iterable[JsonObject]:
    """Return one light row for each rollout of which a result stands; who let damaged lines pass, goes on without."""
    rows: dict[RolloutKey, JsonObject] = {}
    for number, line in read_lines(paths.output):
        try:
            record = read_row(line, File.RESULTS)
        except UNREADABLE:
            continue
        stands = standings.of(record.key)
        if stands is not None and _lies_at(stands, record, number):
            rows[record.key] = light_row(msgspec.json.decode(line, type=dict[str, object]))
    return rows.values()


def _lies_at(stands: Record, record: Record, number: int) -> bool:
    """Whether line `number` of the results, which holds `record`, is the one that stands.

    What this session wrote has no place yet: its attempt tells. A row that names no run may have been given another
    attempt number by the fold than the one in the file: its place tells.
    """
    if stands.place is not None:
        return stands.place.file is File.RESULTS and stands.place.line == number
    named = (record.run_id, record.attempt)
    return isinstance(stands.outcome, Result) and named == (stands.run_id, stands.attempt)


def _position(row: JsonMapping) -> tuple[int, int]:
    task, rollout = row.get(TASK_INDEX_KEY_NAME), row.get(ROLLOUT_INDEX_KEY_NAME)
    return (task if isinstance(task, int) else 0, rollout if isinstance(rollout, int) else 0)


async def _entry(
    group: ServerResults, label: str, planned: Mapping[tuple[str, int], int], transport: Transport
) -> JsonObject:
    entry: JsonObject = {AGENT_REF_KEY: {"name": label}, NG_ENVIRONMENT_SERVER_KEY: group.server}
    body = b'{"verify_responses":' + encode_list([dict(row) for row in group.rows]) + b"}"
    try:
        reply = await transport.send(group.server, "/aggregate_metrics", body)
    except SendFailed as failure:
        return entry | _failed(failure.exception_type, failure.message, failure.status)
    return entry | covered(_metrics(reply), group, planned)


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


def covered(metrics: JsonObject, group: ServerResults, planned: Mapping[tuple[str, int], int]) -> JsonObject:
    """Return a server's metrics with what they cover of the plan: each task's share and, if any is missing, the sum."""
    expected = sum(count for (server, _), count in planned.items() if server == group.server)
    missing = expected - len(group.rows)
    share = {"coverage/expected": expected, "coverage/scored": len(group.rows), "coverage/missing": missing}
    for name in ("agent_metrics", "key_metrics") if missing > 0 else ():
        metrics[name] = _object(metrics[name]) | share
    tasks = metrics["group_level_metrics"]
    for task in tasks if isinstance(tasks, list) else ():
        _cover_task(task, group.server, planned)
    return metrics


def _cover_task(task: JsonObject, server: str, planned: Mapping[tuple[str, int], int]) -> None:
    index, found = task.get(TASK_INDEX_KEY_NAME), task.get("num_rollouts")
    count = planned.get((server, index)) if isinstance(index, int) else None
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
