"""A health check of result files, from the files to the two reports.

Rules:
* Results and the run's truth are read and never written; the reports appear whole or not at all.
* Memory follows the number of records, at some fifty bytes each, and not what they hold.
* The reports are the same bytes whoever worked on them, and however many did.
* A folder's first run has the field's names for its reports; those of another run beside it carry its stem.

Source: collection.md §7.1, §7.3, §1.11.
"""

import os
import shutil
import tempfile
from array import array
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import BinaryIO, Final

import msgspec

from rollbook.errors import InputError, LedgerError, RunError
from rollbook.health.batch import Columns
from rollbook.health.checks import ignored_of, mask_of
from rollbook.health.reduction import Counts, Reduction
from rollbook.health.summary import Accounting, Health, HealthSummary, Limits, Source, accounting_of
from rollbook.health.tally import Tally
from rollbook.ledger.whole_file import WholeFile, made_aside
from rollbook.records.group_count import coverage_of
from rollbook.verbs.health_lines import LineIndex, line_index, parts_of
from rollbook.verbs.health_pool import batches_of
from rollbook.verbs.status import read_run

SUMMARY_NAME: Final = "quality_summary.json"
VERDICTS_NAME: Final = "rollout_verdicts.jsonl"
MOST_WORKERS: Final = 8
_FEW_BYTES: Final = 8 << 20
"""So much is examined sooner than another process has started."""
_TOLD_TOGETHER: Final = 64
"""Of so many records it is kept where their text begins."""
_TASKS: Final = b',\n  "tasks":'
_HEAD: Final = 1 << 20
"""The part of a summary that is before its tasks is smaller, unless very many files were checked."""
_UNKNOWN: Final = Accounting()
_NO_LIMITS: Final = Limits()


class HealthCheckLeftError(Exception):
    """Nobody waits for the check any more."""


def never() -> bool:
    """Go on to the end."""
    return False


class ReportPaths(msgspec.Struct, frozen=True):
    """Where the reports of a health check go."""

    summary: Path
    verdicts: Path


def check_health(
    files: Sequence[Path],
    folder: Path,
    *,
    workers: int | None = None,
    ignored: Iterable[str] = (),
    accounting: Accounting = _UNKNOWN,
    limits: Limits = _NO_LIMITS,
    is_left: Callable[[], bool] = never,
) -> HealthSummary:
    """Check every record of the result `files`, and write both reports into `folder`.

    `workers` processes share the work; by default as many as there are processors, eight at most, and none of their own
    where there is little to do. `accounting` says what the plan expected. Once `is_left` says so, the work is left
    where it is, and nothing is written.

    Raises:
        HealthCheckLeftError: the work was left.
        InputError: `ignored` names a check that there is not.
        LedgerError: a file cannot be read, or a report cannot be written.

    """
    try:
        names = ignored_of(ignored)
    except ValueError as error:
        raise InputError(str(error)) from error
    try:
        paths = report_paths(files, folder)
        with tempfile.TemporaryFile() as spill:
            gathered = _Gathered(spill)
            sources = _examined(gathered, files, workers, mask_of(names), is_left)
            return gathered.written(paths, names, accounting, limits, sources)
    except OSError as error:
        raise LedgerError(f"the health of {', '.join(map(str, files))} could not be checked: {error}") from error


def _examined(
    gathered: "_Gathered", files: Sequence[Path], workers: int | None, ignored: int, is_left: Callable[[], bool]
) -> tuple[Source, ...]:
    """Gather what is found out of every line of `files`; where their lines lie is forgotten with it."""
    indexes = [line_index(path) for path in files]
    gathered.take(indexes, workers_for(indexes, workers), ignored, is_left)
    return tuple(Source(index.path.name, index.size, index.sha256) for index in indexes)


def accounting_at(output: Path) -> Accounting:
    """Return what the plan of the run at `output` expected and what came of it; nothing is known where none is."""
    try:
        reading = read_run(output)
    except RunError:
        return _UNKNOWN
    groups, unplanned = reading.history.standings.counted(reading.rules, of_plan_only=reading.has_plan)
    return accounting_of(coverage_of(groups, unplanned=unplanned))


