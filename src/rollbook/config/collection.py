"""The settings of collection and aggregation, each option with its rule.

Rules:
* A rule that joins options names all of them, and what to type instead.
* Zero is a number: `limit: 0` collects nothing, `limit: null` everything.
* `materialized_jsonl_fpath` follows from the output; it cannot be set.

Source: collection.md §10.1-§10.4, §1.2.
"""

import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Final, Literal, Self
from urllib.parse import urlsplit

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator, model_validator

from rollbook.config.completion import CompletionMixin
from rollbook.config.repeats import checked_agent_map, checked_fan_out, checked_repeats
from rollbook.config.settings import BaseNeMoGymCLIConfig, RemovedRolloutOptionsMixin, UploadMixin
from rollbook.errors import ConfigError

__all__ = [
    "BaseNeMoGymCLIConfig",
    "E2ERolloutCollectionConfig",
    "RemovedRolloutOptionsMixin",
    "RolloutAggregationConfig",
    "RolloutCollectionConfig",
    "RunHealthConfig",
    "SharedRolloutCollectionConfig",
    "SkillsConfig",
]

DEFAULT_KEY: Final = "_default"
HEALTH_CHECK_IDS: Final = frozenset(
    {
        "check_execution_error",
        "record_unreadable",
        "rollout_duplicate_identity",
        "rollout_missing_agent_turns",
        "rollout_ended_on_failed_model_call",
        "agent_turn_hollow",
        "model_call_zero_completion_tokens",
        "model_call_missing_token_counts",
        "trajectory_capture_mismatch",
        "model_call_failed",
        "rollout_token_count_mismatch",
        "model_call_runaway_generation",
        "task_consistently_unhealthy",
        "task_no_successful_model_calls",
    }
)
"""The checks that `health_check_ignored_checks` may name."""
_PART: Final = re.compile(r"([0-9]{1,9})/([0-9]{1,9})")
_DRIVER: Final = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*")


def _whole(value: object) -> object:
    if isinstance(value, bool) or (isinstance(value, float) and not value.is_integer()):
        raise ValueError(f"{value} is no whole number")
    return value


def _listed(value: object) -> object:
    if isinstance(value, str):
        return [item.strip() for item in value.split(",") if item.strip()]
    return [] if value is None else value


def _ids(value: object) -> object:
    ids = _listed(value) if isinstance(value, str) else value
    if not isinstance(ids, list | tuple) or not ids:
        raise ValueError("give the ids of tasks, for example [a,b], or leave it out for all")
    odd = [repr(one) for one in ids if not isinstance(one, str | int) or isinstance(one, bool)]
    if odd:
        raise ValueError(f"{', '.join(odd)} is no id of a task; an id is text or a whole number")
    return [str(one) for one in ids]


def _count_or_share(value: object) -> object:
    number = _number(value)
    if isinstance(number, float) and number.is_integer() and number != 1:
        number = int(number)
    if not (number >= 1 if isinstance(number, int) else 0 < number < 1):
        raise ValueError("give a count from 1 on, or a share such as 0.2; 1.0 could be either")
    return number


def _part(value: object) -> object:
    found = _PART.fullmatch(value) if isinstance(value, str) else None
    if found is None or not 1 <= int(found[1]) <= int(found[2]):
        raise ValueError("give K/N, of N parts the K-th from 1 on, for example 1/4")
    return value


def _number(value: object) -> int | float:
    """Return a number as it was written; 0 for what is none."""
    if isinstance(value, str):
        try:
            return int(value) if value.isdecimal() else float(value)
        except ValueError:
            return 0
    return value if isinstance(value, int | float) and not isinstance(value, bool) else 0


def _urls(value: object) -> object:
    if not isinstance(value, list | tuple) or not all(isinstance(url, str) and _is_url(url) for url in value):
        raise ValueError("give a list of URLs, written '[http://host:port,http://other:port]'")
    return value


def _no_json_numbers(name: str, value: object) -> Iterator[str]:
    """Yield every number in `value` that JSON has not, with its place."""
    if isinstance(value, float) and not math.isfinite(value):
        yield f"{name} is {value}"
    elif isinstance(value, dict):
        yield from (text for key, item in value.items() for text in _no_json_numbers(f"{name}.{key}", item))
    elif isinstance(value, list | tuple):
        yield from (text for at, item in enumerate(value) for text in _no_json_numbers(f"{name}[{at}]", item))


def _is_url(text: str) -> bool:
    try:
        parts = urlsplit(text)
        port_is_one = parts.port is None or parts.port > 0
    except ValueError:
        return False
    return parts.scheme in {"http", "https"} and bool(parts.hostname) and port_is_one


