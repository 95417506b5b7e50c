"""One `gym eval aggregate`, from its flags to what is printed.

Rules:
* Counts, headlines and files go to standard output; notes go to standard error.
* What ended without what it promised is shown as far as it came.

Source: collection.md §6.2, §10.4, §10.7.
"""

import gc
from collections.abc import Mapping
from typing import Any, Final

from rollbook.api.rollout_aggregation import aggregate_shards
from rollbook.api.shard_request import AggregationResult
from rollbook.cli.configuration import given_values, notes_on_strays, resolved_configuration
from rollbook.cli.event_loop import in_event_loop
from rollbook.cli.terminal import note, say, say_error, say_json
from rollbook.config.collection import RolloutAggregationConfig
from rollbook.config.settings import settings_from
from rollbook.errors import DamagedRunError, RunError
from rollbook.records.json_values import JsonObject
from rollbook.report.aggregate_text import aggregate_text
from rollbook.report.shapes import files_json
from rollbook.verbs.metrics_file import doubts_of, warnings_of

_RARELY: Final = 100_000
"""Rows make no cycles; the collector would go through all that waits and find nothing."""

SETTING_KEYS: Final = (
    "count_failure_classes_as_zero",
    "count_missing_rollouts_as_zero",
    "disable_health_check",
    "health_check_ignored_checks",
    "health_check_workers",
    "input_glob",
    "materialized_inputs_jsonl_fpath",
    "merge_shards",
    "min_coverage",
    "output_jsonl_fpath",
    "require_complete",
)


def show_aggregation(given: Mapping[str, Any], *, as_json: bool, verbose: bool) -> int:
    """Aggregate what the flags in `given` name, print what came of it, and return the command's exit code."""
    cfg = resolved_configuration(given, settings=_settings_given(given), verbose=verbose)
    settings = settings_from(RolloutAggregationConfig, cfg)
    for text in notes_on_strays(given, cfg, RolloutAggregationConfig.model_fields):
        note(text)
    gc.set_threshold(_RARELY)
    try:
        result = in_event_loop(aggregate_shards(settings, cfg))
    except RunError as error:
        if not isinstance(error.result, AggregationResult):
            raise
        _show(error.result, as_json=as_json)
        say_error(str(error))
        return DamagedRunError.exit_code if error.result.damaged else error.exit_code
    _show(result, as_json=as_json)
    return DamagedRunError.exit_code if result.damaged else 0


def _settings_given(given: Mapping[str, Any]) -> dict[str, object]:
    settings = given_values(given, SETTING_KEYS)
    if settings.get("count_failure_classes_as_zero") == ():
        del settings["count_failure_classes_as_zero"]
    return {name: list(value) if isinstance(value, tuple) else value for name, value in settings.items()}


def _show(result: AggregationResult, *, as_json: bool) -> None:
    if as_json:
        files = files_json(result.files)
        metrics = [
            {key: value for key, value in entry.items() if key != "group_level_metrics"} for entry in result.metrics
        ]
        told: JsonObject = {"notes": [*result.notes], "warnings": warnings_of(result.metrics)}
        say_json(result.to_json() | {"files": files, "metrics": metrics} | told)
        return
    for text in (*result.notes, *doubts_of(result.metrics)):
        note(text)
    headlines = [(group.label, group.headline) for group in result.groups]
    say(aggregate_text(len(result.shards), result.coverage, headlines, result.metrics, result.files))
