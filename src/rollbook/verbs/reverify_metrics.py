"""The metrics of rewards that were judged again, asked of the resources servers that judged them.

Rules:
* Results are grouped by whose they are and who judges them; each group is one request, its rows in (task, rollout)
  order and without their bulk.
* What of the plan is in an entry's mean is said in it, unless all of it is.
* A server that cannot answer gets an entry that says so, and the others keep theirs; the file appears whole.

Source: collection.md §1.10, §6.3, §9.1.
"""

import asyncio
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import BinaryIO, Final

import msgspec

from rollbook.dispatch.transport import Transport
from rollbook.errors import ConfigError
from rollbook.ledger.paths import RunPaths
from rollbook.ledger.reader import payload_at, plain_lines
from rollbook.ledger.whole_file import whole_file
from rollbook.plan.targets import name_in
from rollbook.records import keys
from rollbook.records.codec import encode
from rollbook.records.exchange import SendFailed
from rollbook.records.identity import TASK_INDEX_KEY_NAME
from rollbook.records.json_values import JsonObject, text_or_none
from rollbook.records.nesting import not_too_deep
from rollbook.records.place import File
from rollbook.records.reading import UNREADABLE
from rollbook.records.standing import Standings
from rollbook.records.table import NO_ROW
from rollbook.scoring.coverage_report import ScoreShare
from rollbook.verbs.aggregate import cover_tasks, told_instead, with_share
from rollbook.verbs.light_rows import light_row
from rollbook.verbs.result_counts import share_of
from rollbook.verbs.reverify_routes import Answerer, VerifyRoutes

SECONDS: Final = 600.0
_AT_ONCE: Final = 1 << 18
_BYTES_A_SECOND: Final = 1 << 20
_SUCCESSES: Final = range(200, 300)
_BEGIN: Final = b'{"verify_responses":['
_END: Final = b"]}"


class _Row(msgspec.Struct):
    """What a result says of whose it is."""

    agent_ref: object = None
    server: object = msgspec.field(name=keys.NG_ENVIRONMENT_SERVER_KEY, default=None)
    task_source: object = None
    task: object = msgspec.field(name=TASK_INDEX_KEY_NAME, default=None)


class _Metrics(msgspec.Struct):
    agent_metrics: dict[str, object]
    key_metrics: dict[str, object]
    group_level_metrics: list[dict[str, object]] = msgspec.field(default_factory=list)
    repeat_level_metrics: list[dict[str, object]] = msgspec.field(default_factory=list)


_ROW: Final = msgspec.json.Decoder(_Row)
_METRICS: Final = msgspec.json.Decoder(_Metrics)
_NONE: Final[JsonObject] = {
    "agent_metrics": {},
    "key_metrics": {},
    "group_level_metrics": [],
    "repeat_level_metrics": [],
}


@dataclass(slots=True)
class _Group:
    """The rows of one agent that one server judges, as a request's body on disk."""

    file: BinaryIO
    size: int = 0
    rows: int = 0
    counts: Counter[type] = field(default_factory=Counter)
    planned: int = 0

    def add(self, row: bytes, kind: type) -> None:
        """Write one row, of a result that is `Scored`, `Masked` or `Unscored`."""
        self._write((b"," if self.rows else _BEGIN) + row)
        self.rows += 1
        self.counts[kind] += 1

    @property
    def share(self) -> ScoreShare:
        """What of its plan is in the mean; where no plan says more, its results are all there was."""
        return share_of(max(self.planned, self.rows), self.counts, 0)

    def end(self) -> None:
        """Write the end."""
        self._write(_END)
        self.file.flush()

    def pieces(self) -> Iterator[bytes]:
        """Yield it from its beginning."""
        self.file.seek(0)
        while piece := self.file.read(_AT_ONCE):
            yield piece

    def _write(self, text: bytes) -> None:
        self.file.write(text)
        self.size += len(text)


_Key = tuple[str, str]
"""Whose results, and who judges them."""


