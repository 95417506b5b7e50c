"""Another number of a run's results than the reward, read from the rows that stand.

Rules:
* A row that has no such number is not scored by it: it counts as missing, never as zero.
* Rows are read back where they lie, one at a time.

Source: collection.md §6.4 (3), §9.2.
"""

from collections.abc import Iterable
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import Final

import msgspec

from rollbook.compare.nearest import meant
from rollbook.compare.side import At
from rollbook.ledger.paths import RunPaths
from rollbook.ledger.reader import scan
from rollbook.records.json_values import JsonObject
from rollbook.records.nesting import not_too_deep
from rollbook.records.reading import UNREADABLE
from rollbook.scoring.rows import number_in
from rollbook.verbs.placed_rows import PlacedRows

_LOOKED_AT: Final = 200
_TOP: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])
_ROW: Final = msgspec.json.Decoder(JsonObject)


class FieldValues:
    """The numbers that the results at `output` have in `field`; `holding` closes the file."""

    def __init__(self, output: Path, field: str, holding: ExitStack) -> None:
        self._field = field
        self._lines = holding.enter_context(PlacedRows(output)) if output.exists() else None

    def at(self, place: At) -> float | None:
        """Return the number of the row that lies there, None where it has none."""
        in_results, offset, length, _ = place
        if self._lines is None or not in_results:
            return None
        try:
            raw = _TOP.decode(not_too_deep(self._lines.at(offset, length))).get(self._field)
            number = None if raw is None else number_in(msgspec.json.decode(raw))
        except UNREADABLE:
            return None
        return None if number is None else float(number)


def no_such_field(outputs: Iterable[Path], field: str) -> str:
    """Return that no scored rollout has a number in `field`, and which name of those that are there is nearest."""
    names = {
        name
        for output in outputs
        for row in _rows(output)
        for name, value in row.items()
        if not name.startswith("_") and number_in(value) is not None
    }
    return f"no scored rollout of a side has a number in {field}{meant(field, names - {field})}"


def _rows(output: Path) -> Iterable[JsonObject]:
    for line in islice(scan(RunPaths(output).output), _LOOKED_AT):
        try:
            yield _ROW.decode(not_too_deep(line.text))
        except UNREADABLE:
            continue
