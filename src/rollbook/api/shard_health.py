"""How well the records of several runs are, once they were aggregated.

Rules:
* Whatever goes wrong is a note: what was computed is not worth less because nobody could check it.

Source: collection.md §6.2, §7.1, §7.3.
"""

from collections.abc import Sequence
from pathlib import Path

from rollbook.config.collection import RolloutAggregationConfig
from rollbook.errors import RollbookError
from rollbook.health.summary import Limits, accounting_of
from rollbook.health.words import lines_of
from rollbook.records.coverage import Coverage
from rollbook.verbs.health import check_health


def checked_health(
    outputs: Sequence[Path], folder: Path, settings: RolloutAggregationConfig, coverage: Coverage
) -> tuple[Path | None, tuple[str, ...]]:
    """Check the records in `outputs`, and return where the summary is and what is to be told."""
    try:
        found = check_health(
            outputs,
            folder,
            workers=settings.health_check_workers,
            ignored=settings.health_check_ignored_checks,
            accounting=accounting_of(coverage),
            limits=Limits(unhealthy=settings.max_unhealthy_fraction),
        )
    except (RollbookError, OSError) as error:
        return None, (f"the health check failed: {error}",)
    return folder / found.summary.name, tuple(lines_of(found)[:-1])
