"""One run on disk: claimed by one process, fresh or continued.

Rules:
* An output that holds something already is never touched unless a person said to replace it or to go on with it.
* Earlier files are replaced only after the new plan turned out to be runnable.
* One writer at a time, held by a lock beside the output; no two runs write one file.

Source: collection.md §1.6, §5.1, §13 (10).
"""

import errno
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from glob import escape
from pathlib import Path
from typing import Final

import msgspec

from rollbook.clock import Clock
from rollbook.errors import DamagedRunError, LedgerError, OutputExistsError
from rollbook.ledger.digests import HashedFile
from rollbook.ledger.lock import RunLock
from rollbook.ledger.manifest_store import committed_sizes, shortened
from rollbook.ledger.materialized import write_rows
from rollbook.ledger.ownership import refuse_files_of_others
from rollbook.ledger.paths import RunPaths
from rollbook.ledger.places import refuse_no_file
from rollbook.ledger.tail import TailRepair, keep_torn, repair_tail, torn_of
from rollbook.ledger.whole_file import WholeFile, made_aside, sync_folder
from rollbook.ledger.writer import Durability, Writer, WriterOptions
from rollbook.records.codec import RunStamp
from rollbook.records.json_values import JsonObject
from rollbook.records.manifest import PlanDigest, RunManifest, manifest_text

_OF_A_FULL_DISK: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})


class Draft(msgspec.Struct, frozen=True):
    """A plan that is written aside, and not yet in force."""

    paths: RunPaths
    making: WholeFile
    sha256: str
    bytes: int
    rollouts: int

    @property
    def digest(self) -> PlanDigest:
        """What the manifest says of this plan."""
        return PlanDigest(sha256=self.sha256, bytes=self.bytes, rollouts=self.rollouts)

    def commit(self, manifest: RunManifest) -> None:
        """Put the plan and its manifest in force, then remove what an earlier run left.

        Raises:
            LedgerError: the plan could not be written; the earlier run is as it was.

        """
        with explained(self.paths, self.paths.manifest), made_aside(self.paths.manifest) as described:
            described.file.write(manifest_text(manifest))
            described.seal()
            with explained(self.paths, self.paths.materialized_inputs):
                self.making.seal()
            try:
                _move_aside(self.paths)
                self.making.place()
                described.place()
            finally:
                settle_asides(self.paths)


class Run:
    """The files of a run and what may be done with them. `take_over`: push aside a holder that cannot be asked."""

    def __init__(
        self,
        paths: RunPaths,
        clock: Clock,
        durability: Durability = Durability.SYNC,
        *,
        record_omitted: bool = False,
        take_over: bool = False,
    ) -> None:
        self.paths, self.clock, self.durability, self.record_omitted = paths, clock, durability, record_omitted
        self.lock = RunLock(paths.lock, now=clock.now, take_over=take_over)

    @contextmanager
    def claimed(self) -> Iterator[None]:
        """Hold the run for as long as the block lasts.

        Raises:
            LedgerError: another process holds it, or another run writes one of its files.

        """
        self.refuse_what_is_no_file()
        refuse_files_of_others(self.paths.output)
        made = _missing_folders(self.paths.output.parent)
        self.make_folder()
        with explained(self.paths):
            self.lock.acquire()
        try:
            with explained(self.paths):
                self.sweep()
            yield
        finally:
            if not files_of(self.paths):
                self.paths.lock.unlink(missing_ok=True)
            self.lock.release()
            _remove_empty(made)

    def make_folder(self) -> None:
        """Make the folder that the run lies in."""
        with explained(self.paths):
            self.paths.output.parent.mkdir(parents=True, exist_ok=True)

    def sweep(self) -> None:
        """Remove what a dead process was still writing aside, and settle what it had moved aside."""
        settle_asides(self.paths)
        for path in self.paths.every_file:
            for aside in path.parent.glob(f".{escape(path.name)}.*.tmp"):
                aside.unlink(missing_ok=True)

    def refuse_what_is_no_file(self) -> None:
        """Refuse an output of which a file is a folder, or lies in one that is none."""
        refuse_no_file(self.paths.output, self.paths.asked_by)
        for path in self.paths.every_file:
            if path.exists() and not path.is_file():
                raise LedgerError(f"{path} is no regular file and is left as it is; give another {self.paths.asked_by}")

    def refuse_existing(self, *, resuming: bool = False) -> None:
        """Raise when the output holds an earlier run; one that a resume asks for has lost its plan."""
        existing = self.paths.existing()
        if resuming and (self.paths.manifest.exists() or self.paths.manifest_log.exists()):
            raise DamagedRunError(
                f"{self.paths.materialized_inputs}: the run's plan is missing; restore it, or start a new run with "
                "another --output"
            )
        if existing and not self.paths.materialized_inputs.exists():
            raise OutputExistsError(
                f"{existing[0]} exists already and cannot be resumed: its plan {self.paths.materialized_inputs} is "
                "missing. Restore the plan, give another --output, or replace the run with --overwrite"
            )
        if existing:
            raise OutputExistsError(
                f"{existing[0]} exists already. Go on with that run with --resume, replace it with --overwrite, "
                "or give another --output"
            )

    @contextmanager
    def drafted(self, rows: Iterable[JsonObject]) -> Iterator[Draft]:
        """Write a fresh plan aside; it takes the place of what an earlier run left once the draft is committed.

        Whatever `rows` or the block raises before that leaves the disk as it was.
        """
        with explained(self.paths):
            making = WholeFile(self.paths.materialized_inputs)
        try:
            hashed = HashedFile(making.file)
            rollouts = write_rows(_Explained(hashed, self.paths), rows)
            with explained(self.paths, self.paths.materialized_inputs):
                making.file.flush()
            yield Draft(self.paths, making, hashed.sha256, hashed.size, rollouts)
        finally:
            making.discard()

    def lost(self) -> tuple[LedgerError, ...]:
        """Return one error a file that lost bytes which the log says were committed; asked before repairs."""
        return tuple(shortened(self.paths, committed_sizes(self.paths.manifest_log)))

    def repair(self) -> tuple[TailRepair, ...]:
        """Mend the ends of the appended files after a writer died."""
        appended = (self.paths.output, self.paths.failures, self.paths.manifest_log)
        return tuple(filter(None, map(self.mended, appended)))

    def mended(self, path: Path) -> TailRepair | None:
        """Mend the end of one file."""
        with explained(self.paths, torn_of(path)):
            return repair_tail(path)

    def cut_plan(self, size: int) -> TailRepair | None:
        """Move aside what lies behind the first `size` bytes of the plan: a writer died before they were in force."""
        with explained(self.paths, torn_of(self.paths.materialized_inputs)):
            return keep_torn(self.paths.materialized_inputs, size)

    def forget_metrics(self) -> None:
        """Remove metrics and counts that what is collected next makes outdated."""
        self.paths.aggregate_metrics.unlink(missing_ok=True)
        self.paths.coverage.unlink(missing_ok=True)

    def writer(self, stamp: RunStamp) -> Writer:
        """Return the writer of this run."""
        options = WriterOptions(self.durability, self.record_omitted, self.lock.check)
        return Writer(self.paths, stamp, self.clock, options)

    @property
    def can_continue(self) -> bool:
        """Whether a plan is there, and what a session made of it."""
        made = (self.paths.output, self.paths.manifest, self.paths.manifest_log)
        return self.paths.materialized_inputs.exists() and any(path.exists() for path in made)


