"""An inspect_ai log, an archive (`.eval`) or one JSON document, sample by sample.

Rules:
* Samples come in the order of the dataset, the tries of one together; of an archive one entry is held at a time.
* What the log says was planned and holds no sample of is a rollout without an ending.
* A log of an evaluation that did not end is read as far as it goes.

Source: inspect_ai 0.3, log/_log.py, log/_recorders/eval.py; the forms in tests/data/inspect.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Final

import msgspec

from rollbook.inputs.inspect_log_archive import Archive
from rollbook.inputs.inspect_log_messages import text
from rollbook.inputs.inspect_log_sample import MOST_EPOCHS, rollout_of, row_of
from rollbook.inputs.inspect_log_scores import Scorer
from rollbook.inputs.logged import ForeignLog, LogError, LoggedRollout, LogHead
from rollbook.records.json_values import JsonObject, mapping_or_empty
from rollbook.records.nesting import not_too_deep
from rollbook.records.reading import UNREADABLE

FORM: Final = "inspect_ai"
MOST_JSON_BYTES: Final = 4 << 30
"""How large a log may be that is one JSON document; archives are read entry by entry."""
MOST_PLANNED: Final = 10_000_000

_ZIP: Final = b"PK"
_HEADERS: Final = ("header.json", "_journal/start.json")
_SAMPLE_NAME: Final = re.compile(r"samples/(.*)_epoch_([0-9]{1,7})\.json", re.DOTALL)
_LIKE_A_LOG: Final = re.compile(rb'\s*\{\s*"(?:version|status|eval)"')
_NOT_JSON: Final = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|-?\b(?:NaN|Infinity)\b', re.DOTALL)
_TASK: Final = "inspect_ai"


@dataclass(frozen=True, slots=True)
class _Entry:
    """Where one sample lies: its id and epoch as the place names them, what the place is called, and how it is read."""

    id: str
    epoch: int
    place: str
    read: Callable[[], bytes]


class _Document(msgspec.Struct):
    eval: msgspec.Raw
    stats: msgspec.Raw = msgspec.Raw(b"null")
    samples: list[msgspec.Raw] | None = None


class _Who(msgspec.Struct):
    id: int | str
    epoch: int = 1


def is_log(path: Path, head: bytes) -> bool:
    """Whether the file at `path`, which begins with `head`, is a log of inspect_ai."""
    if head.startswith(_ZIP):
        try:
            return any(name in Archive(path) for name in _HEADERS)
        except LogError:
            return False
    return bool(_LIKE_A_LOG.match(head)) and b'"eval"' in head


def opened(path: Path) -> ForeignLog:
    """Return the log at `path`; of its samples nothing is read yet.

    Raises:
        LogError: it is damaged, or no log.

    """
    with path.open("rb") as file:
        is_archive = file.read(len(_ZIP)) == _ZIP
    return _archived(path) if is_archive else _written_out(path)


def _archived(path: Path) -> "InspectLog":
    archive = Archive(path)
    name = next((name for name in _HEADERS if name in archive), None)
    if name is None:
        raise LogError(f"{path}: an archive without {_HEADERS[0]}: no log of inspect_ai")
    header = mapping_or_empty(_decoded(archive.read(name), f"{path}: {name}"))
    named = ((_SAMPLE_NAME.fullmatch(name), name) for name in archive.names)
    entries = [_Entry(match[1], int(match[2]), name, partial(archive.read, name)) for match, name in named if match]
    return InspectLog(_head(path, header), _planned(header), entries)


def _written_out(path: Path) -> "InspectLog":
    if path.stat().st_size > MOST_JSON_BYTES:
        raise LogError(f"{path}: more than {MOST_JSON_BYTES >> 30} GiB in one document; give the log as .eval")
    document = _decoded(path.read_bytes(), str(path), _Document, whole=True)
    assert isinstance(document, _Document)  # noqa: S101  it was decoded as one
    header = {
        "eval": _decoded(bytes(document.eval), f"{path}: eval"),
        "stats": _decoded(bytes(document.stats), f"{path}: stats"),
    }
    entries = [_entry(path, at, raw) for at, raw in enumerate(document.samples or ())]
    return InspectLog(_head(path, header), _planned(header), entries)


def _entry(path: Path, at: int, raw: msgspec.Raw) -> _Entry:
    place = f"samples[{at}]"
    who = _decoded(bytes(raw), f"{path}: {place}", _Who)
    assert isinstance(who, _Who)  # noqa: S101  it was decoded as one
    return _Entry(str(who.id), who.epoch, place, partial(bytes, raw))


def _head(path: Path, header: Mapping[str, object]) -> LogHead:
    evaluation, stats = mapping_or_empty(header.get("eval")), mapping_or_empty(header.get("stats"))
    created = text(evaluation.get("created"))
    closed = text(stats.get("completed_at")) or created
    return LogHead(
        path=path,
        form=FORM,
        task=text(evaluation.get("task_display_name")) or text(evaluation.get("task")) or _TASK,
        model=text(evaluation.get("model")) or None,
        created_at=created,
        closed_at=closed,
        seconds=_seconds(text(stats.get("started_at")) or created, closed),
    )


def _seconds(begun: str, ended: str) -> float:
    try:
        return max(0.0, (datetime.fromisoformat(ended) - datetime.fromisoformat(begun)).total_seconds())
    except (ValueError, TypeError):
        return 0.0


def _planned(header: Mapping[str, object]) -> tuple[tuple[str, ...], int]:
    """Return the ids of the samples that were to be evaluated, and how often each."""
    evaluation = mapping_or_empty(header.get("eval"))
    ids = mapping_or_empty(evaluation.get("dataset")).get("sample_ids")
    epochs = mapping_or_empty(evaluation.get("config")).get("epochs")
    named = tuple(str(one) for one in ids if isinstance(one, int | str)) if isinstance(ids, list) else ()
    often = epochs if type(epochs) is int and 0 < epochs <= MOST_EPOCHS else 1
    return (named, often) if len(named) * often <= MOST_PLANNED else ((), 1)


class InspectLog:
    """A log that was opened."""

    def __init__(self, head: LogHead, planned: tuple[tuple[str, ...], int], entries: Sequence[_Entry]) -> None:
        self.head = head
        ids, self._epochs = planned
        self._planned = frozenset(ids)
        self._by_id: dict[str, list[_Entry]] = {name: [] for name in ids}
        for entry in entries:
            self._by_id.setdefault(entry.id, []).append(entry)

    def rollouts(self, scorer: str | None) -> Iterator[LoggedRollout]:
        """Yield what the log says of each rollout, the tries of a sample together.

        Raises:
            LogError: something in it cannot be read, or several scorers judged it and none was named.

        """
        rewarding = Scorer(str(self.head.path), scorer)
        for name, entries in self._by_id.items():
            yield from self._of_sample(name, entries, rewarding)
        rewarding.check()

    def _of_sample(self, name: str, entries: list[_Entry], scorer: Scorer) -> Iterator[LoggedRollout]:
        told: LoggedRollout | None = None
        missing = set(range(self._epochs)) if name in self._planned else set()
        for entry in sorted(entries, key=lambda entry: entry.epoch):
            told = self._read(entry, scorer)
            missing.discard(told.repeat)
            yield told
        row = told.row if told else row_of({"id": name}, self.head.task, [])
        content: JsonObject = told.content if told else {"id": name}
        for repeat in sorted(missing):
            yield LoggedRollout(content, row, repeat, None)

    def _read(self, entry: _Entry, scorer: Scorer) -> LoggedRollout:
        place = f"{self.head.path}: {entry.place}"
        sample = _decoded(entry.read(), place)
        if not isinstance(sample, dict):
            raise LogError(f"{place}: no sample but another value")
        try:
            return rollout_of(sample, self.head.task, scorer)
        except ValueError as error:
            raise LogError(f"{place}: {error}") from None


def _decoded(data: bytes, place: str, kind: object = None, *, whole: bool = False) -> object:
    """Decode JSON in which numbers may also be NaN or infinite, as inspect writes them; those come out as null."""
    try:
        try:
            return _decode(data if whole else not_too_deep(data), kind)
        except msgspec.DecodeError:
            if b"NaN" not in data and b"Infinity" not in data:
                raise
            return _decode(not_too_deep(_NOT_JSON.sub(_kept, data)), kind)
    except UNREADABLE as error:
        raise LogError(f"{place}: not read as a log of inspect_ai: {error}") from None


def _decode(data: bytes, kind: object) -> object:
    return msgspec.json.decode(data) if kind is None else msgspec.json.decode(data, type=kind)


def _kept(match: re.Match[bytes]) -> bytes:
    return match[0] if match[0].startswith(b'"') else b"null"
