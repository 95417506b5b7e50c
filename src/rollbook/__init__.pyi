from rollbook.api.direct_errors import (
    DirectCallError,
    InvalidRolloutResult,
    StaleRolloutResult,
)
from rollbook.api.failure_rows import (
    get_max_rollout_attempts,
    is_terminal_failure,
)
from rollbook.api.rejudgment import (
    rejudgment_admission_closed_by,
)
from rollbook.api.reward_profiler import (
    RewardProfile,
    RewardProfiler,
)
from rollbook.api.rollout_aggregation import (
    RolloutAggregationHelper,
)
from rollbook.api.rollout_collection import (
    RolloutCollectionHelper,
)
from rollbook.api.rollout_records import (
    RolloutRecords,
)
from rollbook.api.rollout_store import (
    RolloutStore,
)
from rollbook.api.row_results import (
    RowResults,
)
from rollbook.api.run_timing import (
    RunTimingReport,
)
from rollbook.config.addresses import (
    find_open_port,
)
from rollbook.config.benchmarks import (
    BenchmarkConfig,
    BenchmarkDataset,
)
from rollbook.config.collection import (
    BaseNeMoGymCLIConfig,
    E2ERolloutCollectionConfig,
    RolloutAggregationConfig,
    RolloutCollectionConfig,
    SharedRolloutCollectionConfig,
)
from rollbook.config.component_root import (
    component_root,
)
from rollbook.config.datasets import (
    BenchmarkDatasetConfig,
    DatasetConfig,
)
from rollbook.config.hub_token import (
    get_hf_token,
)
from rollbook.config.key_names import (
    AGENT_REF_KEY_NAME,
    CACHE_DIR_KEY_NAME,
    DISALLOWED_PORTS_KEY_NAME,
    HF_TOKEN_KEY_NAME,
    MODEL_CALL_CAPTURE_DIR_KEY_NAME,
    OBSERVABILITY_ENABLED_KEY_NAME,
    RESULTS_DIR_KEY_NAME,
    ROLLOUT_PATH_PREFIX,
    SKILLS_REF_KEY_NAME,
    TASK_SOURCE_KEY_NAME,
    TOKEN_CAPTURE_PATH_SEGMENT,
    TOKEN_ID_CAPTURE_BLOCK,
)
from rollbook.config.manifest import (
    EnvironmentManifest,
    manifest_json_schema,
)
from rollbook.config.parser import (
    GlobalConfigDictParser,
    GlobalConfigDictParserConfig,
    get_first_server_config_dict,
    get_global_config_dict,
    maybe_get_global_config_dict,
    set_global_config_dict,
)
from rollbook.config.reverification import (
    RolloutReverificationConfig,
)
from rollbook.config.roots import (
    CACHE_DIR,
    PARENT_DIR,
    RESULTS_DIR,
    ROOT_DIR,
    WORKING_DIR,
    resolve_read_path,
)
from rollbook.config.shadowing import (
    refuse_to_shadow,
)
from rollbook.config.token_capture import (
    TokenIdCapture,
    TokenIdCaptureConfig,
    token_id_capture_config,
)
from rollbook.config.types import (
    AgentServerRef,
    BaseRunServerConfig,
    BaseRunServerInstanceConfig,
    BaseServerConfig,
    Domain,
    EnvironmentServerRef,
    ModelServerRef,
    ResourcesServerRef,
)
from rollbook.dispatch.completion_budget import (
    DispatchLatencyTracker,
    LatencySummary,
)
from rollbook.errors import (
    AgentWithoutEnvironmentServerError,
    AmbiguousEnvironmentServerError,
    ConfigError,
    ConfigPathNotFoundError,
    EndpointNotReadyError,
    IncompleteEvaluationError,
    InputError,
    JudgeError,
    LedgerError,
    MissingPackageError,
    NothingProducedError,
    ResumeRefusedError,
    RollbookError,
    RunError,
    ScaffoldConflictError,
    ServingError,
    ShadowedPackageError,
    ShardTakenOverError,
    TaskDataSchemaError,
    UnroutedRunError,
    VerifierFixtureError,
)
from rollbook.inputs.deliverables import (
    IGNORE_FILES,
    is_deliverable,
)
from rollbook.inputs.prepared_rows import (
    prepared_rows,
    write_prepared_rows,
)
from rollbook.inputs.prompts import (
    PromptConfig,
    apply_prompt_to_row,
    fill_prompt,
    load_prompt_config,
)
from rollbook.inputs.published_file import (
    PublishedFile,
)
from rollbook.inputs.published_rows import (
    PublishedRow,
    published_csv_rows,
    published_json_rows,
    unpacked_file,
)
from rollbook.inputs.skills import (
    SkillsRef,
    load_skills,
    stage_skills,
)
from rollbook.inputs.task_data import (
    TaskDataReport,
    TaskDataValidator,
    load_task_data_schema,
    normalize_task_fields,
    validate_jsonl_rows,
)
from rollbook.ledger.ownership import (
    journal_path_for,
    resolve_rollout_owner,
    resolve_rollout_path,
)
from rollbook.ledger.paths import (
    batch_status_path_for,
    coverage_path_for,
    failures_path_for,
    manifest_path_for,
    materialized_path_for,
)
from rollbook.ledger.projection import (
    PROJECTED_ROW_BYTES,
)
from rollbook.ledger.rollout_record import (
    RolloutRecord,
    prepare_append,
    read_records,
)
from rollbook.plan.materialize import (
    materialize_task,
)
from rollbook.records.codec import (
    is_non_superseding_rollout_row,
    is_omitted_rollout_row,
    is_unstarted_rollout_row,
    omitted_rollout_record,
)
from rollbook.records.episode_models import (
    EpisodeFailure,
    EpisodeId,
    TaskId,
)
from rollbook.records.failure_kinds import (
    AGENT_REQUEST_FAILED_FAILURE_CLASS,
    AGENT_RUN_ERROR_FAILURE_CLASS,
    ENVIRONMENT_SERVER_FAILURE_CLASS,
    JUDGE_FAILED,
    JUDGE_UNPARSEABLE,
    VERIFIER_ERROR,
    Delivery,
    FailureStage,
    is_namespaced,
    is_registered,
    validate_failure_kind,
)
from rollbook.records.identity import (
    ATTEMPT_INDEX_KEY_NAME,
    ROLLOUT_ID_KEY_NAME,
    ROLLOUT_INDEX_KEY_NAME,
    RUN_ID_KEY,
    TASK_INDEX_KEY_NAME,
    capture_key,
    logical_rollout_id,
    maybe_rollout_id,
)
from rollbook.records.keys import (
    NG_DATASET_DIGEST_KEY,
    NG_DIGEST_KEY,
    NG_ELAPSED_KEY,
    NG_ENVIRONMENT_SERVER_KEY,
    NG_FAILURE_CLASS_KEY,
    NG_FAILURE_COUNTS_AS_ZERO_KEY,
    NG_FAILURE_JUDGE_ERROR_KEY,
    NG_FAILURE_LEGACY_CLASS_KEY,
    NG_FAILURE_MAX_ATTEMPTS_KEY,
    NG_FAILURE_MESSAGE_KEY,
    NG_FAILURE_PARTIAL_RESPONSE_KEY,
    NG_FAILURE_REPORT_KEYS,
    NG_FAILURE_STAGE_KEY,
    NG_NO_PERSIST_KEY,
    NG_OMITTED_ROLLOUT_KEY,
    NG_POLICY_MODEL_SERVER_KEY,
    NG_RESULT_TYPE_KEY,
    NG_TASK_ID_KEY,
    NG_TERMINAL_KEY,
    NG_UNROUTED_RUN_ERROR_KEY,
    PROVENANCE_KEYS,
    ROLLOUT_REPEAT_ATTRIBUTE,
    STATUS_FAILURE_KIND_KEY,
    STATUS_MODEL_FINAL_KEY,
    TASK_ID_ATTRIBUTE,
)
from rollbook.records.manifest import (
    RunManifest,
)
from rollbook.records.rejudgment import (
    COUNTS_AS_ZERO_ROW_KEY,
    REJUDGE_OPERATION_ID_KEY,
    REJUDGED_FAILURE_ID_KEY,
    REJUDGED_OBSERVATIONS_KEY,
    RESULT_PREDECESSOR_PREFIX,
    is_interruption_failure,
    is_rejudgment_failure_of,
    is_rejudgment_of,
    rejudge_predecessor_id,
)
from rollbook.records.rollout_failure import (
    RolloutFailure,
    RolloutFailureRecord,
)
from rollbook.sandbox.access import (
    DirectSandboxConnection,
    SandboxAccess,
)
from rollbook.scoring.aggregate import (
    AggregateMetrics,
    AggregateMetricsMixin,
    AggregateMetricsRequest,
    compute_aggregate_metrics,
)
from rollbook.scoring.pass_at_k import (
    add_avg_sample_std_dev,
    compute_pass_majority_metrics,
    compute_subset_metrics,
    highest_k_metrics,
)
from rollbook.servers.base import (
    BaseServer,
    SimpleServer,
)
from rollbook.servers.client import (
    HeadServerUnreachableError,
    ServerClient,
    ServerStatus,
    get_server_url,
    resolve_model_base_url,
    setup_server_client,
)
from rollbook.servers.converter.responses_converter import (
    ResponsesConverter,
    chat_completion_to_responses_create_params,
    chat_completions_messages_to_responses_items,
    split_responses_input_output_items,
)
from rollbook.servers.converter.responses_converter_messages import (
    AssistantTurn,
)
from rollbook.servers.correlation import (
    ROLLOUT_ID_HEADER,
    RolloutContextMiddleware,
    apply_rollout_prefix,
    current_rollout_id,
    maybe_rollout_id_from_run_body,
    rollout_context,
    rollout_id_from_run,
    rollout_path_prefix,
)
from rollbook.servers.http.client_config import (
    GlobalAIOHTTPAsyncClientConfig,
)
from rollbook.servers.http.client_pool import (
    get_global_aiohttp_client,
    global_aiohttp_client_exit,
    is_global_aiohttp_client_request_debug_enabled,
    set_global_aiohttp_client,
)
from rollbook.servers.http.http_client import (
    MAX_NUM_TRIES,
    get_response_json,
    request,
)
from rollbook.servers.http.inner_error import (
    InnerServerError,
    raise_for_status,
)
from rollbook.servers.kinds.agent_server import (
    BaseResponsesAPIAgentConfig,
    SimpleResponsesAPIAgent,
)
from rollbook.servers.kinds.agent_server_cookies import (
    merged_cookies,
    set_cookies,
)
from rollbook.servers.kinds.agent_sessions import (
    AgentCloseSessionRequest,
    AgentCloseSessionResponse,
    AgentSeedSessionRequest,
    AgentSeedSessionResponse,
    AgentSessionSetupError,
    AgentSessionState,
)
from rollbook.servers.kinds.environment_server import (
    BaseEnvironmentServer,
    BaseEnvironmentServerConfig,
    HandledEpisodeError,
)
from rollbook.servers.kinds.environment_server_cleanup import (
    CleanupContext,
    CleanupHandle,
)
from rollbook.servers.kinds.episodes import (
    BaseEpisodeRequest,
    BaseEpisodeResponse,
    MaterializedTask,
    SingleAgentTurnFailure,
    SingleAgentTurnRequest,
    SingleAgentTurnResponse,
    SingleAgentTurnResult,
    SingleAgentTurnTaskInput,
)
from rollbook.servers.kinds.judge import (
    call_judge,
    judge_failsafe,
    reraise_judge_errors,
)
from rollbook.servers.kinds.model_execution import (
    start_model_execution,
)
from rollbook.servers.kinds.model_server import (
    BaseResponsesAPIModelConfig,
    SimpleResponsesAPIModel,
)
from rollbook.servers.kinds.observation_joining import (
    join_model_call_observations,
)
from rollbook.servers.kinds.observations import (
    AgentEpisode,
    AgentInvocation,
    AgentObservation,
    AgentObservationBundle,
    ContextCompactionObservation,
    ModelCallRef,
    ObservationGap,
    SandboxObservation,
    ToolCallObservation,
)
from rollbook.servers.kinds.resources_server import (
    BaseResourcesServerConfig,
    ReverifyMode,
    SimpleResourcesServer,
    overridable,
)
from rollbook.servers.kinds.resources_sessions import (
    BaseMultiRewardVerifyResponse,
    BaseRunRequest,
    BaseSeedSessionRequest,
    BaseSeedSessionResponse,
    BaseVerifyRequest,
    BaseVerifyResponse,
    MCPServerMetadata,
    ResourcesCloseSessionRequest,
    ResourcesCloseSessionResponse,
    ResourcesSeedSessionRequest,
    ResourcesSeedSessionResponse,
    ResourcesSessions,
    ResourcesVerifyRequest,
)
from rollbook.servers.kinds.sandboxed_agents import (
    restricted_network_policy,
    sandbox_server_url,
    seed_mcp_servers,
    verify_agent_response,
)
from rollbook.servers.kinds.token_capture import (
    CaptureContext,
    ExternalCaptureHandler,
    current_capture_context,
    make_external_capture_handler,
)
from rollbook.servers.kinds.tool_access import (
    DirectHTTPToolAccess,
    MCPConnection,
    MCPStreamableHTTPConnection,
    MCPToolAccess,
    ToolAccess,
)
from rollbook.servers.kinds.trajectory import (
    TrajectoryModelCall,
    TrajectoryRecord,
    TrajectoryTokenStats,
    TrajectoryToolCall,
    TrajectoryTurn,
)
from rollbook.servers.kinds.unserved import (
    unserved_server,
)
from rollbook.servers.kinds.untrusted import untrusted_json as untrusted_json
from rollbook.servers.kinds.verifier_exercise import (
    VerifierCaseResult,
    exercise_verifier_fixture,
)
from rollbook.servers.kinds.verifier_fixture import (
    VerifierCase,
    VerifierFixture,
)
from rollbook.servers.kinds.verifier_replay import replay_episode as replay_episode
from rollbook.servers.mcp.exposure import (
    maybe_auto_expose,
)
from rollbook.servers.mcp.session_token import (
    NEMO_GYM_MCP_METADATA_KEY,
    NEMO_GYM_MCP_SESSION_TOKEN_HEADER,
    TOKEN_HEADER,
)
from rollbook.servers.mcp.tools import (
    MCPCatchall,
    MCPTool,
)
from rollbook.servers.openai.openai_chat import (
    CHAT_REQUEST_PROVIDER_EXTENSION_FIELDS,
    NeMoGymChatCompletion,
    NeMoGymChatCompletionCreateParamsNonStreaming,
    NeMoGymChatCompletionMessage,
    NeMoGymChatCompletionMessageCustomToolCall,
    NeMoGymChatCompletionMessageForTraining,
    NeMoGymChatCompletionMessageParam,
    NeMoGymChatCompletionMessageToolCall,
    NeMoGymChatCompletionToolCall,
    NeMoGymChatCompletionToolParam,
    NeMoGymChoice,
    NeMoGymChoiceLogprobs,
    NeMoGymCompletionUsage,
    NeMoGymFunction,
    NeMoGymTokenLogprob,
)
from rollbook.servers.openai.openai_chat_params import (
    NeMoGymChatCompletionAssistantMessageForTrainingParam,
    NeMoGymChatCompletionAssistantMessageParam,
    NeMoGymChatCompletionContentPartTextParam,
    NeMoGymChatCompletionMessageToolCallFunctionParam,
    NeMoGymChatCompletionMessageToolCallParam,
    NeMoGymChatCompletionSystemMessageParam,
    NeMoGymChatCompletionToolMessageParam,
    NeMoGymChatCompletionUserMessageParam,
)
from rollbook.servers.openai.openai_client import (
    NeMoGymAsyncOpenAI,
    PermanentEndpointError,
)
from rollbook.servers.openai.openai_items import (
    NeMoGymEasyInputMessage,
    NeMoGymFunctionCallOutput,
    NeMoGymHostedItem,
    NeMoGymItemReference,
    NeMoGymMessage,
    NeMoGymResponseFunctionCallOutput,
    NeMoGymResponseFunctionToolCall,
    NeMoGymResponseMcpCall,
    NeMoGymResponseOutputMessage,
    NeMoGymResponseReasoningItem,
)
from rollbook.servers.openai.openai_parts import (
    NeMoGymInputContentPart,
    NeMoGymOutputContentPart,
    NeMoGymReasoningText,
    NeMoGymResponseInputAudio,
    NeMoGymResponseInputFile,
    NeMoGymResponseInputImage,
    NeMoGymResponseInputMessageContentList,
    NeMoGymResponseInputText,
    NeMoGymResponseInputVideo,
    NeMoGymResponseOutputRefusal,
    NeMoGymResponseOutputText,
    NeMoGymSummary,
)
from rollbook.servers.openai.openai_response import (
    NeMoGymIncompleteDetails,
    NeMoGymReasoning,
    NeMoGymResponse,
    NeMoGymResponseCreateParamsNonStreaming,
    NeMoGymResponseError,
)
from rollbook.servers.openai.openai_retry import (
    RATE_LIMIT_ERROR_CODES,
    RETRY_ERROR_CODES,
)
from rollbook.servers.openai.openai_tools import (
    NeMoGymFunctionToolParam,
    NeMoGymHostedToolParam,
    NeMoGymToolChoice,
    NeMoGymToolParam,
)
from rollbook.servers.openai.openai_training import (
    REQUIRED_TOKEN_METADATA_FIELDS,
    RESPONSES_TO_TRAIN,
    TOKEN_METADATA_FIELDS,
    NeMoGymEasyInputMessageForTraining,
    NeMoGymMessageForTraining,
    NeMoGymResponseFunctionToolCallForTraining,
    NeMoGymResponseOutputMessageForTraining,
    NeMoGymResponseReasoningItemForTraining,
    TokenIDLogProbMixin,
    training_variant_of,
)
from rollbook.servers.openai.openai_unions import (
    NeMoGymResponseInput,
    NeMoGymResponseInputItem,
    NeMoGymResponseOutputItem,
)
from rollbook.servers.openai.openai_usage import (
    NeMoGymResponseInputTokensDetails,
    NeMoGymResponseOutputTokensDetails,
    NeMoGymResponseUsage,
    accumulate_response_usage,
)
from rollbook.servers.serving.embedded import (
    EmbeddedDeployment,
)
from rollbook.servers.serving.processes import (
    ProcessDeployment,
)
from rollbook.servers.serving.profiler import Profiler as Profiler
from rollbook.servers.serving.remote import (
    RemoteDeployment,
)
from rollbook.servers.serving.webserver import (
    is_nemo_gym_fastapi_entrypoint,
)
from rollbook.servers.session_key import (
    SESSION_ID_KEY,
)
from rollbook.testing.session_conformance import (
    SessionContractError,
    check_resources_session_contract,
)

