"""Where an aggregation may write: never over what a run recorded, nor over what its own servers computed.

Rules:
* A name that another run's file has is refused, and so is an output with rows that none of the shards holds.
* Beside a run's own results its coverage report stays, and metrics that servers computed give way to theirs alone.

Source: collection.md §1.2, §6.2.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from rollbook.errors import InputError
from rollbook.ledger.ownership import refuse_files_of_others, run_that_writes
from rollbook.ledger.paths import RunPaths
from rollbook.records.json_values import JsonObject
from rollbook.verbs.merged_run import is_merged
from rollbook.verbs.metrics_file import LocalEntry


class _Entry(msgspec.Struct):
    computed_locally: bool = False
    aggregation_error: msgspec.Raw | None = None


class _Coverage(msgspec.Struct):
    shards: msgspec.Raw | None = None


def refuse_file_of_run(output: Path) -> None:
    """Refuse an output whose name, or that of a report beside it, is one of a run's files.

    Raises:
        InputError: it is that of a companion of a run's results.
        LedgerError: reports beside it are those of a run whose results have another ending.

    """
    owner = run_that_writes(output)
    if owner is not None:
        raise InputError(f"{output}: this is a file of the run {owner}; give another --output")
    refuse_files_of_others(output)


def refuse_lost_rows(output: Path, shards: Iterable[Path]) -> None:
    """Refuse to write merged rows over rows that none of `shards` holds.

    Raises:
        InputError: `output` holds some; says how many.
        OSError: a file cannot be read.

    """
    if not output.is_file():
        return
    lost = set(_lines(output))
    for shard in shards:
        if lost and shard.is_file():
            lost.difference_update(_lines(shard))
    if lost:
        raise InputError(
            f"{output}: {len(lost)} of its rows are in none of the files to aggregate, and would be lost; give another "
            "--output (with these rows: name this file with --input-glob as well), or remove it"
        )


def _lines(path: Path) -> Iterator[int]:
    with path.open("rb") as file:
        yield from (hash(line) for text in file if (line := text.strip()))


@dataclass(frozen=True, slots=True)
class OwnReports:
    """The reports that lie where an aggregation writes its own; those of a run are kept."""

    paths: RunPaths
    of_run: bool

    def keep_coverage(self) -> bool:
        """Whether there is a coverage report that a run wrote at its end."""
        return self.of_run and _is(_Coverage, self.paths.coverage, lambda report: report.shards is None)

    def keep_metrics(self) -> bool:
        """Whether there are metrics that servers of the run computed."""
        return self.of_run and _is(list[_Entry], self.paths.aggregate_metrics, lambda found: any(map(_is_own, found)))

    def refuse_others(self, entries: Iterable[JsonObject | LocalEntry]) -> None:
        """Refuse entries that would take the place of what servers computed, and are not from servers.

        Raises:
            InputError: there is such an entry; nothing was written.

        """
        if any(isinstance(entry, LocalEntry) for entry in entries) and self.keep_metrics():
            raise InputError(
                f"{self.paths.aggregate_metrics}: the run's servers computed these metrics, and not all of them answer "
                "now; they are kept. Start the servers with gym env start, or give another --output for metrics that "
                "are computed here"
            )


def own_reports(output: Path, *, merging: bool) -> OwnReports:
    """Return the reports beside `output`; they are a run's own unless rows are merged there."""
    paths = RunPaths(output)
    return OwnReports(paths, not merging and bool(paths.existing()) and not is_merged(paths))


def _is_own(entry: _Entry) -> bool:
    return not entry.computed_locally and entry.aggregation_error is None


def _is(kind: Any, path: Path, holds: Any) -> bool:
    try:
        return bool(holds(msgspec.json.decode(path.read_bytes(), type=kind)))
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return False
