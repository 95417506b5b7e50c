"""Whether unfinished work rejects a strict run.

Rules:
* Decided before metrics are computed: a rejected run publishes no score.
* A result is completed whatever its reward; a failure is only where it is a score of 0 for good.
* Whether more could be done, and whether this invocation got on, is the caller's to say, and travels with the error:
  either one assumed may restart a run for ever.

Source: collection.md §6.7, §21.4.26.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict

from rollbook.errors import IncompleteEvaluationError
from rollbook.records.completed import completed_samples


class CompletionMixin(BaseModel):
    """The option that every planned rollout is to be completed, and what follows from it."""

    model_config = ConfigDict(defer_build=True)

    output_jsonl_fpath: str
    require_complete: bool = False

    def check_completion(
        self,
        expected: int,
        results: Sequence[Mapping[str, Any]],
        completed: int | None = None,
        intentionally_omitted: int = 0,
        *,
        retryable: bool,
        made_progress: bool,
        final_zero_rows: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        """Raise the strict run's rejection, if there is one; see `completion_rejection`.

        Raises:
            IncompleteEvaluationError: the run is to be complete and is not.

        """
        error = self.completion_rejection(
            expected,
            results,
            completed,
            intentionally_omitted,
            retryable=retryable,
            made_progress=made_progress,
            final_zero_rows=final_zero_rows,
        )
        if error is not None:
            raise error

    def completion_rejection(
        self,
        expected: int,
        results: Sequence[Mapping[str, Any]],
        completed: int | None = None,
        intentionally_omitted: int = 0,
        *,
        retryable: bool,
        made_progress: bool,
        final_zero_rows: Sequence[Mapping[str, Any]] = (),
    ) -> IncompleteEvaluationError | None:
        """Return the error that rejects unfinished work, or None.

        `results` are saved rows; those without a failure class that exist are completed samples, each rollout once,
        and so are `final_zero_rows`. A caller that knows how many are `completed` has counted both already.
        `intentionally_omitted` rollouts are tolerated beside completed ones.
        """
        if not self.require_complete:
            return None
        done = completed_samples(results, final_zero_rows) if completed is None else completed
        if done + intentionally_omitted >= expected and (done or not expected):
            return None
        return IncompleteEvaluationError(
            f"EVAL FAILED: {done}/{expected} samples completed. Partial artifacts retained at "
            f"{self.output_jsonl_fpath}" + ("; run the rest with --resume" if retryable else ""),
            retryable=retryable,
            made_progress=made_progress,
        )
