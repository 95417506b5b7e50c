"""The one writer of a run: results, failures, and the log of attempts, appended line by line.

Rules:
* Group commit: lines that arrive while the disk is busy go out together, with one fdatasync per file. The thread that
  writes takes the next batch itself: the event loop may be busy with replies.
* Whoever hands something over is released once it is committed: an attempt's number before its request leaves, an
  ending before the next thing is told about it.
* A row that cannot be written as JSON becomes a failure that keeps what could be kept; it never corrupts a line.
* NaN and infinities are no JSON: in a payload they are written as null, and a reward that is one is a failure.
* An I/O error, or a token that is no longer ours, fails what was waiting and what comes after; what was acknowledged
  stays. So does a file that is no longer where it was: what is written to it then is in no run.

Source: collection.md §1.6, §1.7, §4.1, §4.2, §5.4.2, §5.5.
"""

import asyncio
import os
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import BinaryIO, Final, Self

import msgspec

from rollbook.clock import Clock
from rollbook.errors import LedgerError
from rollbook.ledger.handed import Commit, Handed
from rollbook.ledger.lock_file import again_if_stale
from rollbook.ledger.paths import RunPaths
from rollbook.ledger.saved_line import SavedLine, saved_line
from rollbook.ledger.whole_file import sync_folder
from rollbook.records.codec import RunStamp
from rollbook.records.ending import Ending
from rollbook.records.identity import RolloutKey
from rollbook.records.manifest import LogEvent, Reserved, flat, log_line
from rollbook.records.outcome import NeverStarted
from rollbook.records.place import File
from rollbook.records.record import Record
from rollbook.records.task import Rollout

_AT_ONCE: Final = 1024
"""Pieces that a kernel takes in one call."""


class Durability(StrEnum):
    """When a line counts as written: on the disk, handed to the operating system, or taken into our memory."""

    SYNC = "sync"
    FLUSH = "flush"
    OFF = "off"


class _Waiting(msgspec.Struct):
    """What goes out with the next commit, and who is released after it."""

    reserved: list[tuple[RolloutKey, int]] = msgspec.field(default_factory=list)
    events: list[LogEvent] = msgspec.field(default_factory=list)
    rows: dict[File, list[bytes | memoryview]] = msgspec.field(
        default_factory=lambda: {File.FAILURES: [], File.RESULTS: []}
    )
    commit: Commit = msgspec.field(default_factory=lambda: Commit(loop=asyncio.get_running_loop()))
    are_safe: bool = False

    def __bool__(self) -> bool:
        return bool(self.reserved or self.events or any(self.rows.values()))


class _Open(msgspec.Struct, frozen=True):
    """A file that is appended to, at the path where it was opened."""

    path: Path
    handle: BinaryIO
    opened: os.stat_result

    def is_gone(self) -> bool:
        """Whether its path no longer leads to it."""
        with suppress(FileNotFoundError, NotADirectoryError):
            return not os.path.samestat(self.opened, again_if_stale(self.path.stat))
        return True


class WriterOptions(msgspec.Struct, frozen=True):
    """How a run is written. `may_write` raises when somebody else took the run over."""

    durability: Durability = Durability.SYNC
    record_omitted: bool = False
    may_write: Callable[[], None] = lambda: None


