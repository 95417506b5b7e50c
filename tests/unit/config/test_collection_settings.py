"""The settings of collection, aggregation and reverification: every option and every rule between options."""

from pathlib import Path

import pytest
from omegaconf import OmegaConf
from pydantic import ValidationError

from rollbook.config.collection import (
    HEALTH_CHECK_IDS,
    BaseNeMoGymCLIConfig,
    E2ERolloutCollectionConfig,
    RolloutAggregationConfig,
    RolloutCollectionConfig,
    SharedRolloutCollectionConfig,
)
from rollbook.config.reverification import RolloutReverificationConfig
from rollbook.config.settings import settings_from
from rollbook.errors import ConfigError

PLAIN = {"input_jsonl_fpath": "in.jsonl", "output_jsonl_fpath": "out/rollouts.v1.jsonl"}
E2E = {"split": "train", "output_jsonl_fpath": "out/rollouts.jsonl"}
AGGREGATION = {"input_glob": "out/*.jsonl", "output_jsonl_fpath": "out/all.jsonl"}
GYM = {"materialized_inputs_jsonl_fpath": "m.jsonl", "rollouts_jsonl_fpath": "r.jsonl", "output_jsonl_fpath": "o.jsonl"}
ATIF = {
    "input_format": "atif",
    "materialized_inputs_jsonl_fpath": "m.jsonl",
    "atif_manifest_jsonl_fpath": "a.jsonl",
    "output_jsonl_fpath": "o.jsonl",
}


def plain(**options):
    return settings_from(RolloutCollectionConfig, {**PLAIN, **options})


DEFAULTS = {
    "require_complete": False,
    "num_samples_in_parallel": None,
    "max_resident_rollout_tasks": None,
    "retain_results_in_memory": True,
    "responses_create_params": {},
    "disable_aggregation": False,
    "disable_health_check": False,
    "health_check_workers": None,
    "health_check_ignored_checks": [],
    "count_failure_classes_as_zero": [],
    "count_missing_rollouts_as_zero": False,
    "route_failures_to_sidecar": False,
    "rollout_collection_driver": None,
    "environment_routing_mode": "agent",
    "environment_server_name": None,
    "environment_server_routes": {},
    "upload_rollouts": True,
    "environment_protocol_violation_stop_after": 8,
    "batch_manifest_fpath": None,
    "max_failed_fraction": None,
    "max_missing_fraction": None,
    "max_unhealthy_fraction": None,
    "agent_name": None,
    "agent_map": None,
    "fan_out": None,
    "limit": None,
    "num_repeats": 1,
    "num_repeats_add_seed": False,
    "interleave_repeats": False,
    "prompt_config": None,
    "skills": None,
    "resume_from_cache": False,
    "resubmit": False,
    "overwrite": False,
    "allow_unsafe_resume": False,
    "retry_terminal_timeouts": False,
    "record_omitted_rollouts": False,
    "dispatch_budget_s": None,
    "drain_margin_s": None,
    "dispatch_longest_first": False,
    "dispatch_connect_grace_s": 60.0,
    "dispatch_start_report_within_s": None,
    "dispatch_start_report_min_fraction": 0.95,
    "dispatch_all_started_within_s": None,
    "long_rollout_s": None,
    "long_rollout_max_fraction": 0.05,
    "timed_out_max_fraction": 0.01,
    "server_queue_metrics_urls": None,
    "server_queue_sample_interval_s": 30.0,
    "server_queue_max_waiting_ratio": 0.5,
    "timing_summary_interval_s": None,
}
OURS = {
    "task_ids": None,
    "min_coverage": None,
    "task_shard": None,
    "attempt_extension": 0,
    "durability": "sync",
    "interrupt_grace_s": 20.0,
    "retry_for_s": 600.0,
    "take_over": False,
    "adaptive_concurrency": False,
    "group_scored": False,
    "max_reply_bytes": 536870912,
    "rollout_body_timeout_s": 600.0,
    "rollout_connect_timeout_s": 10.0,
    "rollout_response_timeout_s": None,
    "rollout_timeout_s": None,
    "stop_after_failures": None,
}
"""Options that the contract does not have."""


