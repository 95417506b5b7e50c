"""Collects rollouts of language-model agents and accounts for every one.

Rules:
* Every public name is importable from here, and resolved when it is first asked for: importing the package is cheap.
* What is not named here is nobody's business but ours.
"""

from importlib import import_module
from typing import Final

__version__: Final = "0.1.0"

_PUBLIC: Final = {
    "rollbook.api.failure_rows": "get_max_rollout_attempts is_terminal_failure",
    "rollbook.api.rejudgment": "rejudgment_admission_closed_by",
    "rollbook.api.direct_errors": "DirectCallError InvalidRolloutResult StaleRolloutResult",
    "rollbook.api.reward_profiler": "RewardProfile RewardProfiler",
    "rollbook.api.rollout_aggregation": "RolloutAggregationHelper",
    "rollbook.api.rollout_collection": "RolloutCollectionHelper",
    "rollbook.api.rollout_records": "RolloutRecords",
    "rollbook.api.rollout_store": "RolloutStore",
    "rollbook.api.row_results": "RowResults",
    "rollbook.api.run_timing": "RunTimingReport",
    "rollbook.config.addresses": "find_open_port",
    "rollbook.config.benchmarks": "BenchmarkConfig BenchmarkDataset",
    "rollbook.config.collection": (
        "BaseNeMoGymCLIConfig E2ERolloutCollectionConfig RolloutAggregationConfig RolloutCollectionConfig "
        "SharedRolloutCollectionConfig"
    ),
    "rollbook.config.component_root": "component_root",
    "rollbook.config.datasets": "BenchmarkDatasetConfig DatasetConfig",
    "rollbook.config.hub_token": "get_hf_token",
    "rollbook.config.key_names": (
        "AGENT_REF_KEY_NAME CACHE_DIR_KEY_NAME DISALLOWED_PORTS_KEY_NAME HF_TOKEN_KEY_NAME "
        "MODEL_CALL_CAPTURE_DIR_KEY_NAME OBSERVABILITY_ENABLED_KEY_NAME RESULTS_DIR_KEY_NAME ROLLOUT_PATH_PREFIX "
        "SKILLS_REF_KEY_NAME TASK_SOURCE_KEY_NAME TOKEN_CAPTURE_PATH_SEGMENT TOKEN_ID_CAPTURE_BLOCK"
    ),
    "rollbook.config.manifest": "EnvironmentManifest manifest_json_schema",
    "rollbook.config.parser": (
        "GlobalConfigDictParser GlobalConfigDictParserConfig get_first_server_config_dict get_global_config_dict "
        "maybe_get_global_config_dict set_global_config_dict"
    ),
    "rollbook.config.roots": "CACHE_DIR PARENT_DIR RESULTS_DIR ROOT_DIR WORKING_DIR resolve_read_path",
    "rollbook.config.reverification": "RolloutReverificationConfig",
    "rollbook.config.shadowing": "refuse_to_shadow",
    "rollbook.config.token_capture": "TokenIdCapture TokenIdCaptureConfig token_id_capture_config",
    "rollbook.config.types": (
        "AgentServerRef BaseRunServerConfig BaseRunServerInstanceConfig BaseServerConfig Domain "
        "EnvironmentServerRef ModelServerRef ResourcesServerRef"
    ),
    "rollbook.dispatch.completion_budget": "DispatchLatencyTracker LatencySummary",
    "rollbook.errors": (
        "AgentWithoutEnvironmentServerError AmbiguousEnvironmentServerError ConfigError ConfigPathNotFoundError "
        "EndpointNotReadyError IncompleteEvaluationError InputError JudgeError LedgerError MissingPackageError "
        "NothingProducedError ResumeRefusedError RollbookError RunError ScaffoldConflictError ServingError "
        "ShadowedPackageError ShardTakenOverError TaskDataSchemaError UnroutedRunError VerifierFixtureError"
    ),
    "rollbook.inputs.deliverables": "IGNORE_FILES is_deliverable",
    "rollbook.inputs.prepared_rows": "prepared_rows write_prepared_rows",
    "rollbook.inputs.prompts": "PromptConfig apply_prompt_to_row fill_prompt load_prompt_config",
    "rollbook.inputs.published_file": "PublishedFile",
    "rollbook.inputs.published_rows": "PublishedRow published_csv_rows published_json_rows unpacked_file",
    "rollbook.inputs.skills": "SkillsRef load_skills stage_skills",
    "rollbook.inputs.task_data": (
        "TaskDataReport TaskDataValidator load_task_data_schema normalize_task_fields validate_jsonl_rows"
    ),
    "rollbook.ledger.ownership": "journal_path_for resolve_rollout_owner resolve_rollout_path",
    "rollbook.ledger.paths": (
        "batch_status_path_for coverage_path_for failures_path_for manifest_path_for materialized_path_for"
    ),
    "rollbook.ledger.projection": "PROJECTED_ROW_BYTES",
    "rollbook.ledger.rollout_record": "RolloutRecord prepare_append read_records",
    "rollbook.plan.materialize": "materialize_task",
    "rollbook.records.codec": (
        "is_non_superseding_rollout_row is_omitted_rollout_row is_unstarted_rollout_row omitted_rollout_record"
    ),
    "rollbook.records.episode_models": "EpisodeFailure EpisodeId TaskId",
    "rollbook.records.failure_kinds": (
        "AGENT_REQUEST_FAILED_FAILURE_CLASS AGENT_RUN_ERROR_FAILURE_CLASS Delivery "
        "ENVIRONMENT_SERVER_FAILURE_CLASS FailureStage JUDGE_FAILED JUDGE_UNPARSEABLE "
        "VERIFIER_ERROR is_namespaced is_registered validate_failure_kind"
    ),
    "rollbook.records.identity": (
        "ATTEMPT_INDEX_KEY_NAME ROLLOUT_ID_KEY_NAME ROLLOUT_INDEX_KEY_NAME RUN_ID_KEY "
        "TASK_INDEX_KEY_NAME capture_key logical_rollout_id maybe_rollout_id"
    ),
    "rollbook.records.keys": (
        "NG_DATASET_DIGEST_KEY NG_DIGEST_KEY NG_ELAPSED_KEY NG_ENVIRONMENT_SERVER_KEY NG_FAILURE_CLASS_KEY "
        "NG_FAILURE_COUNTS_AS_ZERO_KEY NG_FAILURE_JUDGE_ERROR_KEY NG_FAILURE_LEGACY_CLASS_KEY "
        "NG_FAILURE_MAX_ATTEMPTS_KEY NG_FAILURE_MESSAGE_KEY NG_FAILURE_PARTIAL_RESPONSE_KEY "
        "NG_FAILURE_REPORT_KEYS NG_FAILURE_STAGE_KEY NG_NO_PERSIST_KEY NG_OMITTED_ROLLOUT_KEY "
        "NG_POLICY_MODEL_SERVER_KEY NG_RESULT_TYPE_KEY NG_TASK_ID_KEY NG_TERMINAL_KEY "
        "NG_UNROUTED_RUN_ERROR_KEY PROVENANCE_KEYS ROLLOUT_REPEAT_ATTRIBUTE STATUS_FAILURE_KIND_KEY "
        "STATUS_MODEL_FINAL_KEY TASK_ID_ATTRIBUTE"
    ),
    "rollbook.records.manifest": "RunManifest",
    "rollbook.records.rejudgment": (
        "COUNTS_AS_ZERO_ROW_KEY REJUDGED_FAILURE_ID_KEY REJUDGED_OBSERVATIONS_KEY REJUDGE_OPERATION_ID_KEY "
        "RESULT_PREDECESSOR_PREFIX is_interruption_failure is_rejudgment_failure_of is_rejudgment_of "
        "rejudge_predecessor_id"
    ),
    "rollbook.records.rollout_failure": "RolloutFailure RolloutFailureRecord",
    "rollbook.sandbox.access": "DirectSandboxConnection SandboxAccess",
    "rollbook.scoring.aggregate": (
        "AggregateMetrics AggregateMetricsMixin AggregateMetricsRequest compute_aggregate_metrics"
    ),
    "rollbook.scoring.pass_at_k": (
        "add_avg_sample_std_dev compute_pass_majority_metrics compute_subset_metrics highest_k_metrics"
    ),
    "rollbook.servers.base": "BaseServer SimpleServer",
    "rollbook.servers.client": (
        "HeadServerUnreachableError ServerClient ServerStatus get_server_url resolve_model_base_url setup_server_client"
    ),
    "rollbook.servers.converter.responses_converter": (
        "ResponsesConverter chat_completion_to_responses_create_params "
        "chat_completions_messages_to_responses_items split_responses_input_output_items"
    ),
    "rollbook.servers.converter.responses_converter_messages": "AssistantTurn",
    "rollbook.servers.correlation": (
        "ROLLOUT_ID_HEADER RolloutContextMiddleware apply_rollout_prefix current_rollout_id "
        "maybe_rollout_id_from_run_body rollout_context rollout_id_from_run rollout_path_prefix"
    ),
    "rollbook.servers.http.client_config": "GlobalAIOHTTPAsyncClientConfig",
    "rollbook.servers.http.client_pool": (
        "get_global_aiohttp_client global_aiohttp_client_exit is_global_aiohttp_client_request_debug_enabled "
        "set_global_aiohttp_client"
    ),
    "rollbook.servers.http.http_client": "MAX_NUM_TRIES get_response_json request",
    "rollbook.servers.http.inner_error": "InnerServerError raise_for_status",
    "rollbook.servers.kinds.agent_server": "BaseResponsesAPIAgentConfig SimpleResponsesAPIAgent",
    "rollbook.servers.kinds.agent_server_cookies": "merged_cookies set_cookies",
    "rollbook.servers.kinds.agent_sessions": (
        "AgentCloseSessionRequest AgentCloseSessionResponse AgentSeedSessionRequest AgentSeedSessionResponse "
        "AgentSessionSetupError AgentSessionState"
    ),
    "rollbook.servers.kinds.environment_server": (
        "BaseEnvironmentServer BaseEnvironmentServerConfig HandledEpisodeError"
    ),
    "rollbook.servers.kinds.environment_server_cleanup": "CleanupContext CleanupHandle",
    "rollbook.servers.kinds.episodes": (
        "BaseEpisodeRequest BaseEpisodeResponse MaterializedTask SingleAgentTurnFailure "
        "SingleAgentTurnRequest SingleAgentTurnResponse SingleAgentTurnResult SingleAgentTurnTaskInput"
    ),
    "rollbook.servers.kinds.judge": "call_judge judge_failsafe reraise_judge_errors",
    "rollbook.servers.kinds.model_execution": "start_model_execution",
    "rollbook.servers.kinds.model_server": "BaseResponsesAPIModelConfig SimpleResponsesAPIModel",
    "rollbook.servers.kinds.observation_joining": "join_model_call_observations",
    "rollbook.servers.kinds.observations": (
        "AgentEpisode AgentInvocation AgentObservation AgentObservationBundle ContextCompactionObservation "
        "ModelCallRef ObservationGap SandboxObservation ToolCallObservation"
    ),
    "rollbook.servers.kinds.resources_server": (
        "BaseResourcesServerConfig ReverifyMode SimpleResourcesServer overridable"
    ),
    "rollbook.servers.kinds.resources_sessions": (
        "BaseMultiRewardVerifyResponse BaseRunRequest BaseSeedSessionRequest BaseSeedSessionResponse "
        "BaseVerifyRequest BaseVerifyResponse MCPServerMetadata ResourcesCloseSessionRequest "
        "ResourcesCloseSessionResponse ResourcesSeedSessionRequest ResourcesSeedSessionResponse "
        "ResourcesSessions ResourcesVerifyRequest"
    ),
    "rollbook.servers.kinds.sandboxed_agents": (
        "restricted_network_policy sandbox_server_url seed_mcp_servers verify_agent_response"
    ),
    "rollbook.servers.kinds.tool_access": (
        "DirectHTTPToolAccess MCPConnection MCPStreamableHTTPConnection MCPToolAccess ToolAccess"
    ),
    "rollbook.servers.kinds.trajectory": (
        "TrajectoryModelCall TrajectoryRecord TrajectoryTokenStats TrajectoryToolCall TrajectoryTurn"
    ),
    "rollbook.servers.kinds.unserved": "unserved_server",
    "rollbook.servers.kinds.verifier_exercise": "VerifierCaseResult exercise_verifier_fixture",
    "rollbook.servers.kinds.verifier_fixture": "VerifierCase VerifierFixture",
    "rollbook.servers.kinds.verifier_replay": "replay_episode",
    "rollbook.servers.mcp.exposure": "maybe_auto_expose",
    "rollbook.servers.mcp.session_token": "NEMO_GYM_MCP_METADATA_KEY NEMO_GYM_MCP_SESSION_TOKEN_HEADER TOKEN_HEADER",
    "rollbook.servers.mcp.tools": "MCPCatchall MCPTool",
    "rollbook.servers.kinds.untrusted": "untrusted_json",
    "rollbook.servers.kinds.token_capture": (
        "CaptureContext ExternalCaptureHandler current_capture_context make_external_capture_handler"
    ),
    "rollbook.servers.openai.openai_chat": (
        "CHAT_REQUEST_PROVIDER_EXTENSION_FIELDS NeMoGymChatCompletion "
        "NeMoGymChatCompletionCreateParamsNonStreaming NeMoGymChatCompletionMessage "
        "NeMoGymChatCompletionMessageCustomToolCall NeMoGymChatCompletionMessageForTraining "
        "NeMoGymChatCompletionMessageParam NeMoGymChatCompletionMessageToolCall NeMoGymChatCompletionToolCall "
        "NeMoGymChatCompletionToolParam NeMoGymChoice NeMoGymChoiceLogprobs NeMoGymCompletionUsage "
        "NeMoGymFunction NeMoGymTokenLogprob"
    ),
    "rollbook.servers.openai.openai_chat_params": (
        "NeMoGymChatCompletionAssistantMessageForTrainingParam NeMoGymChatCompletionAssistantMessageParam "
        "NeMoGymChatCompletionContentPartTextParam NeMoGymChatCompletionMessageToolCallFunctionParam "
        "NeMoGymChatCompletionMessageToolCallParam NeMoGymChatCompletionSystemMessageParam "
        "NeMoGymChatCompletionToolMessageParam NeMoGymChatCompletionUserMessageParam"
    ),
    "rollbook.servers.openai.openai_client": "NeMoGymAsyncOpenAI PermanentEndpointError",
    "rollbook.servers.openai.openai_items": (
        "NeMoGymEasyInputMessage NeMoGymFunctionCallOutput NeMoGymHostedItem NeMoGymItemReference "
        "NeMoGymMessage NeMoGymResponseFunctionCallOutput NeMoGymResponseFunctionToolCall NeMoGymResponseMcpCall "
        "NeMoGymResponseOutputMessage NeMoGymResponseReasoningItem"
    ),
    "rollbook.servers.openai.openai_parts": (
        "NeMoGymInputContentPart NeMoGymOutputContentPart NeMoGymReasoningText NeMoGymResponseInputAudio "
        "NeMoGymResponseInputFile NeMoGymResponseInputImage NeMoGymResponseInputMessageContentList "
        "NeMoGymResponseInputText NeMoGymResponseInputVideo NeMoGymResponseOutputRefusal "
        "NeMoGymResponseOutputText NeMoGymSummary"
    ),
    "rollbook.servers.openai.openai_response": (
        "NeMoGymIncompleteDetails NeMoGymReasoning NeMoGymResponse NeMoGymResponseCreateParamsNonStreaming "
        "NeMoGymResponseError"
    ),
    "rollbook.servers.openai.openai_retry": "RATE_LIMIT_ERROR_CODES RETRY_ERROR_CODES",
    "rollbook.servers.openai.openai_tools": (
        "NeMoGymFunctionToolParam NeMoGymHostedToolParam NeMoGymToolChoice NeMoGymToolParam"
    ),
    "rollbook.servers.openai.openai_training": (
        "NeMoGymEasyInputMessageForTraining NeMoGymMessageForTraining NeMoGymResponseFunctionToolCallForTraining "
        "NeMoGymResponseOutputMessageForTraining NeMoGymResponseReasoningItemForTraining "
        "REQUIRED_TOKEN_METADATA_FIELDS RESPONSES_TO_TRAIN TOKEN_METADATA_FIELDS TokenIDLogProbMixin "
        "training_variant_of"
    ),
    "rollbook.servers.openai.openai_unions": "NeMoGymResponseInput NeMoGymResponseInputItem NeMoGymResponseOutputItem",
    "rollbook.servers.openai.openai_usage": (
        "NeMoGymResponseInputTokensDetails NeMoGymResponseOutputTokensDetails NeMoGymResponseUsage "
        "accumulate_response_usage"
    ),
    "rollbook.servers.serving.embedded": "EmbeddedDeployment",
    "rollbook.servers.serving.processes": "ProcessDeployment",
    "rollbook.servers.serving.profiler": "Profiler",
    "rollbook.servers.serving.remote": "RemoteDeployment",
    "rollbook.servers.serving.webserver": "is_nemo_gym_fastapi_entrypoint",
    "rollbook.servers.session_key": "SESSION_ID_KEY",
    "rollbook.testing.session_conformance": "SessionContractError check_resources_session_contract",
}
_HOMES: Final = {name: module for module, names in _PUBLIC.items() for name in names.split()}

__all__ = sorted([*_HOMES, "__version__"])  # noqa: PLE0605  the stub lists the names one by one


def __getattr__(name: str) -> object:
    """Import the module that a public name lives in, and keep the name."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return list(__all__)
