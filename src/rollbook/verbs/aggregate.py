"""Aggregation at the end of a run: saved results → the servers' own metrics → one file.

Rules:
* Results are grouped by the environment server that produced them; each server is asked once.
* A server that cannot answer gets an entry that says so, and the others keep theirs.
* The file appears whole.

Source: collection.md §6.1, §6.3, §1.10.
"""

import asyncio
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import msgspec

from rollbook.dispatch.transport import Transport
from rollbook.ledger.paths import RunPaths
from rollbook.ledger.reader import read_lines
from rollbook.ledger.whole_file import whole_file
from rollbook.plan.targets import name_in
from rollbook.records.codec import encode
from rollbook.records.exchange import Reply, SendFailed
from rollbook.records.identity import ROLLOUT_INDEX_KEY_NAME, TASK_INDEX_KEY_NAME
from rollbook.records.json_values import JsonMapping, JsonObject
from rollbook.records.keys import (
    AGENT_REF_KEY,
    BULKY_KEYS,
    NG_ENVIRONMENT_SERVER_KEY,
    RESPONSE_KEY,
)

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


async def aggregate(paths: RunPaths, transport: Transport) -> list[JsonObject]:
    """Ask every server for the metrics of its results, write the metrics file, and return its entries."""
    groups = results_by_server(paths)
    labels = labels_of(groups)
    entries = await asyncio.gather(*(_entry(group, labels[group.server], transport) for group in groups))
    with whole_file(paths.aggregate_metrics) as file:
        file.write(msgspec.json.format(encode_list(entries), indent=2) + b"\n")
    return list(entries)


def results_by_server(paths: RunPaths) -> tuple[ServerResults, ...]:
    """Return the saved results without their bulk, grouped by the server that produced them."""
    rows: defaultdict[str, list[JsonObject]] = defaultdict(list)
    for row in _light_rows(paths):
        rows[str(row.get(NG_ENVIRONMENT_SERVER_KEY))].append(row)
    return tuple(ServerResults(server, tuple(sorted(group, key=_position))) for server, group in sorted(rows.items()))


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


def _light_rows(paths: RunPaths) -> Iterator[JsonObject]:
    for _, line in read_lines(paths.output):
        yield light_row(msgspec.json.decode(line, type=dict[str, object]))


def _position(row: JsonMapping) -> tuple[int, int]:
    task, rollout = row.get(TASK_INDEX_KEY_NAME), row.get(ROLLOUT_INDEX_KEY_NAME)
    return (task if isinstance(task, int) else 0, rollout if isinstance(rollout, int) else 0)


async def _entry(group: ServerResults, label: str, transport: Transport) -> JsonObject:
    entry: JsonObject = {AGENT_REF_KEY: {"name": label}, NG_ENVIRONMENT_SERVER_KEY: group.server}
    body = b'{"verify_responses":' + encode_list([dict(row) for row in group.rows]) + b"}"
    try:
        reply = await transport.send(group.server, "/aggregate_metrics", body)
    except SendFailed as failure:
        return entry | _failed(failure.exception_type, failure.message, failure.status)
    return entry | _metrics(reply)


def _metrics(reply: Reply) -> JsonObject:
    shown = reply.body[:_SHOWN].decode(errors="replace")
    if reply.status != _OK:
        return _failed("ClientResponseError", shown, reply.status)
    try:
        metrics = msgspec.json.decode(reply.body, type=dict[str, object])
    except msgspec.DecodeError as error:
        return _failed(type(error).__name__, f"{error}: {shown}", reply.status)
    kept = ("agent_metrics", "key_metrics", "group_level_metrics", "repeat_level_metrics")
    named: JsonObject = {key: metrics[key] for key in kept if key in metrics}
    if metrics.get("perf_summary") is not None:
        named["perf_summary"] = metrics["perf_summary"]
    return named


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