def test_every_option_has_the_default_of_the_contract():
    assert plain().model_dump() == {**PLAIN, **DEFAULTS, **OURS}


@pytest.mark.parametrize(
    ("options", "name", "value"),
    [
        ({"limit": 0}, "limit", 0),
        ({"limit": None}, "limit", None),
        ({"limit": 3}, "limit", 3),
        ({"num_repeats": None}, "num_repeats", 1),
        ({"num_repeats": 4}, "num_repeats", 4),
        ({"num_repeats": {"a": 2, "_default": 1}}, "num_repeats", {"a": 2, "_default": 1}),
        ({"num_repeats_add_seed": {"a": True}}, "num_repeats_add_seed", {"a": True}),
        ({"agent_name": "a"}, "agent_map", {"_default": "a"}),
        ({"agent_name": "a", "agent_map": {"_default": "a", "b": "c"}}, "agent_map", {"_default": "a", "b": "c"}),
        ({"fan_out": {"a": ["x", "y"]}}, "fan_out", {"a": ["x", "y"]}),
        ({"task_ids": [1, "b", "03"]}, "task_ids", ["1", "b", "03"]),
        ({"task_ids": "a, b"}, "task_ids", ["a", "b"]),
        ({"task_ids": None}, "task_ids", None),
        ({"resubmit": True}, "resume_from_cache", True),
        (
            {"health_check_ignored_checks": "model_call_failed, agent_turn_hollow"},
            "health_check_ignored_checks",
            ["model_call_failed", "agent_turn_hollow"],
        ),
        ({"health_check_ignored_checks": None}, "health_check_ignored_checks", []),
        ({"count_failure_classes_as_zero": "judge_failed"}, "count_failure_classes_as_zero", ["judge_failed"]),
        ({"dispatch_budget_s": 5, "num_samples_in_parallel": 2}, "dispatch_budget_s", 5.0),
        ({"drain_margin_s": 0}, "drain_margin_s", 0.0),
        ({"rollout_collection_driver": "pkg.mod:run"}, "rollout_collection_driver", "pkg.mod:run"),
        ({"skills": {"path": "s"}}, "skills", {"path": "s"}),
        ({"retry_invalid_judge_responses": False}, "limit", None),
        ({"responses_create_params": {"temperature": 1.0}}, "responses_create_params", {"temperature": 1.0}),
    ],
)
def test_what_is_given_is_kept_or_brought_to_one_form(options, name, value):
    assert plain(**options).model_dump()[name] == value


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (
            {"limit": -1},
            ["`limit` (--limit)", "greater than or equal to 0", "0 runs no task", "leave it out to run all"],
        ),
        ({"limit": 1.5}, ["`limit`", "1.5 is no whole number"]),
        ({"limit": True}, ["`limit`", "no whole number"]),
        ({"num_repeats": 0}, ["`num_repeats` (--num-repeats)", "from 1 on", "num_repeats: 0"]),
        ({"num_repeats": -1}, ["num_repeats: -1"]),
        ({"num_repeats": 2.5}, ["num_repeats: 2.5"]),
        ({"num_repeats": True}, ["num_repeats: True"]),
        ({"num_repeats": {"a": 0, "b": 2, "c": 1.5}}, ["a: 0, c: 1.5"]),
        ({"num_samples_in_parallel": 0}, ["`num_samples_in_parallel` (--concurrency)", "a whole number from 1 on"]),
        ({"num_samples_in_parallel": "auto"}, ["as many as pays is written --concurrency auto"]),
        ({"max_resident_rollout_tasks": 0}, ["`max_resident_rollout_tasks`"]),
        ({"health_check_workers": 0}, ["`health_check_workers`"]),
        (
            {"health_check_ignored_checks": ["model_call_failed", "nope"]},
            ["unknown health checks: nope", "model_call_failed"],
        ),
        ({"max_failed_fraction": 1.5}, ["`max_failed_fraction`", "less than or equal to 1"]),
        ({"agent_name": "a", "agent_map": {"_default": "b"}}, ["agent_name=a", "agent_map._default=b"]),
        ({"fan_out": {"a": []}}, ["fan_out.a is empty"]),
        ({"task_ids": []}, ["task_ids", "leave it out for all"]),
        ({"task_ids": [True]}, ["task_ids", "True is no id"]),
        ({"task_ids": [1.5]}, ["task_ids", "1.5 is no id"]),
        ({"task_ids": {"a": 1}}, ["task_ids", "give the ids of tasks"]),
        ({"fan_out": {"a": ["x", "y", "x"]}}, ["fan_out.a lists x more than once"]),
        ({"dispatch_budget_s": 5}, ["dispatch_budget_s", "num_samples_in_parallel"]),
        ({"dispatch_budget_s": -1, "num_samples_in_parallel": 1}, ["`dispatch_budget_s` (--budget)"]),
        ({"drain_margin_s": -1}, ["`drain_margin_s` (--drain-margin)"]),
        ({"rollout_timeout_s": 0}, ["`rollout_timeout_s` (--timeout)", "greater than 0", "leave it out"]),
        ({"server_queue_sample_interval_s": float("inf")}, ["`server_queue_sample_interval_s`", "finite"]),
        ({"server_queue_max_waiting_ratio": float("inf")}, ["`server_queue_max_waiting_ratio`", "finite"]),
        ({"timing_summary_interval_s": float("inf")}, ["`timing_summary_interval_s`", "finite"]),
        ({"server_queue_metrics_urls": "http://127.0.0.1:1"}, ["`server_queue_metrics_urls`", "'[http://host:port,"]),
        (
            {"overwrite": True, "resume_from_cache": True},
            ["`overwrite` (--overwrite) and `resume_from_cache` (--resume, --resubmit) exclude each other; keep one"],
        ),
        ({"interrupt_grace_s": -1}, ["`interrupt_grace_s` (--grace)"]),
        ({"retry_for_s": -1}, ["`retry_for_s` (--retry-for)"]),
        ({"overwrite": True, "resubmit": True}, ["(--overwrite)", "(--resume, --resubmit)"]),
        ({"environment_routing_mode": "legacy"}, ["environment_routing_mode=legacy needs environment_server_name"]),
        ({"environment_routing_mode": "taskset"}, ["environment_routing_mode=taskset needs environment_server_routes"]),
        ({"environment_routing_mode": "other"}, ["`environment_routing_mode`", "'agent', 'legacy' or 'taskset'"]),
        (
            {"rollout_collection_driver": "pkg.mod.run"},
            ["rollout_collection_driver is `pkg.mod.run`", "module.path:function"],
        ),
        ({"retry_invalid_judge_responses": True}, ["removed options", "`retry_invalid_judge_responses`", "reverify"]),
        ({"output_jsonl_fpath": "out/"}, ["`output_jsonl_fpath`", "file name"]),
        ({"output_jsonl_fpath": ""}, ["`output_jsonl_fpath`", "file name"]),
        ({"skills": "folder"}, ["`skills`"]),
        ({"agent_name": ""}, ["`agent_name`", "has no name", "leave it out"]),
        ({"responses_create_params": {"top_p": float("inf")}}, ["`responses_create_params`", "top_p is inf", "null"]),
        ({"responses_create_params": {"temperature": float("nan")}}, ["temperature is nan", "no JSON number"]),
        ({"responses_create_params": {"metadata": {"x": float("-inf")}}}, ["metadata.x is -inf", "no JSON number"]),
        ({"responses_create_params": {"tools": [{}, {"p": [float("nan")]}]}}, ["tools[1].p[0] is nan", "null"]),
    ],
)
def test_what_cannot_be_is_told_with_every_option_it_concerns(options, told):
    with pytest.raises(ConfigError) as caught:
        plain(**options)
    for text in told:
        assert text in str(caught.value)


