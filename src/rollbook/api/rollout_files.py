"""The two files that a run's outcomes lie in, and the rows in them.

Rules:
* A row is read back from the file that it was found in; a file that took its place is refused.
* What was not there when the files were looked at is not read.

Source: collection.md §5.4.1.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Final, Self

from rollbook.errors import LedgerError
from rollbook.ledger.paths import RunPaths, failures_path_for
from rollbook.ledger.projection import PROJECTED_ROW_BYTES
from rollbook.ledger.rollout_record import RolloutRecord
from rollbook.records.json_values import JsonObject
from rollbook.records.place import File, Place
from rollbook.records.record import Record

_FAILURES_END: Final = failures_path_for(Path("_.jsonl")).stem.removeprefix("_")


@dataclass(slots=True)
class SavedFiles:
    """Where results and failures lie, and the device and inode that each was found with."""

    paths: dict[File, Path] = field(default_factory=dict)
    skip_keys: frozenset[str] = frozenset()
    projected_above: int = PROJECTED_ROW_BYTES
    _identities: dict[File, tuple[int, int]] = field(default_factory=dict)
    _sizes: dict[File, int] = field(default_factory=dict)

    @classmethod
    def beside(cls, paths: RunPaths, skip_keys: frozenset[str], projected_above: int) -> Self:
        """Look at the files of a run as they are now."""
        files = cls({File.RESULTS: paths.output, File.FAILURES: paths.failures}, skip_keys, projected_above)
        for file, path in files.paths.items():
            if path.exists():
                status = path.stat()
                files._identities[file] = status.st_dev, status.st_ino
                files._sizes[file] = status.st_size
        return files

    def limits(self, given: Mapping[Path, int] | None) -> dict[File, int]:
        """Return how many bytes of each file are read: as many as `given` says, else as many as there were.

        Raises:
            LedgerError: `given` names another file.

        """
        limits = {file: self._sizes.get(file, 0) for file in self.paths}
        files = {path.resolve(): file for file, path in self.paths.items()}
        for path, size in (given or {}).items():
            if path.resolve() not in files:
                raise LedgerError(f"{path} is no file of the outcomes of {self.paths[File.RESULTS]}")
            limits[files[path.resolve()]] = size
        return limits

    def found(self, record: Record, name: str | None) -> RolloutRecord:
        """Return where a folded record lies; what is read back there is of rollout `name`, where one is given.

        Raises:
            LedgerError: the record was folded without a place.

        """
        place = record.place
        if place is None or place.file not in self.paths:
            raise LedgerError(
                f"the row of rollout {record.key}, attempt {record.attempt}, was folded without its place"
            )
        return RolloutRecord(
            path=self.paths[place.file],
            offset=place.offset,
            length=place.length,
            line_number=place.line,
            legacy_attempt_index=record.attempt if record.run_id is None and record.attempt else None,
            file_identity=self._identities.get(place.file),
            expected_identity=None if name is None else (record.run_id, name, record.attempt),
            skip_keys=self.skip_keys,
        )

    def place_of(self, record: RolloutRecord) -> Place:
        """Return the place of a line that was written at `record`; its file is one of the run's from now on."""
        known = (file for file, path in self.paths.items() if path == record.path)
        by_name = File.FAILURES if record.path.stem.endswith(_FAILURES_END) else File.RESULTS
        file = next(known, by_name)
        if self.paths.setdefault(file, record.path) != record.path:
            raise LedgerError(f"{record.path} is no file of this run: its {file.value} are in {self.paths[file]}")
        if record.file_identity is not None:
            self._identities[file] = record.file_identity
        return Place(file, record.offset, record.length, record.line_number)

    def named(self, place: Place | None) -> str:
        """Return a line's file and number, as an error names them."""
        return "a row" if place is None else f"{self.paths[place.file]}:{place.line}: the row"

    def read_all(self, records: Iterable[RolloutRecord]) -> Iterator[JsonObject]:
        """Read rows back, each file opened once.

        Raises:
            LedgerError: a row is no longer where it was.

        """
        opened: dict[Path, BinaryIO] = {}
        with ExitStack() as stack:
            for record in records:
                if record.path not in opened:
                    opened[record.path] = stack.enter_context(record.path.open("rb"))
                yield record.read_from(opened[record.path], self.projected_above)
