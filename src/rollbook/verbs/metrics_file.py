"""The file of aggregate metrics, written entry by entry: those that servers answered, and those computed here.

Rules:
* The file appears whole; two spaces an indent, and the entries of tasks one after the other as they are made.
* What is computed here says so, and why: it is what a server without metrics of its own computes.

Source: collection.md §1.10, §6.4.
"""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, Final

import msgspec

from rollbook.ledger.whole_file import whole_file
from rollbook.records.codec import encode
from rollbook.records.json_values import JsonObject
from rollbook.records.keys import AGENT_REF_KEY, NG_ENVIRONMENT_SERVER_KEY
from rollbook.scoring.repeats import unequal
from rollbook.scoring.streamed import Expected, StreamedMetrics
from rollbook.scoring.streamed_metrics import Metrics
from rollbook.verbs.metrics_halves import AggregationOverError, Cut, Rows, take_halves, take_rows
from rollbook.verbs.second_process import has_another_processor
from rollbook.verbs.task_list import LAYOUT, TaskList

ERROR_KEY: Final = "aggregation_error"
LOCALLY_KEY: Final = "computed_locally"
NOTE_KEY: Final = "note"
_GROUPS: Final = "group_level_metrics"
_NEWLINE: Final = b"\n"
_AT_ENTRY: Final = b"\n  "
_HELD: Final = 1 << 16
"""After so many bytes it is looked whether it is over."""


class LocalEntry(msgspec.Struct, frozen=True):
    """An entry whose metrics are computed here, of `rows` in (task, rollout) order, some at a time.

    `expected` says how many rollouts of a task were planned, `covered` adds to the metrics what they cover. Where
    there is a `cut`, a second process may take in the rows behind it.
    """

    head: JsonObject
    rows: Callable[[], Rows]
    expected: Expected
    covered: Callable[[JsonObject], JsonObject]
    cut: Cut | None = None


def warnings_of(entries: Iterable[JsonObject]) -> list[str]:
    """Return what puts metrics in doubt, server by server.

    Its own metrics are missing, why, and whether others were computed here; its repeats cover different tasks.
    """
    return [told for entry in entries for told in _warnings(entry, where_computed=True)]


def doubts_of(entries: Iterable[JsonObject]) -> list[str]:
    """Return the same without entries that were merely computed here, which a report says of them itself."""
    return [told for entry in entries for told in _warnings(entry, where_computed=False)]


def _warnings(entry: JsonObject, *, where_computed: bool) -> Iterator[str]:
    agent, error = entry.get(AGENT_REF_KEY), entry.get(ERROR_KEY)
    name = agent.get("name") if isinstance(agent, dict) else entry.get(NG_ENVIRONMENT_SERVER_KEY)
    if error is not None:
        why = f"{error.get('type')}: {error.get('message')}" if isinstance(error, dict) else error
        here = "; those that any server computes were computed here" if entry.get(LOCALLY_KEY) else ""
        yield f"metrics of {name} could not be computed: {why}{here}"
    elif entry.get(LOCALLY_KEY) and where_computed:
        yield f"metrics of {name}: {entry.get(NOTE_KEY)}"
    repeats = entry.get("repeat_level_metrics")
    told = unequal([one for one in repeats if isinstance(one, dict)]) if isinstance(repeats, list) else None
    if told is not None:
        yield f"metrics of {name}: {told}"


def write_metrics(
    path: Path, entries: Iterable[JsonObject | LocalEntry], is_over: Callable[[], bool]
) -> list[JsonObject]:
    """Write the file, and return its entries; of those computed here without the entries of tasks.

    Raises:
        AggregationOverError: it is over before the file is whole; there is none then.
        OSError: rows cannot be read, or the disk does not take what is written.

    """
    written: list[JsonObject] = []
    with whole_file(path) as file:
        file.write(b"[")
        for entry in entries:
            file.write(b"," + _AT_ENTRY if written else _AT_ENTRY)
            if isinstance(entry, LocalEntry):
                written.append(_write_local(file, entry, is_over, path.parent))
            else:
                written.append(_write(file, entry))
        file.write(b"\n]\n" if written else b"]\n")
        _go_on(is_over)
    return written


def _go_on(is_over: Callable[[], bool]) -> None:
    if is_over():
        raise AggregationOverError


def _write(file: BinaryIO, entry: JsonObject) -> JsonObject:
    file.write(_indented(encode(entry), _AT_ENTRY))
    return entry


def _write_local(file: BinaryIO, entry: LocalEntry, is_over: Callable[[], bool], folder: Path) -> JsonObject:
    """Write the head, then each task's entry as it is made, then what only the last row completes."""
    file.write(_indented(encode(entry.head), _AT_ENTRY).removesuffix(_AT_ENTRY + b"}"))
    file.write(b"," + _AT_ENTRY + b'  "group_level_metrics": [')
    tasks = TaskList(file)
    metrics = StreamedMetrics(tasks.write, entry.expected, layout=LAYOUT)
    if entry.cut is not None and has_another_processor():
        take_halves(metrics, tasks, entry.cut, folder, is_over)
    else:
        take_rows(metrics, entry.rows(), lambda: _go_on(is_over))
    rest = entry.covered(_rest(metrics.end()))
    file.write(tasks.end() + b"," + _indented(encode(rest), _AT_ENTRY).removeprefix(b"{"))
    return entry.head | rest | {_GROUPS: []}


def some_at_a_time(rows: Iterable[bytes]) -> Iterator[list[bytes]]:
    """Yield rows, as many at a time as are held together, whatever they hold."""
    some: list[bytes] = []
    left = _HELD
    for row in rows:
        some.append(row)
        left -= len(row)
        if left < 0:
            yield some
            some, left = [], _HELD
    if some:
        yield some


def _rest(metrics: Metrics) -> JsonObject:
    rest: JsonObject = {
        "agent_metrics": metrics.agent_metrics,
        "key_metrics": metrics.key_metrics,
        "repeat_level_metrics": metrics.repeat_level_metrics,
    }
    return rest if metrics.perf_summary is None else rest | {"perf_summary": metrics.perf_summary}


def _indented(text: bytes, margin: bytes) -> bytes:
    return msgspec.json.format(text, indent=2).replace(_NEWLINE, margin)