__all__ = [
    "AGENT_REF_KEY_NAME",
    "AGENT_REQUEST_FAILED_FAILURE_CLASS",
    "AGENT_RUN_ERROR_FAILURE_CLASS",
    "ATTEMPT_INDEX_KEY_NAME",
    "CACHE_DIR",
    "CACHE_DIR_KEY_NAME",
    "CHAT_REQUEST_PROVIDER_EXTENSION_FIELDS",
    "COUNTS_AS_ZERO_ROW_KEY",
    "DISALLOWED_PORTS_KEY_NAME",
    "ENVIRONMENT_SERVER_FAILURE_CLASS",
    "HF_TOKEN_KEY_NAME",
    "IGNORE_FILES",
    "JUDGE_FAILED",
    "JUDGE_UNPARSEABLE",
    "MAX_NUM_TRIES",
    "MODEL_CALL_CAPTURE_DIR_KEY_NAME",
    "NEMO_GYM_MCP_METADATA_KEY",
    "NEMO_GYM_MCP_SESSION_TOKEN_HEADER",
    "NG_DATASET_DIGEST_KEY",
    "NG_DIGEST_KEY",
    "NG_ELAPSED_KEY",
    "NG_ENVIRONMENT_SERVER_KEY",
    "NG_FAILURE_CLASS_KEY",
    "NG_FAILURE_COUNTS_AS_ZERO_KEY",
    "NG_FAILURE_JUDGE_ERROR_KEY",
    "NG_FAILURE_LEGACY_CLASS_KEY",
    "NG_FAILURE_MAX_ATTEMPTS_KEY",
    "NG_FAILURE_MESSAGE_KEY",
    "NG_FAILURE_PARTIAL_RESPONSE_KEY",
    "NG_FAILURE_REPORT_KEYS",
    "NG_FAILURE_STAGE_KEY",
    "NG_NO_PERSIST_KEY",
    "NG_OMITTED_ROLLOUT_KEY",
    "NG_POLICY_MODEL_SERVER_KEY",
    "NG_RESULT_TYPE_KEY",
    "NG_TASK_ID_KEY",
    "NG_TERMINAL_KEY",
    "NG_UNROUTED_RUN_ERROR_KEY",
    "OBSERVABILITY_ENABLED_KEY_NAME",
    "PARENT_DIR",
    "PROJECTED_ROW_BYTES",
    "PROVENANCE_KEYS",
    "RATE_LIMIT_ERROR_CODES",
    "REJUDGED_FAILURE_ID_KEY",
    "REJUDGED_OBSERVATIONS_KEY",
    "REJUDGE_OPERATION_ID_KEY",
    "REQUIRED_TOKEN_METADATA_FIELDS",
    "RESPONSES_TO_TRAIN",
    "RESULTS_DIR",
    "RESULTS_DIR_KEY_NAME",
    "RESULT_PREDECESSOR_PREFIX",
    "RETRY_ERROR_CODES",
    "ROLLOUT_ID_HEADER",
    "ROLLOUT_ID_KEY_NAME",
    "ROLLOUT_INDEX_KEY_NAME",
    "ROLLOUT_PATH_PREFIX",
    "ROLLOUT_REPEAT_ATTRIBUTE",
    "ROOT_DIR",
    "RUN_ID_KEY",
    "SESSION_ID_KEY",
    "SKILLS_REF_KEY_NAME",
    "STATUS_FAILURE_KIND_KEY",
    "STATUS_MODEL_FINAL_KEY",
    "TASK_ID_ATTRIBUTE",
    "TASK_INDEX_KEY_NAME",
    "TASK_SOURCE_KEY_NAME",
    "TOKEN_CAPTURE_PATH_SEGMENT",
    "TOKEN_HEADER",
    "TOKEN_ID_CAPTURE_BLOCK",
    "TOKEN_METADATA_FIELDS",
    "VERIFIER_ERROR",
    "WORKING_DIR",
    "AgentCloseSessionRequest",
    "AgentCloseSessionResponse",
    "AgentEpisode",
    "AgentInvocation",
    "AgentObservation",
    "AgentObservationBundle",
    "AgentSeedSessionRequest",
    "AgentSeedSessionResponse",
    "AgentServerRef",
    "AgentSessionSetupError",
    "AgentSessionState",
    "AgentWithoutEnvironmentServerError",
    "AggregateMetrics",
    "AggregateMetricsMixin",
    "AggregateMetricsRequest",
    "AmbiguousEnvironmentServerError",
    "AssistantTurn",
    "BaseEnvironmentServer",
    "BaseEnvironmentServerConfig",
    "BaseEpisodeRequest",
    "BaseEpisodeResponse",
    "BaseMultiRewardVerifyResponse",
    "BaseNeMoGymCLIConfig",
    "BaseResourcesServerConfig",
    "BaseResponsesAPIAgentConfig",
    "BaseResponsesAPIModelConfig",
    "BaseRunRequest",
    "BaseRunServerConfig",
    "BaseRunServerInstanceConfig",
    "BaseSeedSessionRequest",
    "BaseSeedSessionResponse",
    "BaseServer",
    "BaseServerConfig",
    "BaseVerifyRequest",
    "BaseVerifyResponse",
    "BenchmarkConfig",
    "BenchmarkDataset",
    "BenchmarkDatasetConfig",
    "CaptureContext",
    "CleanupContext",
    "CleanupHandle",
    "ConfigError",
    "ConfigPathNotFoundError",
    "ContextCompactionObservation",
    "DatasetConfig",
    "Delivery",
    "DirectCallError",
    "DirectHTTPToolAccess",
    "DirectSandboxConnection",
    "DispatchLatencyTracker",
    "Domain",
    "E2ERolloutCollectionConfig",
    "EmbeddedDeployment",
    "EndpointNotReadyError",
    "EnvironmentManifest",
    "EnvironmentServerRef",
    "EpisodeFailure",
    "EpisodeId",
    "ExternalCaptureHandler",
    "FailureStage",
    "GlobalAIOHTTPAsyncClientConfig",
    "GlobalConfigDictParser",
    "GlobalConfigDictParserConfig",
    "HandledEpisodeError",
    "HeadServerUnreachableError",
    "IncompleteEvaluationError",
    "InnerServerError",
    "InputError",
    "InvalidRolloutResult",
    "JudgeError",
    "LatencySummary",
    "LedgerError",
    "MCPCatchall",
    "MCPConnection",
    "MCPServerMetadata",
    "MCPStreamableHTTPConnection",
    "MCPTool",
    "MCPToolAccess",
    "MaterializedTask",
    "MissingPackageError",
    "ModelCallRef",
    "ModelServerRef",
    "NeMoGymAsyncOpenAI",
    "NeMoGymChatCompletion",
    "NeMoGymChatCompletionAssistantMessageForTrainingParam",
    "NeMoGymChatCompletionAssistantMessageParam",
    "NeMoGymChatCompletionContentPartTextParam",
    "NeMoGymChatCompletionCreateParamsNonStreaming",
    "NeMoGymChatCompletionMessage",
    "NeMoGymChatCompletionMessageCustomToolCall",
    "NeMoGymChatCompletionMessageForTraining",
    "NeMoGymChatCompletionMessageParam",
    "NeMoGymChatCompletionMessageToolCall",
    "NeMoGymChatCompletionMessageToolCallFunctionParam",
    "NeMoGymChatCompletionMessageToolCallParam",
    "NeMoGymChatCompletionSystemMessageParam",
    "NeMoGymChatCompletionToolCall",
    "NeMoGymChatCompletionToolMessageParam",
    "NeMoGymChatCompletionToolParam",
    "NeMoGymChatCompletionUserMessageParam",
    "NeMoGymChoice",
    "NeMoGymChoiceLogprobs",
    "NeMoGymCompletionUsage",
    "NeMoGymEasyInputMessage",
    "NeMoGymEasyInputMessageForTraining",
    "NeMoGymFunction",
    "NeMoGymFunctionCallOutput",
    "NeMoGymFunctionToolParam",
    "NeMoGymHostedItem",
    "NeMoGymHostedToolParam",
    "NeMoGymIncompleteDetails",
    "NeMoGymInputContentPart",
    "NeMoGymItemReference",
    "NeMoGymMessage",
    "NeMoGymMessageForTraining",
    "NeMoGymOutputContentPart",
    "NeMoGymReasoning",
    "NeMoGymReasoningText",
    "NeMoGymResponse",
    "NeMoGymResponseCreateParamsNonStreaming",
    "NeMoGymResponseError",
    "NeMoGymResponseFunctionCallOutput",
    "NeMoGymResponseFunctionToolCall",
    "NeMoGymResponseFunctionToolCallForTraining",
    "NeMoGymResponseInput",
    "NeMoGymResponseInputAudio",
    "NeMoGymResponseInputFile",
    "NeMoGymResponseInputImage",
    "NeMoGymResponseInputItem",
    "NeMoGymResponseInputMessageContentList",
    "NeMoGymResponseInputText",
    "NeMoGymResponseInputTokensDetails",
    "NeMoGymResponseInputVideo",
    "NeMoGymResponseMcpCall",
    "NeMoGymResponseOutputItem",
    "NeMoGymResponseOutputMessage",
    "NeMoGymResponseOutputMessageForTraining",
    "NeMoGymResponseOutputRefusal",
    "NeMoGymResponseOutputText",
    "NeMoGymResponseOutputTokensDetails",
    "NeMoGymResponseReasoningItem",
    "NeMoGymResponseReasoningItemForTraining",
    "NeMoGymResponseUsage",
    "NeMoGymSummary",
    "NeMoGymTokenLogprob",
    "NeMoGymToolChoice",
    "NeMoGymToolParam",
    "NothingProducedError",
    "ObservationGap",
    "PermanentEndpointError",
    "ProcessDeployment",
    "Profiler",
    "PromptConfig",
    "PublishedFile",
    "PublishedRow",
    "RemoteDeployment",
    "ResourcesCloseSessionRequest",
    "ResourcesCloseSessionResponse",
    "ResourcesSeedSessionRequest",
    "ResourcesSeedSessionResponse",
    "ResourcesServerRef",
    "ResourcesSessions",
    "ResourcesVerifyRequest",
    "ResponsesConverter",
    "ResumeRefusedError",
    "ReverifyMode",
    "RewardProfile",
    "RewardProfiler",
    "RollbookError",
    "RolloutAggregationConfig",
    "RolloutAggregationHelper",
    "RolloutCollectionConfig",
    "RolloutCollectionHelper",
    "RolloutContextMiddleware",
    "RolloutFailure",
    "RolloutFailureRecord",
    "RolloutRecord",
    "RolloutRecords",
    "RolloutReverificationConfig",
    "RolloutStore",
    "RowResults",
    "RunError",
    "RunManifest",
    "RunTimingReport",
    "SandboxAccess",
    "SandboxObservation",
    "ScaffoldConflictError",
    "ServerClient",
    "ServerStatus",
    "ServingError",
    "SessionContractError",
    "ShadowedPackageError",
    "ShardTakenOverError",
    "SharedRolloutCollectionConfig",
    "SimpleResourcesServer",
    "SimpleResponsesAPIAgent",
    "SimpleResponsesAPIModel",
    "SimpleServer",
    "SingleAgentTurnFailure",
    "SingleAgentTurnRequest",
    "SingleAgentTurnResponse",
    "SingleAgentTurnResult",
    "SingleAgentTurnTaskInput",
    "SkillsRef",
    "StaleRolloutResult",
    "TaskDataReport",
    "TaskDataSchemaError",
    "TaskDataValidator",
    "TaskId",
    "TokenIDLogProbMixin",
    "TokenIdCapture",
    "TokenIdCaptureConfig",
    "ToolAccess",
    "ToolCallObservation",
    "TrajectoryModelCall",
    "TrajectoryRecord",
    "TrajectoryTokenStats",
    "TrajectoryToolCall",
    "TrajectoryTurn",
    "UnroutedRunError",
    "VerifierCase",
    "VerifierCaseResult",
    "VerifierFixture",
    "VerifierFixtureError",
    "__version__",
    "accumulate_response_usage",
    "add_avg_sample_std_dev",
    "apply_prompt_to_row",
    "apply_rollout_prefix",
    "batch_status_path_for",
    "call_judge",
    "capture_key",
    "chat_completion_to_responses_create_params",
    "chat_completions_messages_to_responses_items",
    "check_resources_session_contract",
    "component_root",
    "compute_aggregate_metrics",
    "compute_pass_majority_metrics",
    "compute_subset_metrics",
    "coverage_path_for",
    "current_capture_context",
    "current_rollout_id",
    "exercise_verifier_fixture",
    "failures_path_for",
    "fill_prompt",
    "find_open_port",
    "get_first_server_config_dict",
    "get_global_aiohttp_client",
    "get_global_config_dict",
    "get_hf_token",
    "get_max_rollout_attempts",
    "get_response_json",
    "get_server_url",
    "global_aiohttp_client_exit",
    "highest_k_metrics",
    "is_deliverable",
    "is_global_aiohttp_client_request_debug_enabled",
    "is_interruption_failure",
    "is_namespaced",
    "is_nemo_gym_fastapi_entrypoint",
    "is_non_superseding_rollout_row",
    "is_omitted_rollout_row",
    "is_registered",
    "is_rejudgment_failure_of",
    "is_rejudgment_of",
    "is_terminal_failure",
    "is_unstarted_rollout_row",
    "join_model_call_observations",
    "journal_path_for",
    "judge_failsafe",
    "load_prompt_config",
    "load_skills",
    "load_task_data_schema",
    "logical_rollout_id",
    "make_external_capture_handler",
    "manifest_json_schema",
    "manifest_path_for",
    "materialize_task",
    "materialized_path_for",
    "maybe_auto_expose",
    "maybe_get_global_config_dict",
    "maybe_rollout_id",
    "maybe_rollout_id_from_run_body",
    "merged_cookies",
    "normalize_task_fields",
    "omitted_rollout_record",
    "overridable",
    "prepare_append",
    "prepared_rows",
    "published_csv_rows",
    "published_json_rows",
    "raise_for_status",
    "read_records",
    "refuse_to_shadow",
    "rejudge_predecessor_id",
    "rejudgment_admission_closed_by",
    "replay_episode",
    "request",
    "reraise_judge_errors",
    "resolve_model_base_url",
    "resolve_read_path",
    "resolve_rollout_owner",
    "resolve_rollout_path",
    "restricted_network_policy",
    "rollout_context",
    "rollout_id_from_run",
    "rollout_path_prefix",
    "sandbox_server_url",
    "seed_mcp_servers",
    "set_cookies",
    "set_global_aiohttp_client",
    "set_global_config_dict",
    "setup_server_client",
    "split_responses_input_output_items",
    "stage_skills",
    "start_model_execution",
    "token_id_capture_config",
    "training_variant_of",
    "unpacked_file",
    "unserved_server",
    "untrusted_json",
    "validate_failure_kind",
    "validate_jsonl_rows",
    "verify_agent_response",
    "write_prepared_rows",
]

__version__: str
