"""The settings of judging saved answers again.

Rules:
* A rule that joins options names all of them, and what to type instead.
* Options are the field's, by the field's names; the ones of driving requests are those of a collection.

Source: collection.md §9.1, §10.5.
"""

from typing import Final, Literal, Self

from pydantic import field_validator, model_validator

from rollbook.config.collection import NotNegative, Positive, Seconds, Time
from rollbook.config.settings import BaseNeMoGymCLIConfig, UploadMixin

_ROLLOUTS: Final = ("rollouts_jsonl_fpath", "--rollouts")
_TRAJECTORIES: Final = ("atif_manifest_jsonl_fpath", "--atif-manifest")
_OF_SAVED_RUNS: Final = ("judge_failed_only", "append", "force", "resume_from_cache")


class RolloutReverificationConfig(UploadMixin, BaseNeMoGymCLIConfig):
    """What is judged again, and where what comes back is written.

    `limit`: so many of the selected rollouts, in the plan's order, those that are done included. `changes_shown`: so
    many rewards that changed are named.
    """

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
    route_failures_to_sidecar: bool = False
    rollout_timeout_s: Time | None = None
    rollout_connect_timeout_s: Time = 10.0
    dispatch_connect_grace_s: Seconds = 60.0
    retry_for_s: Seconds = 600.0
    interrupt_grace_s: Seconds = 20.0
    max_reply_bytes: Positive = 512 * 1024 * 1024
    durability: Literal["sync", "flush", "off"] = "sync"
    take_over: bool = False
    changes_shown: NotNegative = 20

    @field_validator("output_jsonl_fpath")
    @classmethod
    def _output_is_a_file_name(cls, output: str) -> str:
        if output.endswith("/") or not output.strip("./"):
            raise ValueError("the output is a file name; write for example out/reverified.jsonl")
        return output

    @model_validator(mode="after")
    def _files_fit_the_format(self) -> Self:
        own, other = _ROLLOUTS, _TRAJECTORIES
        if self.input_format == "atif":
            own, other = other, own
        if getattr(self, own[0]) is None:
            raise ValueError(f"input_format={self.input_format} needs {own[0]}; add {own[1]} FILE")
        if getattr(self, other[0]) is not None:
            raise ValueError(f"input_format={self.input_format} excludes {other[0]}; take {other[1]} out")
        return self

    @model_validator(mode="after")
    def _modes_agree(self) -> Self:
        if self.append and not self.judge_failed_only:
            raise ValueError("append needs judge_failed_only; add --judge-failed-only")
        if self.append and self.overwrite:
            raise ValueError("append and overwrite exclude each other; keep one of them")
        if self.overwrite and self.resume_from_cache:
            raise ValueError("`overwrite` and `resume_from_cache` (--resume) exclude each other; keep one of them")
        excluded = [name for name in _OF_SAVED_RUNS if getattr(self, name)]
        if self.input_format == "atif" and excluded:
            raise ValueError(f"input_format=atif excludes {', '.join(excluded)}; take it out")
        return self
