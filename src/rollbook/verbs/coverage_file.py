"""The coverage report on disk: written whole at the end of a run, and what it was made with.

Rules:
* It is a report, and proves nothing: no count of it is ever read back, only what was chosen to count as zero.

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


def write_coverage(path: Path, report: CoverageReport, counting: Counting) -> None:
    """Write the report, and what was chosen to count as zero.

    Raises:
        OSError: the disk does not take it.

    """
    chosen: JsonObject = {"failure_classes": sorted(counting.failure_classes), "missing": counting.missing}
    document = report.to_json() | {"counted_as_zero": chosen}
    with whole_file(path) as file:
        file.write(msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n")


def counted_before(path: Path) -> Counting:
    """Return what had been chosen to count as zero when the report at `path` was written; nothing without one."""
    try:
        chosen = msgspec.json.decode(path.read_bytes(), type=_Report).counted_as_zero
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return NOTHING_COUNTED
    return Counting(frozenset(chosen.failure_classes), chosen.missing)
