"""The rows that stand for failures which count as zero in a profile, made where the rows of results are gone through.

Rules:
* They are the rows that an aggregation makes of the same rollouts. Which fields of a task they have is known once the
  results of their label were looked at: a pass more, where there are any.

Source: collection.md §4.9, §6.5.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import Final

import msgspec

from rollbook.scoring.profile import Kind
from rollbook.verbs.added_rows import AddedAt, AddedRows
from rollbook.verbs.profile_rows import RowReader
from rollbook.verbs.profile_run import Pair, ProfiledRun

_TOP: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])


class ZeroRows:
    """The rows of the zeros of `runs`, each run's in order."""

    def __init__(
        self, runs: Sequence[ProfiledRun], labels: Mapping[Pair, str | None], reader: RowReader, holding: ExitStack
    ) -> None:
        rows = {id(run): AddedRows(run.paths, run.zeros, holding) for run in runs}
        self._rows = rows
        self._next: dict[int, Iterator[AddedAt]] = {run: iter(added) for run, added in rows.items()}
        self._carried: dict[str | None, set[str]] = {}
        if any(map(len, rows.values())):
            for run in runs:
                self._look_at(run, labels, reader)

    def _look_at(self, run: ProfiledRun, labels: Mapping[Pair, str | None], reader: RowReader) -> None:
        if not run.paths.output.exists():
            return
        line = reader.results(run)
        for seen in run.rollouts():
            if seen.kind not in (Kind.NO_RESULT, Kind.ZERO):
                self._carried.setdefault(labels[seen.pair], set()).update(_TOP.decode(line(seen.row)))

    def next(self, run: ProfiledRun, label: str | None) -> bytes:
        """Return the row of the next zero of `run`, which is of `label`."""
        return self._rows[id(run)].row(next(self._next[id(run)]), self._carried.get(label, ()))