class Writer:
    """Appends to the files of one run. An asynchronous context manager."""

    def __init__(self, paths: RunPaths, stamp: RunStamp, clock: Clock, options: WriterOptions | None = None) -> None:
        self._paths = paths
        self._stamp = stamp
        self._clock = clock
        self._opened = clock.monotonic()
        self._options = options or WriterOptions()
        self._log: _Open | None = None
        self._rows: dict[File, _Open] = {}
        self._sizes: dict[File, int] = {}
        self._waiting: _Waiting
        self._taken: _Waiting | None = None
        self._adding = threading.Lock()
        self._committer: asyncio.Task[None] | None = None
        self._broken: LedgerError | None = None

    async def __aenter__(self) -> Self:
        """Open the files for appending; all exist from now on."""
        self._waiting = _Waiting()
        await asyncio.to_thread(self._open)
        return self

    async def __aexit__(self, error_type: object, *_: object) -> None:
        """Commit what is waiting, and close; cancellation waits for that and is raised after it.

        Raises:
            LedgerError: what nobody waited for (durability `off`) is not on disk.

        """
        try:
            await finished(self._committer)
        finally:
            for file in (self._log, *self._rows.values()):
                if file is not None:
                    file.handle.close()
        if error_type is None and self._options.durability is Durability.OFF:
            self._refuse_when_broken()

    @property
    def elapsed(self) -> float:
        """Seconds since the writer was made."""
        return round(self._clock.monotonic() - self._opened, 3)

    @property
    def sizes(self) -> tuple[int, int]:
        """Bytes of results and of failures that are committed."""
        return self._sizes[File.RESULTS], self._sizes[File.FAILURES]

    def reserve(self, key: RolloutKey, attempt: int) -> Handed[int]:
        """Hand out a number; once this was awaited, it cannot be handed out again.

        Raises:
            LedgerError: it is not on disk.

        """
        self._refuse_when_broken()
        with self._adding:
            self._waiting.reserved.append((key, attempt))
            return Handed(attempt, self._begun())

    def note(self, event: LogEvent) -> Handed[LogEvent]:
        """Append one event to the log.

        Raises:
            LedgerError: it is not on disk.

        """
        self._refuse_when_broken()
        with self._adding:
            self._waiting.events.append(event)
            return Handed(event, self._begun())

    def write(self, rollout: Rollout, ending: Ending, elapsed: float | None = None) -> Handed[Record]:
        """Save how an attempt of `rollout` ended, after `elapsed` seconds, and return the record of it.

        Raises:
            LedgerError: the line is not on disk.

        """
        if isinstance(ending.outcome, NeverStarted) and not self._options.record_omitted:
            return Handed(self._record(rollout, SavedLine(File.FAILURES, (), ending.outcome)), self._nothing_to_do())
        saved = saved_line(rollout, ending, self._stamp, elapsed)
        self._refuse_when_broken()
        with self._adding:
            self._waiting.rows[saved.file].extend(saved.pieces)
            return Handed(self._record(rollout, saved), self._begun())

    def _record(self, rollout: Rollout, saved: SavedLine) -> Record:
        return Record(rollout.key, rollout.attempt, saved.outcome, self._stamp.run_id, rollout.agent, rollout.server)

    def _refuse_when_broken(self) -> None:
        if self._broken is not None:
            raise self._broken

    def _begun(self) -> Commit:
        """Return the commit of what was just added; where nothing is waited for, one that has come already."""
        if self._committer is None:
            self._committer = asyncio.create_task(self._commit_until_idle())
        return self._nothing_to_do() if self._options.durability is Durability.OFF else self._waiting.commit

    def _nothing_to_do(self) -> Commit:
        done = Commit(loop=asyncio.get_running_loop())
        done.settle(None)
        return done

    async def _commit_until_idle(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            while self._waiting:
                await asyncio.to_thread(self._commit_while_any_waits, loop)
        finally:
            self._committer = None
            if self._taken is not None:
                self._break(self._taken, LedgerError(self._what_to_do("the writer was ended")))

    def _commit_while_any_waits(self, loop: asyncio.AbstractEventLoop) -> None:
        """Commit one batch after the other without asking the loop for the next: it may be busy meanwhile."""
        while (batch := self._take(loop)) is not None:
            error = self._error_of(batch)
            loop.call_soon_threadsafe(self._settle, batch, error)
            if error is not None:
                return

    def _take(self, loop: asyncio.AbstractEventLoop) -> _Waiting | None:
        with self._adding:
            if not self._waiting:
                return None
            self._taken, self._waiting = self._waiting, _Waiting(commit=Commit(loop=loop))
            return self._taken

    def _error_of(self, batch: _Waiting) -> LedgerError | None:
        """Commit `batch`, and return what kept it from being safe."""
        try:
            self._commit(batch)
        except LedgerError as error:
            return error
        except (OSError, ValueError, MemoryError, RuntimeError) as error:
            return LedgerError(self._what_to_do(error))
        return None

    def _settle(self, batch: _Waiting, error: LedgerError | None) -> None:
        """Release whoever waits for `batch`; on the loop's own thread."""
        if error is not None:
            self._break(batch, error)
            return
        if self._taken is batch:
            self._taken = None
        batch.commit.settle(None)

    def _break(self, batch: _Waiting, error: LedgerError) -> None:
        with self._adding:
            self._broken, self._taken = error, None
            waiting, self._waiting = self._waiting, _Waiting()
        batch.commit.settle(error)
        waiting.commit.settle(error)

    def _what_to_do(self, error: object) -> str:
        return (
            f"cannot write to {self._paths.output.parent}: {error}. Rollouts that were reported as done are "
            f"safe; free the disk and {self._how_to_go_on()}"
        )

    def _how_to_go_on(self) -> str:
        return "start the run again with --resume"

    def _open(self) -> None:
        self._paths.output.parent.mkdir(parents=True, exist_ok=True)
        self._log = _opened(self._paths.manifest_log)
        for file, path in ((File.FAILURES, self._paths.failures), (File.RESULTS, self._paths.output)):
            self._rows[file] = _opened(path)
            self._sizes[file] = self._rows[file].opened.st_size
        sync_folder(self._paths.output.parent)

    def _commit(self, batch: _Waiting) -> None:
        """Append one batch: the log first, because nothing may be sent or follow before it."""
        self._options.may_write()
        if self._log is not None and (batch.reserved or batch.events):
            self._append(self._log, self._log_lines(batch))
        for file, opened in self._rows.items():
            if batch.rows[file]:
                self._append(opened, batch.rows[file])
                self._sizes[file] += sum(map(len, batch.rows[file]))
        for written in (self._log, *self._rows.values()):
            if written is not None and written.is_gone():
                raise LedgerError(
                    f"{written.path} was moved, removed or replaced while this run wrote to it; nothing more is "
                    f"written. Put it back and {self._how_to_go_on()}"
                )

    def _log_lines(self, batch: _Waiting) -> list[bytes]:
        lines = [log_line(event) for event in batch.events]
        if batch.reserved:
            lines.append(log_line(Reserved(flat(batch.reserved), self.sizes, self.elapsed)))
        return lines

    def _append(self, file: _Open, pieces: Sequence[bytes | memoryview]) -> None:
        for first in range(0, len(pieces), _AT_ONCE):
            _write_all(file.handle.fileno(), pieces[first : first + _AT_ONCE])
        if self._options.durability is Durability.SYNC:
            DATA_SYNC(file.handle.fileno())


def _write_all(file: int, pieces: Sequence[bytes | memoryview]) -> None:
    """Write `pieces` one behind the other, without copying them together first."""
    while pieces:
        written = os.writev(file, pieces)
        pieces = _after(written, pieces)


def _after(written: int, pieces: Sequence[bytes | memoryview]) -> Sequence[bytes | memoryview]:
    """Return what is left of `pieces` when their first bytes are written."""
    for at, piece in enumerate(pieces):
        if written < len(piece):
            return [memoryview(piece)[written:], *pieces[at + 1 :]]
        written -= len(piece)
    return ()


DATA_SYNC: Final[Callable[[int], None]] = getattr(os, "fdatasync", os.fsync)
"""Make a file's bytes durable; where the platform has no `fdatasync`, its times as well."""


async def finished(task: asyncio.Task[None] | None) -> None:
    """Wait for `task` to end, however often the waiter is cancelled; the cancellation is raised then."""
    cancelled: asyncio.CancelledError | None = None
    while task is not None and not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        raise cancelled


def _opened(path: Path) -> _Open:
    handle = append_to(path)
    return _Open(path, handle, os.fstat(handle.fileno()))


def append_to(path: Path) -> BinaryIO:
    """Open `path` so that every write goes to its end, unbuffered."""
    return path.open("ab", buffering=0)
