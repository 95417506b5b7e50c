"""The manifest and its log on disk.

Rules:
* The manifest is replaced whole; the log is only ever appended to.
* An unfinished last line of the log was never acknowledged and is no event; any other fault is damage.
* A file that is shorter than the log says it was is damage: what was lost is never silently run again.

Source: collection.md §1.8; cases RC-08, RC-20.
"""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from io import BytesIO
from itertools import chain
from pathlib import Path
from typing import Final

import msgspec

from rollbook.errors import LedgerError
from rollbook.ledger.paths import RunPaths
from rollbook.ledger.reader import OnDamage, plain_blocks, raise_damage, scan
from rollbook.ledger.tail import whole_bytes
from rollbook.ledger.whole_file import whole_file
from rollbook.records.bulk import fold_reservations
from rollbook.records.manifest import (
    Closed,
    Cut,
    LogEvent,
    Opened,
    Refused,
    Reserved,
    RunManifest,
    Stopped,
    manifest_text,
    read_log_event,
    read_log_events,
    read_manifest_text,
    unflat,
)
from rollbook.records.place import File
from rollbook.records.reading import UNREADABLE
from rollbook.records.standing import Standings

_SIZED: Final = (File.RESULTS, File.FAILURES)
_OPEN: Final = "open"
_WITHOUT_IT: Final = "with +allow_unsafe_resume=true a run is taken up by its rows and its log"


def read_manifest(path: Path) -> RunManifest | None:
    """Return the manifest at `path`, or None when there is no such file.

    Raises:
        LedgerError: it is no file, empty, damaged, or of a version that is not known.

    """
    if not path.exists():
        return None
    if not path.is_file():
        raise LedgerError(
            f"{path}: no manifest but a folder, or no regular file; restore the manifest, or move it away"
        )
    try:
        return read_manifest_text(path.read_bytes())
    except UNREADABLE as error:
        raise LedgerError(
            f"{path}: not a manifest that this version reads: {error}. Restore it; {_WITHOUT_IT}"
        ) from None


def write_manifest(path: Path, manifest: RunManifest) -> None:
    """Replace the manifest at `path`."""
    with whole_file(path) as file:
        file.write(manifest_text(manifest))


class SessionLog(msgspec.Struct):
    """What the log says of one session; `active` are seconds that it is known to have lasted."""

    number: int
    opened_at: str
    closed_at: str | None = None
    how: str | None = None
    active: float = 0.0
    reserved: int = 0


class LogSummary(msgspec.Struct):
    """What the log says of the run as a whole; `sizes` is what each file had at least."""

    run_id: str | None = None
    sessions: list[SessionLog] = msgspec.field(default_factory=list)
    sizes: dict[File, int] = msgspec.field(default_factory=lambda: {File.RESULTS: 0, File.FAILURES: 0})

    @property
    def session(self) -> int:
        """The number of the latest session, 0 when there was none."""
        return self.sessions[-1].number if self.sessions else 0


def read_log(path: Path, on_damage: OnDamage = raise_damage) -> Iterator[tuple[int, LogEvent]]:
    """Yield (line number, event) for each event of the log.

    Raises:
        LedgerError: a committed line is no event; names file and line.

    """
    for line in scan(path):
        yield from _read(path, line.number, line.text, on_damage)


def _read(path: Path, number: int, text: bytes, on_damage: OnDamage) -> Iterator[tuple[int, LogEvent]]:
    try:
        event = read_log_event(text)
    except UNREADABLE as error:
        on_damage(LedgerError(f"{path}:{number}: not an event of a run's log: {error}"))
    else:
        yield number, event


def fold_log(path: Path, standings: Standings, on_damage: OnDamage = raise_damage) -> LogSummary:
    """Fold the log at `path` into `standings`, and return what it says of sessions and files."""
    summary = LogSummary()
    for block in plain_blocks(path):
        try:
            events = read_log_events(block.texts)
        except UNREADABLE:
            lines = ((number, text.rstrip()) for number, text in enumerate(block.texts, block.number))
            read = (_read(path, number, text, on_damage) for number, text in lines if text)
            events = [event for _, event in chain.from_iterable(read)]
        for event in events:
            _fold(event, standings, summary)
    return summary


def _fold(event: LogEvent, standings: Standings, summary: LogSummary) -> None:
    match event:
        case Reserved():
            _reserve(event, standings, summary)
        case Refused(a=attempts):
            for key, attempt in unflat(attempts):
                standings.refused(key, attempt)
        case Cut(a=attempts):
            for key, attempt in unflat(attempts):
                standings.cut(key, attempt)
        case Stopped(why=why):
            standings.stopped(why)
        case Opened():
            _open(event, summary)
        case Closed():
            _close(event, summary)


def _reserve(event: Reserved, standings: Standings, summary: LogSummary) -> None:
    _grow(summary, event.sizes)
    fold_reservations(event.a, standings, summary.session)
    if summary.sessions:
        summary.sessions[-1].reserved += len(event.a) // 3
        summary.sessions[-1].active = event.after


def _open(event: Opened, summary: LogSummary) -> None:
    """Note a session; what it found in the files when it began is what they hold from now on."""
    summary.run_id = summary.run_id or event.run_id
    summary.sizes = dict(zip(_SIZED, event.sizes, strict=True))
    summary.sessions.append(SessionLog(event.session, event.at))


def _close(event: Closed, summary: LogSummary) -> None:
    _grow(summary, event.sizes)
    if summary.sessions:
        session = summary.sessions[-1]
        session.closed_at, session.how, session.active = event.at, event.how, event.after


def _grow(summary: LogSummary, sizes: tuple[int, int]) -> None:
    for file, size in zip(_SIZED, sizes, strict=True):
        summary.sizes[file] = max(summary.sizes[file], size)


class _Sizes(msgspec.Struct):
    """What a line of the log says of files, whatever else it says."""

    t: str
    sizes: tuple[int, int] | None = None


_SIZES: Final = msgspec.json.Decoder(_Sizes)


def committed_sizes(log: Path) -> Mapping[File, int]:
    """Return what each file has at least, by a log that nobody looked at yet: lines that are no events say nothing."""
    summary = LogSummary()
    with log.open("rb") if log.exists() else BytesIO() as file:
        for line in file:
            with suppress(*UNREADABLE):
                event = _SIZES.decode(line)
                if event.sizes is not None and event.t == _OPEN:
                    summary.sizes = dict(zip(_SIZED, event.sizes, strict=True))
                elif event.sizes is not None:
                    _grow(summary, event.sizes)
    return summary.sizes


def shortened(paths: RunPaths, sizes: Mapping[File, int]) -> Iterator[LedgerError]:
    """Yield one error for each file that has lost bytes of those that were committed: the first ones, in `sizes`.

    A newline at the end is no loss: what copies a file may drop it, and a resume completes the line.
    """
    for path, file in ((paths.output, File.RESULTS), (paths.failures, File.FAILURES)):
        whole = whole_bytes(path)
        if whole < sizes[file]:
            size = path.stat().st_size if path.exists() else 0
            yield LedgerError(
                f"{path}: {sizes[file]} bytes were written and {size} are left, {whole} of them in whole lines; "
                "rollouts that were paid for are missing. Restore the file; to run again what is lost, resume with "
                "+allow_unsafe_resume=true"
            )
