"""One run on disk: claimed by one process, fresh or continued.

Rules:
* An output that holds something already is never touched unless a person said to replace it or to go on with it.
* Earlier files are replaced only after the new plan turned out to be runnable.
* One writer at a time, held by a lock beside the output.

Source: collection.md §1.6, §5.1, §13 (10).
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout

from rollbook.errors import LedgerError, OutputExistsError
from rollbook.ledger.materialized import write_rows
from rollbook.ledger.paths import RunPaths
from rollbook.ledger.reader import read_lines, read_records
from rollbook.ledger.tail import TailRepair, repair_tail
from rollbook.ledger.whole_file import WholeFile
from rollbook.ledger.writer import Durability, Writer
from rollbook.records.json_values import JsonObject
from rollbook.records.standing import Standings


@dataclass(frozen=True, slots=True)
class Draft:
    """A plan that is written aside, and not yet in force."""

    paths: RunPaths
    making: WholeFile
    rollouts: int

    def commit(self) -> None:
        """Put the plan in force, then remove what an earlier run left.

        Raises:
            LedgerError: the plan could not be written; the earlier run is as it was.

        """
        with explained(self.paths):
            self.making.seal()
            aside = [_moved_aside(path) for path in self._outdated() if path.exists()]
            self.making.place()
            for path in aside:
                path.unlink()

    def _outdated(self) -> tuple[Path, ...]:
        return (self.paths.output, self.paths.failures, self.paths.aggregate_metrics)


@dataclass(frozen=True, slots=True)
class Run:
    """The files of a run and what may be done with them."""

    paths: RunPaths
    durability: Durability = Durability.SYNC
    record_omitted: bool = False

    @contextmanager
    def claimed(self) -> Iterator[None]:
        """Hold the run for as long as the block lasts.

        Raises:
            LedgerError: another process holds it.

        """
        self._refuse_what_is_no_file()
        lock, made = FileLock(self.paths.lock), _missing_folders(self.paths.output.parent)
        with explained(self.paths):
            self.paths.output.parent.mkdir(parents=True, exist_ok=True)
            try:
                lock.acquire(timeout=0)
            except Timeout:
                raise LedgerError(
                    f"{self.paths.output}: another process is writing this run (lock {self.paths.lock}); "
                    "wait for it, or give another --output"
                ) from None
        try:
            yield
        finally:
            if not files_of(self.paths):
                self.paths.lock.unlink(missing_ok=True)
            lock.release()
            _remove_empty(made)

    def _refuse_what_is_no_file(self) -> None:
        if self.paths.output.is_dir():
            raise LedgerError(
                f"{self.paths.output} is a folder; give a file name, for example {self.paths.output}/r.jsonl"
            )
        for path in self.paths.every_file:
            if path.exists() and not path.is_file():
                raise LedgerError(f"{path} is no regular file and is left as it is; give another --output")

    def refuse_existing(self) -> None:
        """Raise when the output holds an earlier run."""
        existing = self.paths.existing()
        if existing and not self.paths.materialized_inputs.exists():
            raise OutputExistsError(
                f"{existing[0]} exists already and cannot be resumed: its plan {self.paths.materialized_inputs} is "
                "missing. Replace it with --overwrite, or give another --output"
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
            yield Draft(self.paths, making, write_rows(making.file, rows))
        finally:
            making.discard()

    def repair(self) -> tuple[TailRepair, ...]:
        """Mend the ends of both files after a writer died."""
        return tuple(filter(None, (repair_tail(path) for path in (self.paths.output, self.paths.failures))))

    def standings(self) -> Standings:
        """Fold every record that is on disk."""
        standings = Standings()
        for record in read_records(self.paths):
            standings.add(record)
        return standings

    def numbered_plan(self) -> Iterator[tuple[int, bytes]]:
        """Yield (line number, line) of the plan, in plan order."""
        return read_lines(self.paths.materialized_inputs)

    def planned_lines(self) -> Iterator[bytes]:
        """Yield the lines of the plan, in plan order."""
        return (line for _, line in self.numbered_plan())

    def forget_metrics(self) -> None:
        """Remove metrics that what is collected next makes outdated."""
        self.paths.aggregate_metrics.unlink(missing_ok=True)

    def writer(self) -> Writer:
        """Return the writer of this run."""
        return Writer(self.paths, durability=self.durability, record_omitted=self.record_omitted)

    @property
    def can_continue(self) -> bool:
        """Whether a plan and results of an earlier session are there."""
        return self.paths.materialized_inputs.exists() and self.paths.output.exists()


def _missing_folders(folder: Path) -> list[Path]:
    """Return the folders that making `folder` will make, the deepest first."""
    return [path for path in (folder, *folder.parents) if not path.exists()]


def _remove_empty(folders: list[Path]) -> None:
    with suppress(OSError):
        for folder in folders:
            folder.rmdir()


def _moved_aside(path: Path) -> Path:
    aside = path.with_name(f".{path.name}.replaced")
    path.replace(aside)
    return aside


@contextmanager
def explained(paths: RunPaths) -> Iterator[None]:
    """Turn what the disk refuses inside the block into a `LedgerError` that says what to do."""
    try:
        yield
    except OSError as error:
        raise LedgerError(
            f"cannot write {error.filename or paths.output}: {error.strerror or error}. Free the disk, or give an "
            "--output that can be written"
        ) from error


def files_of(paths: RunPaths) -> dict[str, Path]:
    """Return what a person may want to open, by what it is."""
    named = {
        "rollouts": paths.output,
        "failures": paths.failures,
        "materialized inputs": paths.materialized_inputs,
        "aggregate metrics": paths.aggregate_metrics,
    }
    return {name: path for name, path in named.items() if path.exists()}
