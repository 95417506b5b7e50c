"""The settings of judging saved answers again.

Rules:
* A rule that joins options names all of them, and what to type instead.
* Options are the field's, by the field's names; the ones of driving requests are those of a collection.

Source: collection.md §9.1, §10.5.
"""

from typing import Literal, Self

from pydantic import field_validator, model_validator

from rollbook.config.collection import NotNegative, Positive, Seconds, Time
from rollbook.config.settings import BaseNeMoGymCLIConfig, UploadMixin

_ATIF_HAS_NONE: tuple[tuple[str, str], ...] = (
    ("judge_failed_only", "--judge-failed-only"),
    ("append", "--append"),
    ("force", "--force"),
    ("resume_from_cache", "--resume"),
)


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
    def _input_of_its_format(self) -> Self:
        if self.input_format == "gym":
            if self.rollouts_jsonl_fpath is None:
                raise ValueError("rollouts_jsonl_fpath (--rollouts) is required: it holds the answers that are judged")
            if self.atif_manifest_jsonl_fpath is not None:
                raise ValueError("atif_manifest_jsonl_fpath (--atif-manifest) needs input_format=atif")
            return self
        if self.atif_manifest_jsonl_fpath is None:
            raise ValueError("input_format=atif needs atif_manifest_jsonl_fpath (--atif-manifest)")
        if self.rollouts_jsonl_fpath is not None:
            raise ValueError("input_format=atif takes its answers from trajectories; leave rollouts_jsonl_fpath out")
        given = [flag for name, flag in _ATIF_HAS_NONE if getattr(self, name)]
        if given:
            raise ValueError(f"input_format=atif has no {', '.join(given)}: trajectories are judged whole and once")
        return self

    @model_validator(mode="after")
    def _one_way_with_an_earlier_output(self) -> Self:
        if self.append and not self.judge_failed_only:
            raise ValueError(
                "append (--append) needs judge_failed_only (--judge-failed-only): it adds what a judge owes"
            )
        if self.append and self.overwrite:
            raise ValueError("append (--append) and overwrite (--overwrite) exclude each other; keep one")
        if self.overwrite and self.resume_from_cache:
            raise ValueError("overwrite (--overwrite) and resume_from_cache (--resume) exclude each other; keep one")
        return self
