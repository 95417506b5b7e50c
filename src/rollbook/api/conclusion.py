"""What a run that ended is judged by, before anything is computed of it.

Rules:
* Decided before metrics are computed: a rejected run publishes no score, and keeps what it collected.
* A rollout whose failure is a score of 0 for good is completed; so is every result, whatever its reward.
* What is missing is held against its limit whether or not it counts as zero.

Source: collection.md §6.1, §6.7, §10.1, §21.4.26.
"""

import os
from collections.abc import Iterator

import msgspec

from rollbook.config.collection import RolloutCollectionConfig
from rollbook.errors import IncompleteEvaluationError, NothingProducedError, RunError
from rollbook.ledger.paths import RunPaths
from rollbook.records.command import typed
from rollbook.records.coverage import Coverage
from rollbook.scoring.coverage_text import classes_in_words


class Ended(msgspec.Struct, frozen=True):
    """How a run ended: `sent` rollouts were left to it, and `counts` says whether any without result counts as zero."""

    settings: RolloutCollectionConfig
    paths: RunPaths
    coverage: Coverage
    sent: int
    counts: bool
    made_progress: bool


def rejection(run: Ended) -> RunError | None:
    """Return why the run is rejected; None where it is not."""
    return _nothing_produced(run) or _unfinished(run) or _beyond_limits(run)


def _nothing_produced(run: Ended) -> RunError | None:
    coverage = run.coverage
    if coverage.settled_with_result or run.counts:
        return None
    see = f"see {run.paths.failures}. {_what_next(run)}"
    if run.sent == 0:
        return NothingProducedError(
            f"a resume would run nothing, and none of the {coverage.planned} rollouts produced a result; {see}"
        )
    return NothingProducedError(f"{_none_of(run)} produced a result ({_failures(coverage)}); {see}")


def held_in_words(coverage: Coverage, paths: RunPaths) -> str | None:
    """Return what can be done about rollouts that are held; None where none is."""
    again = "run them again with --resubmit"
    if coverage.held:
        judged = typed(["--rollouts", os.fspath(paths.output), "--judge-failed-only", "--append"])
        again = f"have the answers that are kept of them judged with gym eval reverify … {judged}, or {again}"
    held = coverage.held + coverage.held_interrupted
    return f"{held} of {coverage.planned} rollouts are held for a decision: {again}" if held else None


def _failures(coverage: Coverage) -> str:
    return classes_in_words(coverage.failed_by_class) or "none of them failed"


def _what_next(run: Ended) -> str:
    """Say what helps a run that produced nothing."""
    if run.coverage.owed:
        return "Go on with --resume once the cause is mended"
    held = held_in_words(run.coverage, run.paths)
    if held is not None:
        return held
    return "The attempts of all of them are spent: start anew with --overwrite, or give another --output"


def _none_of(run: Ended) -> str:
    driver = run.settings.rollout_collection_driver
    if driver is None:
        return f"None of the {run.sent} dispatched rollouts"
    return f"None of the {run.sent} rollouts left to {driver}"


def _unfinished(run: Ended) -> RunError | None:
    coverage = run.coverage
    runs_again = coverage.approved + coverage.with_their_tasks
    return run.settings.completion_rejection(
        coverage.planned,
        (),
        max(coverage.completed - runs_again, 0),
        retryable=bool(coverage.owed),
        made_progress=run.made_progress,
    )


def _beyond_limits(run: Ended) -> RunError | None:
    found = list(_too_many(run))
    if not found:
        return None
    return IncompleteEvaluationError(
        f"EVAL FAILED: {'; '.join(found)}. Partial artifacts retained at {run.paths.output}",
        retryable=bool(run.coverage.owed),
        made_progress=run.made_progress,
    )


def _too_many(run: Ended) -> Iterator[str]:
    settings, coverage = run.settings, run.coverage
    limits = (
        ("max_failed_fraction", settings.max_failed_fraction, coverage.failed - coverage.final_zeros, "failed"),
        ("max_missing_fraction", settings.max_missing_fraction, coverage.missing, "left nothing"),
    )
    for name, limit, count, what in limits:
        if limit is not None and count > limit * coverage.planned:
            yield f"{count} of {coverage.planned} rollouts {what}, and {name} is {limit:g}"