@pytest.mark.parametrize("value", [0, 1.5, "20%", -1, 1.0, 0.0, True, [1], "", "1.0", float("inf"), float("nan")])
def test_neither_a_count_nor_a_share_of_failures_is_told_in_one_sentence(value):
    with pytest.raises(ConfigError) as caught:
        plain(stop_after_failures=value)
    assert str(caught.value) == (
        "`stop_after_failures`: give a count from 1 on, or a share such as 0.2; 1.0 could be either"
    )


@pytest.mark.parametrize(
    ("value", "kept"), [(1, 1), (20, 20), (0.2, 0.2), (5.0, 5), ("3", 3), ("0.5", 0.5), (None, None)]
)
def test_failures_are_counted_or_their_share_is_taken(value, kept):
    found = plain(stop_after_failures=value).stop_after_failures
    assert (found, type(found)) == (kept, type(kept))


@pytest.mark.parametrize("url", ["127.0.0.1:8000", "ftp://host", "http://", "http://host:port", "http://h:0", "", 5])
def test_what_is_no_url_of_a_queue_is_refused_before_a_run(url):
    with pytest.raises(ConfigError, match=r"`server_queue_metrics_urls`: give a list of URLs"):
        plain(server_queue_metrics_urls=["http://127.0.0.1:8000/metrics", url])