Whole = Annotated[int, BeforeValidator(_whole)]
Positive = Annotated[Whole, Field(ge=1)]
NotNegative = Annotated[Whole, Field(ge=0)]
Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Time = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Ratio = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, le=1)]
StopAfter = Annotated[int | float, BeforeValidator(_count_or_share)]
"""A count of failures, or their share of what ended."""
TaskShard = Annotated[str, BeforeValidator(_part)]
"""One of several parts of a dataset, `K/N`."""
TaskIds = Annotated[list[str], BeforeValidator(_ids)]
"""Ids of tasks, as a list or one text with commas."""
Names = Annotated[list[str], BeforeValidator(_listed)]
"""A list of names, or one text with commas."""


class SkillsConfig(BaseModel):
    """Where the skills lie that every row is given."""

    model_config = ConfigDict(defer_build=True)

    path: str


class RunHealthConfig(BaseModel):
    """Health checks after a run, the shares that it may have of what is not healthy, and what a headline speaks for.

    `min_coverage`: the share of the plan that is measured at least where a headline is given; 0.95 where none is set.
    """

    model_config = ConfigDict(defer_build=True)

    disable_health_check: bool = False
    health_check_workers: Positive | None = None
    health_check_ignored_checks: Names = Field(default_factory=list)
    max_failed_fraction: Share | None = None
    max_missing_fraction: Share | None = None
    max_unhealthy_fraction: Share | None = None
    min_coverage: Share | None = None

    @field_validator("health_check_ignored_checks")
    @classmethod
    def _known_checks(cls, names: list[str]) -> list[str]:
        unknown = [name for name in names if name not in HEALTH_CHECK_IDS]
        if unknown:
            raise ValueError(
                f"unknown health checks: {', '.join(unknown)}; known: {', '.join(sorted(HEALTH_CHECK_IDS))}"
            )
        return names


class SharedRolloutCollectionConfig(
    CompletionMixin, UploadMixin, RemovedRolloutOptionsMixin, RunHealthConfig, BaseNeMoGymCLIConfig
):
    """What a collection is told whether it serves or not."""

    num_samples_in_parallel: Positive | None = None
    max_resident_rollout_tasks: Positive | None = None
    retain_results_in_memory: bool = True
    responses_create_params: dict[str, object] = Field(default_factory=dict)
    disable_aggregation: bool = False
    count_failure_classes_as_zero: Names = Field(default_factory=list)
    count_missing_rollouts_as_zero: bool = False
    route_failures_to_sidecar: bool = False
    rollout_collection_driver: str | None = None
    environment_routing_mode: Literal["agent", "legacy", "taskset"] = "agent"
    environment_server_name: str | None = None
    environment_server_routes: dict[str, str] = Field(default_factory=dict)
    environment_protocol_violation_stop_after: NotNegative = 8
    batch_manifest_fpath: str | None = None

    @field_validator("output_jsonl_fpath")
    @classmethod
    def _output_is_a_file_name(cls, output: str) -> str:
        if not Path(output).name or output.endswith("/"):
            raise ValueError("the output is a file name; write for example out/rollouts.jsonl")
        return output

    @field_validator("responses_create_params")
    @classmethod
    def _parameters_are_json(cls, parameters: dict[str, object]) -> dict[str, object]:
        odd = [text for name, value in parameters.items() for text in _no_json_numbers(name, value)]
        if odd:
            raise ValueError(f"{', '.join(odd)}, which is no JSON number and would be sent as null; give a finite one")
        return parameters

    @field_validator("rollout_collection_driver")
    @classmethod
    def _driver_names_a_function(cls, driver: str | None) -> str | None:
        if driver is not None and not _DRIVER.fullmatch(driver):
            raise ConfigError(f"rollout_collection_driver is `{driver}`; write it as module.path:function")
        return driver

    @model_validator(mode="after")
    def _routing_has_its_target(self) -> Self:
        if self.environment_routing_mode == "legacy" and not self.environment_server_name:
            raise ValueError(
                "environment_routing_mode=legacy needs environment_server_name; "
                "add +environment_server_name=<environment server>"
            )
        if self.environment_routing_mode == "taskset" and not self.environment_server_routes:
            raise ValueError(
                "environment_routing_mode=taskset needs environment_server_routes; "
                "add +environment_server_routes={<taskset>: <environment server>}"
            )
        return self

    @property
    def materialized_jsonl_fpath(self) -> Path:
        """The file that holds the plan: every row to be sent, beside the output."""
        output = Path(self.output_jsonl_fpath)
        return output.with_name(f"{output.stem}_materialized_inputs.jsonl")


class E2ERolloutCollectionConfig(SharedRolloutCollectionConfig):
    """A collection that prepares data, serves, collects and stops serving."""

    split: Literal["train", "validation", "benchmark"]
    reuse_existing_data_preparation: bool = False

    @model_validator(mode="before")
    @classmethod
    def _refuse_what_serving_decides(cls, data: object) -> object:
        get = getattr(data, "get", None)
        if get is None:
            return data
        if get("split") == "example":
            raise ConfigError(
                "split=example is not prepared; run example data without a split, or with `--no-serve --input <file>`"
            )
        if get("input_jsonl_fpath") is not None:
            raise ConfigError(
                "input_jsonl_fpath is not supported when serving end-to-end: the rows come from the data sets of the "
                "chosen split; use --no-serve with --input"
            )
        return data