def _missing_folders(folder: Path) -> list[Path]:
    """Return the folders that making `folder` will make, the deepest first."""
    return [path for path in (folder, *folder.parents) if not path.exists()]


def _remove_empty(folders: list[Path]) -> None:
    with suppress(OSError):
        for folder in folders:
            folder.rmdir()


def _move_aside(paths: RunPaths) -> None:
    """Move an earlier run aside, its manifest first: as long as no manifest is in place, it can come back."""
    for path in paths.every_file:
        if path.exists():
            path.replace(_aside(path))
    sync_folder(paths.output.parent)


def settle_asides(paths: RunPaths) -> None:
    """Remove an earlier run that was moved aside once another one is in force, or put it back where none is."""
    in_force = paths.manifest.exists()
    for path in reversed(paths.every_file):
        if in_force:
            _aside(path).unlink(missing_ok=True)
        elif _aside(path).exists():
            _aside(path).replace(path)


def _aside(path: Path) -> Path:
    return path.with_name(f".{path.name}.replaced")


@contextmanager
def explained(paths: RunPaths, path: Path | None = None) -> Iterator[None]:
    """Turn what the disk refuses inside the block, which writes `path`, into a `LedgerError` that says what to do."""
    try:
        yield
    except OSError as error:
        raise _refused(error, paths, path or paths.output) from error


def _refused(error: OSError, paths: RunPaths, path: Path) -> LedgerError:
    what_helps = "Free the disk, or give" if error.errno in _OF_A_FULL_DISK else "Give"
    named = error.filename or path
    elsewhere = f"another {paths.asked_by} that can be written"
    return LedgerError(f"cannot write {named}: {error.strerror or error}. {what_helps} {elsewhere}")


class _Explained(msgspec.Struct, frozen=True):
    """Writes a plan; what comes of the rows that are written is not its concern."""

    file: HashedFile
    paths: RunPaths

    def write(self, data: bytes) -> int:
        """Append `data`.

        Raises:
            LedgerError: the disk refuses it.

        """
        try:
            return self.file.write(data)
        except OSError as error:
            raise _refused(error, self.paths, self.paths.materialized_inputs) from error


def files_of(paths: RunPaths) -> dict[str, Path]:
    """Return what a person may want to open, by what it is."""
    named = {
        "rollouts": paths.output,
        "failures": paths.failures,
        "materialized inputs": paths.materialized_inputs,
        "aggregate metrics": paths.aggregate_metrics,
        "coverage": paths.coverage,
        "manifest": paths.manifest,
    }
    return {name: path for name, path in named.items() if path.exists()}