def test_urls_of_queues_are_kept_as_they_are():
    urls = ["http://127.0.0.1:8000", "https://u:p@[::1]/metrics?a=b"]
    assert plain(server_queue_metrics_urls=urls).server_queue_metrics_urls == urls


def test_rules_are_value_errors_for_callers_of_the_class_itself():
    with pytest.raises(ValidationError):
        RolloutCollectionConfig(**PLAIN, num_repeats=0)
    with pytest.raises(ValueError, match="two answers to one question"):
        RolloutCollectionConfig(**PLAIN, agent_name="a", agent_map={"_default": "b"})


@pytest.mark.parametrize(
    ("model", "given", "missing"),
    [
        (RolloutCollectionConfig, {}, "input_jsonl_fpath, output_jsonl_fpath"),
        (RolloutCollectionConfig, {"input_jsonl_fpath": "x"}, "output_jsonl_fpath"),
        (E2ERolloutCollectionConfig, {"output_jsonl_fpath": "x"}, "split"),
        (RolloutAggregationConfig, {"output_jsonl_fpath": "x"}, "input_glob"),
        (RolloutReverificationConfig, {}, "materialized_inputs_jsonl_fpath, output_jsonl_fpath"),
    ],
)
def test_required_options_that_are_missing_are_told_at_once(model, given, missing):
    with pytest.raises(ConfigError) as caught:
        settings_from(model, given)
    names = sorted(missing.split(", "))
    text = str(caught.value)
    assert text.startswith("missing required configuration: ")
    assert sorted(text.removeprefix("missing required configuration: ").split(". Provide")[0].split(", ")) == names
    assert "--output FILE" in text or "output_jsonl_fpath" not in names
    assert "Provide each via its flag (--" in text
    assert text.endswith("=<value> override.")
    assert caught.value.exit_code == 2


def test_a_configuration_object_is_taken_as_it_is_with_everything_else_in_it():
    cfg = OmegaConf.create({**PLAIN, "where": "elsewhere", "prompt_config": "${where}/p.yaml", "policy_api_key": "x"})
    settings = settings_from(RolloutCollectionConfig, cfg)
    assert settings.prompt_config == "elsewhere/p.yaml"
    assert not hasattr(settings, "policy_api_key")


def test_a_refused_value_is_not_repeated():
    with pytest.raises(ConfigError) as caught:
        plain(skills={"path": ["sk-verysecret"]})
    assert "verysecret" not in str(caught.value)


def test_materialized_inputs_lie_beside_the_output():
    assert plain().materialized_jsonl_fpath == Path("out/rollouts.v1_materialized_inputs.jsonl")


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize(
    ("options", "uploads"),
    [
        ({}, True),
        ({"upload_rollouts_to_wandb": False}, False),
        ({"upload_rollouts_to_wandb": True, "upload_rollouts": False}, False),
        ({"upload_rollouts_to_wandb": False, "upload_rollouts": True}, True),
    ],
)
def test_the_old_name_of_uploading_still_works_and_the_new_one_wins(options, uploads):
    assert plain(**options).upload_rollouts is uploads
    assert settings_from(RolloutCollectionConfig, OmegaConf.create({**PLAIN, **options})).upload_rollouts is uploads


