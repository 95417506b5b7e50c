"""What a changed setting means for a run that is to go on."""

import pytest

from rollbook.config.collection import E2ERolloutCollectionConfig, RolloutCollectionConfig
from rollbook.recovery.drift import TABLE, Drift, drift_of

IRRELEVANT, EXTENDS, RESCORES, RERUNS = Drift.IRRELEVANT, Drift.EXTENDS, Drift.RESCORES, Drift.RERUNS
MODEL = "policy_model.responses_api_models.vllm_model"
AGENT = "math_with_judge_simple_agent.responses_api_agents.simple_agent"
ENVIRONMENT = "math_environment.environment_servers.single_agent_turn"
VERIFIER = "math_with_judge.resources_servers.math_with_judge"
JUDGE = "equivalence_judge_model.responses_api_models.openai_model"

ROWS = [
    ("concurrency", "settings.num_samples_in_parallel", IRRELEVANT),
    ("residency", "settings.max_resident_rollout_tasks", IRRELEVANT),
    ("retention", "settings.retain_results_in_memory", IRRELEVANT),
    ("durability", "settings.durability", IRRELEVANT),
    ("time to retry in", "settings.retry_for_s", IRRELEVANT),
    ("grace after a signal", "settings.interrupt_grace_s", IRRELEVANT),
    ("routing of failures", "settings.route_failures_to_sidecar", IRRELEVANT),
    ("omitted rows", "settings.record_omitted_rollouts", IRRELEVANT),
    ("time to dispatch in", "settings.dispatch_budget_s", IRRELEVANT),
    ("order of dispatch", "settings.dispatch_longest_first", IRRELEVANT),
    ("output path", "settings.output_jsonl_fpath", IRRELEVANT),
    ("strictness", "settings.require_complete", IRRELEVANT),
    ("classes that count as zero", "settings.count_failure_classes_as_zero", IRRELEVANT),
    ("missing ones as zero", "settings.count_missing_rollouts_as_zero", IRRELEVANT),
    ("health checks", "settings.health_check_ignored_checks", IRRELEVANT),
    ("upload", "settings.upload_rollouts", IRRELEVANT),
    ("timing report", "settings.timing_summary_interval_s", IRRELEVANT),
    ("addresses of queue metrics", "settings.server_queue_metrics_urls[0]", IRRELEVANT),
    ("resume itself", "settings.resume_from_cache", IRRELEVANT),
    ("limit", "settings.limit", EXTENDS),
    ("repeats", "settings.num_repeats", EXTENDS),
    ("repeats of one agent", 'settings.num_repeats."agent.v1"', EXTENDS),
    ("seeds", "settings.num_repeats_add_seed", EXTENDS),
    ("order of repeats", "settings.interleave_repeats", EXTENDS),
    ("dataset path", "settings.input_jsonl_fpath", EXTENDS),
    ("dataset content", "inputs.input_jsonl_fpath", EXTENDS),
    ("agent name", "settings.agent_name", EXTENDS),
    ("agent map", "settings.agent_map._default", EXTENDS),
    ("agent map of an agent with a setting's name", "settings.agent_map.host", EXTENDS),
    ("fan-out", "settings.fan_out.math", EXTENDS),
    ("prompt", "settings.prompt_config", EXTENDS),
    ("skills", "settings.skills.path", EXTENDS),
    ("sampling of rows", "settings.responses_create_params.temperature", EXTENDS),
    ("routes", "settings.environment_server_routes.math", EXTENDS),
    ("datasets of a server", f"{AGENT}.datasets[0].jsonl_fpath", EXTENDS),
    ("driver", "settings.rollout_collection_driver", RERUNS),
    ("unknown setting", "settings.something_else", RERUNS),
    ("model name", f"{MODEL}.model", RERUNS),
    ("model of another kind", "policy_model.responses_api_models.openai_model.openai_model", RERUNS),
    ("reasoning parser", f"{MODEL}.uses_reasoning_parser", RERUNS),
    ("sampling override", f"{MODEL}.sampling_overrides.temperature", RERUNS),
    ("sent as it stands, whatever its name", f"{MODEL}.extra_body.timeout", RERUNS),
    ("sent as it stands, named like an address", f"{MODEL}.extra_body.base_url", RERUNS),
    ("sent to an agent's model", f"{AGENT}.responses_create_params.num_workers", RERUNS),
    ("chat template", f"{MODEL}.chat_template_kwargs.enable_thinking", RERUNS),
    ("most output tokens", f"{MODEL}.max_output_tokens", RERUNS),
    ("tokenizer", f"{MODEL}.tokenizer", RERUNS),
    ("model endpoint", f"{MODEL}.base_url", IRRELEVANT),
    ("one of several endpoints", f"{MODEL}.base_url[1]", IRRELEVANT),
    ("endpoint of another kind", "policy_model.responses_api_models.openai_model.openai_base_url", IRRELEVANT),
    ("API key", f"{MODEL}.api_key", IRRELEVANT),
    ("headers", f"{MODEL}.default_headers", IRRELEVANT),
    ("attempts over HTTP", f"{MODEL}.max_http_attempts", IRRELEVANT),
    ("a model's timeout", f"{MODEL}.request_timeout_s", IRRELEVANT),
    ("simulated latency", "policy_model.responses_api_models.simulated_model.latency.mean_seconds", IRRELEVANT),
    ("simulated faults", "policy_model.responses_api_models.simulated_model.faults.server_error", IRRELEVANT),
    ("simulated policy", "policy_model.responses_api_models.simulated_model.policy.p_correct", RERUNS),
    ("agent's steps", f"{AGENT}.max_steps", RERUNS),
    ("an agent's own faults", f"{AGENT}.faults", RERUNS),
    ("an agent's own timeout", f"{AGENT}.tool_timeout_seconds", RERUNS),
    ("an agent's web page", f"{AGENT}.start_url", RERUNS),
    ("agent's model", f"{AGENT}.model_server.name", RERUNS),
    ("skipped verification", f"{AGENT}.skip_verification", RESCORES),
    ("agent's processes", f"{AGENT}.num_workers", IRRELEVANT),
    ("agent's log folder", f"{AGENT}.log_dir", IRRELEVANT),
    ("environment's transports", f"{ENVIRONMENT}.resources_tool_transports", RERUNS),
    ("environment's episode time", f"{ENVIRONMENT}.default_episode_timeout_seconds", RERUNS),
    ("environment's lanes", f"{ENVIRONMENT}.max_concurrent_episodes", IRRELEVANT),
    ("environment's host", f"{ENVIRONMENT}.host", IRRELEVANT),
    ("environment's port", f"{ENVIRONMENT}.port", IRRELEVANT),
    ("a port that an agent is to test", f"{AGENT}.sandbox.port", RERUNS),
    ("verifier setting", f"{VERIFIER}.should_use_judge", RESCORES),
    ("verifier's time", f"{VERIFIER}.library_verifier_timeout_seconds", RESCORES),
    ("unknown verifier setting", f"{VERIFIER}.something_else", RESCORES),
    ("verifier's judge", f"{VERIFIER}.judge_model_server.name", RESCORES),
    ("judge's sampling", f"{VERIFIER}.judge_responses_create_params.temperature", RESCORES),
    ("verifier's own request body", f"{VERIFIER}.responses_create_params.temperature", RESCORES),
    ("verifier's concurrency", f"{VERIFIER}.library_verifier_max_concurrency", IRRELEVANT),
    ("verifier's domain", f"{VERIFIER}.domain", IRRELEVANT),
    ("judge model", f"{JUDGE}.openai_model", RESCORES),
    ("judge's request body", f"{JUDGE}.extra_body.seed", RESCORES),
    ("judge's endpoint", f"{JUDGE}.openai_base_url", IRRELEVANT),
    ("judge's API key", f"{JUDGE}.openai_api_key", IRRELEVANT),
    ("judge inside an environment", f"{ENVIRONMENT}.judge.prompt", RESCORES),
    ("an agent named after a judge", f"{AGENT}.resources_server.name", RERUNS),
    ("an instance named like a credential", "token.responses_api_models.vllm_model.model", RERUNS),
    ("an instance named like the inputs", "inputs.responses_api_models.vllm_model.model", RERUNS),
    ("an instance named like the settings", "settings.responses_api_models.vllm_model.host", RERUNS),
    ("unknown setting with a known ending", "settings.a.b.c.host", RERUNS),
    ("no server at all", "something", RERUNS),
]


@pytest.mark.parametrize(("key", "drift"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_a_difference_means_what_the_table_says(key, drift):
    assert drift_of(key) is drift


FIELDS = sorted({*RolloutCollectionConfig.model_fields, *E2ERolloutCollectionConfig.model_fields})


@pytest.mark.parametrize("name", FIELDS)
def test_every_collection_setting_is_in_the_table_by_its_own_name(name):
    assert f"settings.{name}.**" in {pattern for pattern, _ in TABLE}


def test_the_table_names_no_pattern_twice():
    patterns = [pattern for pattern, _ in TABLE]
    assert sorted(patterns) == sorted(set(patterns))
