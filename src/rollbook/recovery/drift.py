"""What a changed setting means for a run that is to go on: one table of patterns.

Rules:
* The first row that matches decides; a key that no row knows re-runs, for that refuses.
* Only what can change neither what is asked nor how an answer is scored is irrelevant: how fast, where to, with whose
  key, and what is reported.
* What is sent to a model as it stands (`extra_body` and its like) re-runs, whatever its keys are called.
* A setting that only shapes the plan extends: the plan's rows, not the setting's own digest, say whether it changed
  anything.

In a pattern `*` stands for any text within one step of a key, a step `**` for any number of steps.

Source: collection.md §1.8, §5.4, §10; cases RC-16, RC-18.
"""

import functools
import re
from collections.abc import Iterator
from enum import StrEnum
from typing import Final

from rollbook.recovery.credentials import names_credential


class Drift(StrEnum):
    """What a difference between two settings of one run asks for."""

    IRRELEVANT = "irrelevant"
    EXTENDS = "extends"
    RESCORES = "re-scores"
    RERUNS = "re-runs"


BLOCK_DEPTH: Final = 3
"""Steps above a server's own settings: instance, server type, implementation."""
SETTINGS: Final = "settings"
INPUTS: Final = "inputs"

_SPEED: Final = """
    num_samples_in_parallel max_resident_rollout_tasks retain_results_in_memory durability retry_for_s
    interrupt_grace_s route_failures_to_sidecar record_omitted_rollouts retry_terminal_timeouts max_rollout_attempts
    attempt_extension environment_protocol_violation_stop_after dispatch_budget_s drain_margin_s dispatch_longest_first
    dispatch_connect_grace_s rollout_timeout_s rollout_connect_timeout_s rollout_response_timeout_s
    rollout_body_timeout_s max_reply_bytes stop_after_failures adaptive_concurrency
"""
_REPORTING: Final = """
    output_jsonl_fpath require_complete disable_aggregation count_failure_classes_as_zero
    count_missing_rollouts_as_zero batch_manifest_fpath upload_rollouts disable_health_check health_check_workers
    health_check_ignored_checks max_failed_fraction max_missing_fraction max_unhealthy_fraction min_coverage
    dispatch_start_report_within_s dispatch_start_report_min_fraction dispatch_all_started_within_s long_rollout_s
    long_rollout_max_fraction timed_out_max_fraction server_queue_metrics_urls server_queue_sample_interval_s
    server_queue_max_waiting_ratio timing_summary_interval_s progress verbose
"""
_ASKED_ANEW: Final = """
    resume_from_cache resubmit overwrite allow_unsafe_resume take_over reuse_existing_data_preparation
"""
_PLAN: Final = """
    limit task_shard num_repeats num_repeats_add_seed interleave_repeats input_jsonl_fpath split task_ids agent_name
    agent_map fan_out prompt_config skills responses_create_params environment_routing_mode environment_server_name
    environment_server_routes
"""
_OTHER_MEANING: Final = "rollout_collection_driver group_scored"

_JUDGES: Final = ("*judge", "*judge_model", "*judge_server", "*judge_model_server")
_BODIES: Final = ("extra_body", "sampling_overrides", "chat_template_kwargs", "responses_create_params")
_OWN: Final = """
    host port num_workers domain description verified allowed_agents allowed_model_types verbose telemetry logging
    queue_timeout_seconds cleanup_timeout_seconds session_close_retry_window_seconds
"""
_OF_AN_ENDPOINT: Final = """
    url urls *_url *_urls timeout *_timeout *_timeout_s *_timeout_seconds max_retries *_retries max_http_attempts
    endpoint_file endpoint_stale_grace_s endpoint_check_interval_s threads parallel_slots latency faults
"""
_ANYWHERE: Final = """
    base_url *_base_url base_urls server_url server_urls *_server_url endpoint_url endpoint_urls *_endpoint_url
    metrics_url metrics_urls api_base num_workers max_workers concurrency *_concurrency max_concurrent_* log_dir
    *_log_dir log_level *_log_level capture_dir *_capture_dir cache_dir *_cache_dir
"""