def test_the_old_name_of_uploading_is_deprecated():
    with pytest.warns(DeprecationWarning, match="upload_rollouts"):
        plain(upload_rollouts_to_wandb=True)


@pytest.mark.parametrize("split", ["train", "validation", "benchmark"])
def test_serving_end_to_end_takes_a_split(split):
    assert settings_from(E2ERolloutCollectionConfig, {**E2E, "split": split}).split == split


@pytest.mark.parametrize("wrap", [dict, OmegaConf.create])
@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"split": "example"}, "--no-serve --input"),
        ({"input_jsonl_fpath": "in.jsonl"}, "not supported when serving end-to-end"),
    ],
)
def test_what_serving_end_to_end_decides_itself_is_refused(options, told, wrap):
    with pytest.raises(ConfigError, match=told):
        E2ERolloutCollectionConfig.model_validate(wrap({**E2E, **options}))


def test_an_unknown_split_is_refused():
    with pytest.raises(ConfigError, match=r"`split`.*'train', 'validation' or 'benchmark'"):
        settings_from(E2ERolloutCollectionConfig, {**E2E, "split": "test"})


def test_aggregation_has_the_defaults_of_the_contract():
    settings = settings_from(RolloutAggregationConfig, AGGREGATION)
    assert (settings.merge_shards, settings.count_missing_rollouts_as_zero, settings.retry_terminal_timeouts) == (
        True,
        False,
        False,
    )
    with pytest.raises(ConfigError, match="unknown health checks"):
        settings_from(RolloutAggregationConfig, {**AGGREGATION, "health_check_ignored_checks": ["x"]})


@pytest.mark.parametrize(
    ("base", "options", "told"),
    [
        (GYM, {"rollouts_jsonl_fpath": None}, "input_format=gym needs rollouts_jsonl_fpath"),
        (GYM, {"atif_manifest_jsonl_fpath": "a"}, "input_format=gym excludes atif_manifest_jsonl_fpath"),
        (ATIF, {"atif_manifest_jsonl_fpath": None}, "input_format=atif needs atif_manifest_jsonl_fpath"),
        (ATIF, {"rollouts_jsonl_fpath": "r"}, "input_format=atif excludes rollouts_jsonl_fpath"),
        (GYM, {"append": True}, "append needs judge_failed_only"),
        (GYM, {"append": True, "judge_failed_only": True, "overwrite": True}, "append and overwrite"),
        (ATIF, {"judge_failed_only": True}, "input_format=atif excludes judge_failed_only"),
        (ATIF, {"force": True, "resume_from_cache": True}, "input_format=atif excludes force, resume_from_cache"),
        (GYM, {"limit": 0}, "`limit`"),
        (GYM, {"num_samples_in_parallel": 0}, "`num_samples_in_parallel`"),
    ],
)
def test_contradictions_of_a_reverification_are_refused(base, options, told):
    with pytest.raises(ConfigError, match=told):
        settings_from(RolloutReverificationConfig, {**base, **options})


@pytest.mark.parametrize("given", [GYM, ATIF, {**GYM, "append": True, "judge_failed_only": True}])
def test_a_reverification_without_contradiction_is_accepted(given):
    settings = settings_from(RolloutReverificationConfig, given)
    assert settings.upload_rollouts
    assert not settings.overwrite


def test_collections_share_their_base():
    assert issubclass(RolloutCollectionConfig, SharedRolloutCollectionConfig)
    assert issubclass(E2ERolloutCollectionConfig, SharedRolloutCollectionConfig)
    assert issubclass(SharedRolloutCollectionConfig, BaseNeMoGymCLIConfig)
    assert len(HEALTH_CHECK_IDS) == 14
