"""A shard on disk: the files of one label in a folder, the lock that orders who opens and who writes it, its writer.

Rules:
* A label names the files of one shard, and none outside its folder or of another one.
* The lock is held while a shard is opened and during each write. Its file stays for good, and its line names who opened
  the shard last; nobody else writes.
* The right to write is taken before an earlier run is replaced: whoever had it never writes into files that are gone.
* An interrupted try is an omitted row or none, and never a failure of the run's history: a resume runs it again.

Source: collection.md §1.2, §11, §21.2 (16).
"""

import fcntl
import os
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from shlex import quote
from typing import Final

import msgspec

from rollbook.clock import Clock
from rollbook.errors import InputError, LedgerError, ShardTakenOverError
from rollbook.ledger.handed import Handed
from rollbook.ledger.lock_file import (
    BUSY,
    GRANTED,
    NOBODY,
    Holder,
    again_if_stale,
    ask_flock,
    holder_in,
    line_of,
    ourselves,
    refuse_stale,
    write_line,
)
from rollbook.ledger.paths import RunPaths
from rollbook.ledger.run import explained
from rollbook.ledger.saved_line import SavedLine
from rollbook.ledger.whole_file import sync_folder
from rollbook.ledger.writer import DATA_SYNC, Writer, WriterOptions, _Waiting, append_to
from rollbook.records.codec import RunStamp, encode, saved_row
from rollbook.records.ending import Ending
from rollbook.records.identity import RUN_ID_KEY, RolloutKey
from rollbook.records.manifest import Closed, LogEvent, Opened, Reserved, flat, log_line
from rollbook.records.outcome import Interrupted
from rollbook.records.place import File
from rollbook.records.record import Record
from rollbook.records.task import Rollout

RESERVED_ENDINGS: Final = ("_failures", "_materialized_inputs", "_attempts")
"""What no label ends with: a shard's output would have the name of another one's companion."""
_PREFIX: Final = "rollouts-"
_LABEL: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")

_ASK_AGAIN_S: Final = 0.01  # another one's write holds the lock for as long as the disk takes
_SETTLE_S: Final = (
    0.2  # where locks do not work, two that wrote their tokens at once both read the later one after this
)
_OPENING_ASKS: Final = 500
_WRITING_ASKS: Final = 3000
_AT_ONCE: Final = 1000


def shard_paths(folder: Path, label: str) -> RunPaths:
    """Return the files of the shard `label` in `folder`.

    Raises:
        InputError: the label is none.

    """
    if not isinstance(label, str) or not _LABEL.fullmatch(label):
        raise InputError(f"shard label {label!r} does not match [A-Za-z0-9][A-Za-z0-9_.-]*")
    if label.endswith(RESERVED_ENDINGS):
        raise InputError(f"shard label {label!r} ends like a companion of another shard: {', '.join(RESERVED_ENDINGS)}")
    return RunPaths(folder / f"{_PREFIX}{label}.jsonl", asked_by="record_output_dir")