def workers_for(indexes: Sequence[LineIndex], asked: int | None) -> int:
    """Return how many processes examine the files; 1: none but this one."""
    if sum(len(index.starts) for index in indexes) <= 1:
        return 1
    if asked is not None:
        return max(1, asked)
    is_little = sum(index.size for index in indexes) < _FEW_BYTES
    return 1 if is_little else min(os.cpu_count() or 1, MOST_WORKERS)


class _Gathered:
    """What was found out of all records; what is kept as text lies in `spill`."""

    def __init__(self, spill: BinaryIO) -> None:
        self._spill = spill
        self._columns = Columns()
        self._starts: array[int] = array("Q")
        self._tally = Tally()

    def take(self, indexes: Sequence[LineIndex], workers: int, ignored: int, is_left: Callable[[], bool]) -> None:
        """Examine every line of the files."""
        at = 0
        for batch in batches_of(parts_of(indexes, workers, ignored), workers):
            if is_left():
                raise HealthCheckLeftError("the records' health was not checked to the end")
            first = len(self._columns)
            self._columns.extend(batch)
            self._spill.write(batch.told)
            self._tally.merge(batch.tally)
            for place, length in enumerate(self._columns.lengths[first:], start=first):
                if place % _TOLD_TOGETHER == 0:
                    self._starts.append(at)
                at += length
        self._spill.flush()

    def _told_at(self, place: int) -> bytes:
        lengths, first = self._columns.lengths, place - place % _TOLD_TOGETHER
        start = self._starts[place // _TOLD_TOGETHER] + sum(lengths[first:place])
        return os.pread(self._spill.fileno(), lengths[place], start)

    def written(
        self,
        paths: ReportPaths,
        ignored: tuple[str, ...],
        accounting: Accounting,
        limits: Limits,
        sources: tuple[Source, ...],
    ) -> HealthSummary:
        """Write both reports, and return what they come to."""
        with made_aside(paths.verdicts) as verdicts, tempfile.TemporaryFile() as tasks:
            counts = self._reduced(verdicts, tasks, mask_of(ignored))
            health = Health(counts, self._tally, ignored, accounting, sources, limits)
            with made_aside(paths.summary) as summary:
                _write_summary(summary.file, health, tasks)
                verdicts.commit()
                summary.commit()
        return HealthSummary(health, paths.summary, paths.verdicts)

    def _reduced(self, verdicts: WholeFile, tasks: BinaryIO, ignored: int) -> Counts:
        reduction = Reduction(self._columns, self._told_at, ignored)
        return reduction.write(verdicts.file.write, lambda entry: tasks.write(b",\n    " + entry))


def _write_summary(file: BinaryIO, health: Health, tasks: BinaryIO) -> None:
    run = msgspec.json.format(msgspec.json.encode({"run": health.run_json()}), indent=2)
    file.write(run.removesuffix(b"\n}") + _TASKS + b" {")
    tasks.seek(1)  # past the comma before the first
    shutil.copyfileobj(tasks, file, 1 << 20)
    file.write(b"\n  }\n}\n" if health.counts.tasks else b"}\n}\n")


class _Artifacts(msgspec.Struct):
    sources: list[dict[str, object]] = msgspec.field(default_factory=list)


class _Run(msgspec.Struct):
    artifacts: _Artifacts = msgspec.field(default_factory=_Artifacts)


class _Summary(msgspec.Struct):
    run: _Run = msgspec.field(default_factory=_Run)


def report_paths(files: Sequence[Path], folder: Path) -> ReportPaths:
    """Return where the reports on `files` go: under a stem of their own when the folder holds those of other files."""
    others = sources_of(folder / SUMMARY_NAME) - {path.name for path in files}
    is_taken = any((folder / name).exists() for name in others)
    prefix = f"{files[0].stem}_" if is_taken and files else ""
    return ReportPaths(folder / f"{prefix}{SUMMARY_NAME}", folder / f"{prefix}{VERDICTS_NAME}")


def sources_of(summary: Path) -> set[str]:
    """Return the names of the files that the summary at `summary` is of; none where there is none that can be read."""
    try:
        with summary.open("rb") as file:
            head, found, _ = file.read(_HEAD).partition(_TASKS)
        known = msgspec.json.decode(head + b"}" if found else head, type=_Summary).run.artifacts.sources
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return set()
    return {str(source.get("file")) for source in known}