class RolloutCollectionConfig(SharedRolloutCollectionConfig):
    """A collection from a file of rows, against servers that run already."""

    input_jsonl_fpath: str
    agent_name: str | None = None
    agent_map: dict[str, str] | None = None
    fan_out: dict[str, list[str]] | None = None
    limit: NotNegative | None = None
    task_shard: TaskShard | None = None
    task_ids: TaskIds | None = None
    num_repeats: int | dict[str, int] = 1
    num_repeats_add_seed: bool | dict[str, bool] = False
    interleave_repeats: bool = False
    prompt_config: str | None = None
    skills: SkillsConfig | None = None
    resume_from_cache: bool = False
    resubmit: bool = False
    overwrite: bool = False
    allow_unsafe_resume: bool = False
    attempt_extension: NotNegative = 0
    retry_terminal_timeouts: bool = False
    record_omitted_rollouts: bool = False
    dispatch_budget_s: Seconds | None = None
    drain_margin_s: Seconds | None = None
    dispatch_longest_first: bool = False
    dispatch_connect_grace_s: Seconds = 60.0
    retry_for_s: Seconds = 600.0
    rollout_timeout_s: Time | None = None
    rollout_connect_timeout_s: Time = 10.0
    rollout_response_timeout_s: Time | None = None
    rollout_body_timeout_s: Time = 600.0
    max_reply_bytes: Positive = 512 * 1024 * 1024
    stop_after_failures: StopAfter | None = None
    group_scored: bool = False
    adaptive_concurrency: bool = False
    interrupt_grace_s: Seconds = 20.0
    durability: Literal["sync", "flush", "off"] = "sync"
    take_over: bool = False
    dispatch_start_report_within_s: Seconds | None = None
    dispatch_start_report_min_fraction: Share = 0.95
    dispatch_all_started_within_s: Seconds | None = None
    long_rollout_s: Seconds | None = None
    long_rollout_max_fraction: Share = 0.05
    timed_out_max_fraction: Share = 0.01
    server_queue_metrics_urls: Annotated[list[str], BeforeValidator(_urls)] | None = None
    server_queue_sample_interval_s: Time = 30.0
    server_queue_max_waiting_ratio: Ratio = 0.5
    timing_summary_interval_s: Time | None = None

    @field_validator("num_repeats", mode="before")
    @classmethod
    def _whole_repeats(cls, value: object) -> object:
        return checked_repeats(value)

    @field_validator("agent_name")
    @classmethod
    def _agent_has_a_name(cls, agent: str | None) -> str | None:
        if agent == "":
            raise ValueError("the agent has no name; leave it out, and every row goes to the agent that it names")
        return agent

    @field_validator("agent_map")
    @classmethod
    def _map_names_agents(cls, agent_map: dict[str, str] | None) -> dict[str, str] | None:
        checked_agent_map(agent_map or {})
        return agent_map

    @field_validator("fan_out")
    @classmethod
    def _fan_out_lists(cls, fan_out: dict[str, list[str]] | None) -> dict[str, list[str]] | None:
        checked_fan_out(fan_out or {})
        return fan_out

    @model_validator(mode="after")
    def _agent_name_is_the_default(self) -> Self:
        if self.agent_name is None:
            return self
        given = (self.agent_map or {}).get(DEFAULT_KEY, self.agent_name)
        if given != self.agent_name:
            raise ValueError(
                f"agent_name={self.agent_name} and agent_map.{DEFAULT_KEY}={given} are two answers to one question; "
                "keep one of them"
            )
        self.agent_map = {**(self.agent_map or {}), DEFAULT_KEY: self.agent_name}
        return self

    @model_validator(mode="after")
    def _budget_needs_concurrency(self) -> Self:
        limited = self.num_samples_in_parallel is not None or self.adaptive_concurrency
        if self.dispatch_budget_s is not None and not limited:
            raise ValueError(
                "dispatch_budget_s needs num_samples_in_parallel: without lanes everything starts at once; "
                "add --concurrency <n>"
            )
        return self

    @model_validator(mode="after")
    def _one_way_with_an_earlier_run(self) -> Self:
        self.resume_from_cache = self.resume_from_cache or self.resubmit
        if self.overwrite and self.resume_from_cache:
            raise ValueError(
                "`overwrite` (--overwrite) and `resume_from_cache` (--resume, --resubmit) exclude each other; keep one"
            )
        return self


class RolloutAggregationConfig(CompletionMixin, RunHealthConfig, BaseNeMoGymCLIConfig):
    """Scores from result files that are there already."""

    input_glob: str
    merge_shards: bool = True
    count_failure_classes_as_zero: Names = Field(default_factory=list)
    count_missing_rollouts_as_zero: bool = False
    batch_manifest_fpath: str | None = None
    materialized_inputs_jsonl_fpath: str | None = None
    retry_terminal_timeouts: bool = False
