"""How well the records of several runs are, once they were aggregated.

Rules:
* Whatever goes wrong is a note: what was computed is not worth less because nobody could check it.
* Where servers number their tasks alike, no rollout of one is taken for a copy, or a repeat, of one of another.

Source: collection.md §6.2, §7.1, §7.3.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from rollbook.config.collection import RolloutAggregationConfig
from rollbook.errors import RollbookError
from rollbook.health.checks import BY_NUMBER
from rollbook.health.summary import Limits, accounting_of
from rollbook.health.words import lines_of
from rollbook.records.coverage import Coverage
from rollbook.verbs.health import check_health

_ALIKE: Final = (
    "servers of the shards number their tasks alike, so checks that know rollouts by their numbers are left out of the "
    "health check; gym eval health-check makes them, of each shard by itself"
)


def checked_health(
    outputs: Sequence[Path],
    folder: Path,
    settings: RolloutAggregationConfig,
    coverage: Coverage,
    *,
    number_alike: bool = False,
) -> tuple[Path | None, tuple[str, ...]]:
    """Check the records in `outputs`, of which rollouts may `number_alike` that are none of each other's.

    Returns where the summary is and what is to be told.
    """
    left_out = BY_NUMBER if number_alike else ()
    try:
        found = check_health(
            outputs,
            folder,
            workers=settings.health_check_workers,
            ignored=[*settings.health_check_ignored_checks, *left_out],
            accounting=accounting_of(coverage),
            limits=Limits(unhealthy=settings.max_unhealthy_fraction),
        )
    except (RollbookError, OSError) as error:
        return None, (f"the health check failed: {error}",)
    told = lines_of(found)[:-1]
    return folder / found.summary.name, (*told, _ALIKE) if number_alike else told