@dataclass(slots=True)
class JudgedResults:
    """The results of a run that stand, by (whose they are, who judges them)."""

    paths: RunPaths
    standings: Standings
    routes: VerifyRoutes
    groups: dict[_Key, _Group] = field(default_factory=dict)

    def read(self, holding: ExitStack) -> None:
        """Write every group's body; `holding` closes them.

        Raises:
            OSError, LedgerError: results cannot be read, or the disk does not take the bodies.
            ConfigError: a result that nobody judges.

        """
        table, rows = self.standings.table, self.standings.columns.row
        for _, seat in self.standings.in_order():
            place = None if rows[seat] == NO_ROW else table.place(rows[seat])
            if place is not None and place.file is File.RESULTS:
                line = payload_at(self.paths.output, place)
                group = self._group_of(_ROW.decode(line), holding)
                group.add(light_row(line), type(table.outcomes[table.kinds[rows[seat]]]))
        for group in self.groups.values():
            group.end()
        for key, _ in self._planned():
            self.groups[key].planned += 1

    def planned_by_task(self, wanted: _Key) -> Counter[int]:
        """Return how many rollouts of each task were planned for a group."""
        return Counter(task for key, task in self._planned() if key == wanted and isinstance(task, int))

    def _planned(self) -> Iterator[tuple[_Key, object]]:
        """Yield the group and the task of each planned rollout whose answers some group would hold."""
        for _, _, _, line in plain_lines(self.paths.materialized_inputs):
            try:
                row = _ROW.decode(line)
                key = self._key_of(row)
            except (ConfigError, *UNREADABLE):
                continue
            if key in self.groups:
                yield key, row.task

    def _key_of(self, row: _Row) -> _Key:
        who = Answerer(text_or_none(row.task_source), text_or_none(row.server), name_in(row.agent_ref))
        server = self.routes.server_for(who)
        return who.agent or who.environment or server, server

    def _group_of(self, row: _Row, holding: ExitStack) -> _Group:
        key = self._key_of(row)
        if key not in self.groups:
            file = tempfile.TemporaryFile(dir=self.paths.output.parent)  # noqa: SIM115  `holding` closes it
            self.groups[key] = _Group(holding.enter_context(file))
        return self.groups[key]


async def judged_metrics(results: JudgedResults, transport: Transport, seconds: float = SECONDS) -> list[JsonObject]:
    """Ask every server for the metrics of what it judged, write the metrics file, and return its entries.

    Raises:
        OSError: results cannot be read, or the disk does not take what is written.

    """
    with ExitStack() as holding:
        await asyncio.to_thread(results.read, holding)
        groups = sorted(results.groups.items())
        asked = (_metrics(server, group, transport, seconds) for (_, server), group in groups)
        answers = await asyncio.gather(*asked)
    entries: list[JsonObject] = [
        {keys.AGENT_REF_KEY: {"name": _label(key, results)}} | _covered(answer, key, results)
        for (key, _), answer in zip(groups, answers, strict=True)
    ]
    with whole_file(results.paths.aggregate_metrics) as file:
        file.write(msgspec.json.format(b"[" + b",".join(map(encode, entries)) + b"]", indent=2) + b"\n")
    return entries


def _covered(metrics: JsonObject, key: _Key, results: JudgedResults) -> JsonObject:
    """Return a group's metrics with what of its plan is in them."""
    share, tasks = results.groups[key].share, metrics["group_level_metrics"]
    if "aggregation_error" in metrics or share.is_whole:
        return metrics
    if isinstance(tasks, list):
        cover_tasks(tasks, results.planned_by_task(key).get)
    return with_share(metrics, share)


def _label(key: _Key, results: JudgedResults) -> str:
    """Return what an entry is called: whose results they are where no other server judges some of them."""
    name, server = key
    return name if sum(other == name for other, _ in results.groups) == 1 else server


async def _metrics(server: str, group: _Group, transport: Transport, seconds: float) -> JsonObject:
    try:
        async with asyncio.timeout(seconds + group.size / _BYTES_A_SECOND):
            reply = await transport.send(server, "/aggregate_metrics", group)
    except SendFailed as failure:
        return _failed(failure.exception_type, failure.message, failure.status)
    except TimeoutError:
        return _failed("TimeoutError", f"no reply of {server} within {seconds:.0f} s", None)
    if reply.status not in _SUCCESSES:
        return _failed("ClientResponseError", told_instead(reply), reply.status)
    try:
        metrics: JsonObject = msgspec.to_builtins(_METRICS.decode(not_too_deep(reply.body)))
    except UNREADABLE as error:
        return _failed(type(error).__name__, told_instead(reply, error), reply.status)
    return metrics


def _failed(exception_type: str, message: str, status: int | None) -> JsonObject:
    error: JsonObject = {"type": exception_type, "message": message}
    return _NONE | {"aggregation_error": error | ({} if status is None else {"http_status": status})}