class ShardLock:
    """The right to write one shard: had from `take` on, until somebody else takes it, or it is given up."""

    def __init__(
        self, paths: RunPaths, *, now: Callable[[], float], sleep: Callable[[float], object] | None = None
    ) -> None:
        self._path = paths.lock
        self._named = f"shard {paths.output.stem.removeprefix(_PREFIX)!r} in {paths.output.parent}"
        self._now = now
        self._sleep = sleep or threading.Event().wait
        self._token = ""
        self._locks_work = True

    @contextmanager
    def opening(self) -> Iterator[int]:
        """Keep every other process out while the block opens the shard; gives the lock file.

        Raises:
            LedgerError: somebody else works on the shard and does not let go, or the file cannot be used.

        """
        with self._held(_OPENING_ASKS) as descriptor:
            yield descriptor

    def take(self, descriptor: int) -> None:
        """Write that the shard is ours, in a lock file that is held: whoever opened it before writes no more."""
        with self._explained():
            holder = ourselves(self._now(), os.fstat(descriptor).st_ino)
            write_line(descriptor, line_of(holder))
        self._token = holder.token
        if not self._locks_work:
            self._sleep(_SETTLE_S)
            self._refuse_other(holder_in(descriptor))

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Keep every other process out while the block writes.

        Raises:
            ShardTakenOverError: somebody else opened the shard since.
            LedgerError: somebody else works on it and does not let go, or the lock file cannot be used.

        """
        with self._held(_WRITING_ASKS) as descriptor:
            self._refuse_other(holder_in(descriptor))
            yield

    def give_up(self) -> None:
        """Write that nobody writes the shard, if it is ours still."""
        token, self._token = self._token, ""
        with suppress(LedgerError), self._held(_WRITING_ASKS) as descriptor, suppress(OSError):
            if token and (found := holder_in(descriptor)) is not None and found.token == token:
                write_line(descriptor, NOBODY)

    @contextmanager
    def _held(self, asks: int) -> Iterator[int]:
        with self._explained():
            descriptor = again_if_stale(lambda: self._locked(asks))
        try:
            yield descriptor
        finally:
            with suppress(OSError):
                fcntl.flock(descriptor, fcntl.LOCK_UN)
            os.close(descriptor)

    def _locked(self, asks: int) -> int:
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            self._locks_work = self._ask(descriptor, asks) == GRANTED
            refuse_stale(descriptor, self._path)
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor

    def _ask(self, descriptor: int, asks: int) -> int:
        for _ in range(asks):
            answer = ask_flock(descriptor, fcntl.LOCK_EX)
            if answer not in BUSY:
                return answer
            if self._token:
                self._refuse_other(holder_in(descriptor))
            self._sleep(_ASK_AGAIN_S)
        holder = holder_in(descriptor) or "another process"
        raise LedgerError(f"{self._named}: {holder} works on it; wait for it, or give another record_shard")

    def _refuse_other(self, holder: Holder | None) -> None:
        if holder is None or holder.token != self._token:
            raise ShardTakenOverError(
                f"{self._named} was opened again by {holder or 'another process'}, after this call had opened it; "
                "nothing more of this call is written. Give each call a record_shard of its own"
            )

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise LedgerError(
                f"{self._path}: the lock of this shard cannot be used: {error.strerror}; see that its folder is there "
                "and can be written, or give another record_output_dir"
            ) from error


def begin_log(paths: RunPaths, opened: Opened, attempts: Iterable[tuple[RolloutKey, int]]) -> None:
    """Write that a shard's only session begins, with every attempt handed out.

    Raises:
        LedgerError: the disk refuses it.

    """
    numbers = flat(attempts)
    step = 3 * _AT_ONCE
    events: list[LogEvent] = [Reserved(numbers[at : at + step], opened.sizes) for at in range(0, len(numbers), step)]
    _log(paths, [opened, *events])


def make_files(paths: RunPaths) -> None:
    """Make the files of results and of failures, so that whoever reads the shard finds them from its first moment.

    Raises:
        LedgerError: the disk refuses it.

    """
    for path in (paths.output, paths.failures):
        with explained(paths, path):
            append_to(path).close()


def end_without_rows(paths: RunPaths, at: str) -> None:
    """Write that the only session of a shard without rows is over.

    Raises:
        LedgerError: the disk refuses it.

    """
    _log(paths, [Closed("finished", at, (0, 0), 0.0)])


def _log(paths: RunPaths, events: Sequence[LogEvent]) -> None:
    with explained(paths, paths.manifest_log), append_to(paths.manifest_log) as file:
        left = memoryview(b"".join(map(log_line, events)))
        while left:
            left = left[file.write(left) :]
        DATA_SYNC(file.fileno())
        sync_folder(paths.output.parent)


class ShardWriter(Writer):
    """Appends to the files of one shard, as the writer of a run does, while nobody else opened it."""

    def __init__(
        self, paths: RunPaths, stamp: RunStamp, clock: Clock, lock: ShardLock, *, record_omitted: bool = False
    ) -> None:
        super().__init__(paths, stamp, clock, WriterOptions(record_omitted=record_omitted))
        self._lock = lock

    def write(self, rollout: Rollout, ending: Ending, elapsed: float | None = None) -> Handed[Record]:
        """Save how an attempt ended, as a run's writer does; of one that was interrupted, an omitted row or nothing.

        Raises:
            ShardTakenOverError: somebody else opened the shard.
            LedgerError: the line is not on disk.

        """
        if not isinstance(ending.outcome, Interrupted):
            return super().write(rollout, ending, elapsed)
        if not self._options.record_omitted:
            nothing = SavedLine(File.FAILURES, (), ending.outcome)
            return Handed(self._record(rollout, nothing), self._nothing_to_do())
        _, row = saved_row(ending, rollout.stamps | {RUN_ID_KEY: self._stamp.run_id})
        saved = SavedLine(File.FAILURES, (encode(row) + b"\n",), msgspec.structs.replace(ending.outcome, omitted=True))
        self._refuse_when_broken()
        with self._adding:
            self._waiting.rows[saved.file].extend(saved.pieces)
            return Handed(self._record(rollout, saved), self._begun())

    def _open(self) -> None:
        with self._lock.writing(), explained(self._paths):
            super()._open()

    def _how_to_go_on(self) -> str:
        return (
            f"resume the shard: gym eval run --no-serve --resume --input {quote(str(self._paths.materialized_inputs))} "
            f"--output {quote(str(self._paths.output))}; or record it anew by another call"
        )

    def _commit(self, batch: _Waiting) -> None:
        with self._lock.writing():
            super()._commit(batch)