def _rows() -> Iterator[tuple[str, Drift]]:
    for names, drift in (
        (_SPEED + _REPORTING + _ASKED_ANEW, Drift.IRRELEVANT),
        (_PLAN, Drift.EXTENDS),
        (_OTHER_MEANING, Drift.RERUNS),
    ):
        yield from ((f"{SETTINGS}.{name}.**", drift) for name in names.split())
    yield f"{SETTINGS}.**", Drift.RERUNS
    yield f"{INPUTS}.*", Drift.EXTENDS
    for body in _BODIES:
        yield from ((f"{judge}.responses_api_models.*.**.{body}.**", Drift.RESCORES) for judge in _JUDGES)
        yield f"*.resources_servers.*.**.{body}.**", Drift.RESCORES
        yield f"*.*.*.**.{body}.**", Drift.RERUNS
    yield from ((f"*.*.*.{name}.**", Drift.IRRELEVANT) for name in _OWN.split())
    yield from ((f"*.*.*.**.{name}", Drift.IRRELEVANT) for name in _ANYWHERE.split())
    yield from ((f"*.responses_api_models.*.{name}.**", Drift.IRRELEVANT) for name in _OF_AN_ENDPOINT.split())
    yield "*.*.*.datasets.**", Drift.EXTENDS
    yield "*.resources_servers.*.**", Drift.RESCORES
    yield from ((f"{judge}.responses_api_models.*.**", Drift.RESCORES) for judge in _JUDGES)
    yield "*.*.*.**.*judge*.**", Drift.RESCORES
    yield "*.responses_api_agents.*.skip_verification*", Drift.RESCORES


@functools.cache
def _compiled(pattern: str) -> re.Pattern[str]:
    """Return a pattern as an expression over a key whose every step ends in a dot."""
    steps = pattern.split(".")
    texts = (r"(?:[^.]+\.)*" if step == "**" else re.escape(step).replace(r"\*", "[^.]*") + r"\." for step in steps)
    return re.compile("".join(texts))


def _mark_of(pattern: str) -> str:
    """Return text that stands in every key which `pattern` matches: a row without it is not compiled."""
    return [text for text in re.split(r"[.*]+", pattern) if text][-1]


TABLE: Final = tuple(_rows())
_MARKED: Final = tuple((_mark_of(pattern), pattern, drift) for pattern, drift in TABLE)
_QUOTED: Final = re.compile(r'"(?:[^"\\]|\\.)*"')
_POSITION: Final = re.compile(r"\[\d+\]")


@functools.lru_cache(maxsize=4096)
def drift_of(key: str) -> Drift:
    """Return what a difference at a dotted key asks for."""
    steps = _steps(key)
    if steps[0] != SETTINGS and any(map(names_credential, steps[BLOCK_DEPTH:])):
        return Drift.IRRELEVANT
    text = "".join(f"{step}." for step in steps)
    found = (drift for mark, pattern, drift in _MARKED if mark in text and _matches(pattern, text))
    return next(found, Drift.RERUNS)


def _matches(pattern: str, text: str) -> bool:
    """Whether a key whose every step ends in a dot matches; most patterns are a name and whatever is below it."""
    start = pattern.removesuffix("**")
    if start != pattern and "*" not in start:
        return text.startswith(start)
    return _compiled(pattern).fullmatch(text) is not None


def instance_of(key: str) -> str:
    """Return the first step of a dotted key: the server instance, or `settings`."""
    return _steps(key)[0]


def step_below(key: str) -> str:
    """Return the second step of a dotted key: of `settings`, the setting; nothing where there is none."""
    return "".join(_steps(key)[1:2])


def _steps(key: str) -> list[str]:
    """Return a key's steps without list positions; a dot inside a quoted step divides nothing."""
    flat = _QUOTED.sub(lambda found: found[0].replace(".", "_"), key)
    return _POSITION.sub("", flat).split(".")
