"""The last step of an evaluation: how well its records are, once its servers are down.

Rules:
* The event loop stays free, and whatever goes wrong is a note: a run is not worth less because nobody could check it.
* A run that was stopped, or whose metrics were not wanted, is not checked; the command can do it at any time.
* What the scores warn of is told once.
* Only a limit that was set makes a run that is not well an error, and what it came to is kept.

Source: collection.md §7.1, §7.3, §10.1.
"""

import asyncio
import logging
from collections.abc import Callable

from msgspec.structs import replace

from rollbook.api.request import EvaluationResult
from rollbook.config.collection import RolloutCollectionConfig
from rollbook.dispatch.stop import Stop
from rollbook.errors import IncompleteEvaluationError
from rollbook.health.summary import MODEL_NEVER_USED, HealthSummary, Limits, accounting_of
from rollbook.health.words import lines_of
from rollbook.ledger.paths import RunPaths
from rollbook.records.event import Observe, RunNoted
from rollbook.verbs.health import HealthCheckLeftError, check_health
from rollbook.verbs.model_use import NO_MODEL_USED

_LOG = logging.getLogger(__name__)


async def with_health(
    result: EvaluationResult, settings: RolloutCollectionConfig, paths: RunPaths, observe: Observe, stop: Stop
) -> EvaluationResult:
    """Check the records of the run that came to `result`, and return it with what was found.

    A run that is to stop meanwhile leaves the check where it is.

    Raises:
        IncompleteEvaluationError: more records are unhealthy than `max_unhealthy_fraction` lets be; it has the result.

    """

    def check() -> HealthSummary:
        return check_health(
            [paths.output],
            paths.output.parent,
            workers=settings.health_check_workers,
            ignored=settings.health_check_ignored_checks,
            accounting=accounting_of(result.coverage),
            limits=Limits(unhealthy=settings.max_unhealthy_fraction),
            is_left=stop.asked.is_set,
        )

    found = await _ended_well(check)
    told = (MODEL_NEVER_USED,) if NO_MODEL_USED in result.scores.warnings else ()
    notes = (_failed(found),) if isinstance(found, BaseException) else lines_of(found, told=told)[:-1]
    for text in notes:
        observe(RunNoted(text))
    result = replace(result, notes=(*result.notes, *notes))
    if isinstance(found, BaseException):
        return result
    result = replace(result, files={**result.files, "health": paths.output.parent / found.summary.name})
    if found.exceeds_limits:
        error = IncompleteEvaluationError(
            f"EVAL FAILED: {found.unhealthy} of {found.records} records are unhealthy, and max_unhealthy_fraction is "
            f"{settings.max_unhealthy_fraction:g}; see {found.summary}"
        )
        error.result = replace(result, scores=result.scores.rejected_by(error))
        raise error
    return result


def _failed(error: BaseException) -> str:
    if isinstance(error, HealthCheckLeftError):
        return "stopped before the records' health was checked; gym eval health-check does it"
    return f"the health check failed: {error}"


async def _ended_well(work: Callable[[], HealthSummary]) -> HealthSummary | BaseException:
    """Return what `work` returns, in a thread of its own, or what it raised."""
    working = asyncio.get_running_loop().run_in_executor(None, work)
    await asyncio.wait({working})
    error = working.exception()
    if error is not None:
        _LOG.debug("the health check failed", exc_info=error)
        return error
    return working.result()
