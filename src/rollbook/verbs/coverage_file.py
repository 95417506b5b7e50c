"""The coverage report on disk: written whole at the end of a run, and what it was made with.

Rules:
* It is a report, and proves nothing: no count of it is ever read back, only what was chosen.

Source: collection.md §1.2, §1.12, §5.4.6.
"""

from pathlib import Path

import msgspec

from rollbook.ledger.whole_file import whole_file
from rollbook.records.json_values import JsonObject
from rollbook.scoring.coverage_report import CoverageReport
from rollbook.scoring.imputation import NOTHING_COUNTED, Counting


class _Chosen(msgspec.Struct):
    failure_classes: list[str] = msgspec.field(default_factory=list)
    missing: bool = False


class _Report(msgspec.Struct):
    counted_as_zero: _Chosen = msgspec.field(default_factory=_Chosen)
    min_coverage: float | None = None


def write_coverage(path: Path, report: CoverageReport, counting: Counting, min_coverage: float | None = None) -> None:
    """Write the report, what was chosen to count as zero, and the share that a headline was to speak for.

    Raises:
        OSError: the disk does not take it.

    """
    chosen: JsonObject = {"failure_classes": sorted(counting.failure_classes), "missing": counting.missing}
    document = report.to_json() | {"counted_as_zero": chosen, "min_coverage": min_coverage}
    with whole_file(path) as file:
        file.write(msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n")


def counted_before(path: Path) -> Counting:
    """Return what had been chosen to count as zero when the report at `path` was written; nothing without one."""
    return chosen_before(path)[0]


def chosen_before(path: Path) -> tuple[Counting, float | None]:
    """Return the same, and the share of the plan that a headline was to speak for at least; None where none was."""
    try:
        report = msgspec.json.decode(path.read_bytes(), type=_Report)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return NOTHING_COUNTED, None
    chosen = report.counted_as_zero
    return Counting(frozenset(chosen.failure_classes), chosen.missing), report.min_coverage
