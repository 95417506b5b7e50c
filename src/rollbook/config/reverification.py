"""The settings of a reverification: saved answers are judged again.

Rules:
* Each input format has files it needs and files it must not be given.
* Recovery of judge failures, appending and overwriting are told apart; contradictions are refused.

Source: collection.md §10.5.
"""

from typing import Literal, Self

from pydantic import model_validator

from rollbook.config.collection import Positive
from rollbook.config.settings import BaseNeMoGymCLIConfig, UploadMixin


class RolloutReverificationConfig(UploadMixin, BaseNeMoGymCLIConfig):
    """What a reverification reads, writes and may do."""

    input_format: Literal["gym", "atif"] = "gym"
    materialized_inputs_jsonl_fpath: str
    rollouts_jsonl_fpath: str | None = None
    atif_manifest_jsonl_fpath: str | None = None
    output_jsonl_fpath: str
    force: bool = False
    disable_aggregation: bool = False
    num_samples_in_parallel: Positive | None = None
    limit: Positive | None = None
    overwrite: bool = False
    resume_from_cache: bool = False
    judge_failed_only: bool = False
    append: bool = False
    retry_terminal_timeouts: bool = False
    retry_invalid_judge_responses: bool = False

    @model_validator(mode="after")
    def _files_fit_the_format(self) -> Self:
        own, other = ("rollouts_jsonl_fpath", "atif_manifest_jsonl_fpath")
        if self.input_format == "atif":
            own, other = other, own
        if getattr(self, own) is None:
            raise ValueError(f"input_format={self.input_format} needs {own}; add +{own}=<file>")
        if getattr(self, other) is not None:
            raise ValueError(f"input_format={self.input_format} excludes {other}; take it out")
        return self

    @model_validator(mode="after")
    def _modes_agree(self) -> Self:
        if self.append and not self.judge_failed_only:
            raise ValueError("append needs judge_failed_only; add --judge-failed-only")
        if self.append and self.overwrite:
            raise ValueError("append and overwrite exclude each other; keep one of them")
        excluded = [
            name for name in ("judge_failed_only", "append", "force", "resume_from_cache") if getattr(self, name)
        ]
        if self.input_format == "atif" and excluded:
            raise ValueError(f"input_format=atif excludes {', '.join(excluded)}; take it out")
        return self
