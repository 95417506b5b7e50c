"""The public names of `rollbook`, for type checkers."""

from typing import Final

from rollbook.errors import (
    ConfigError as ConfigError,
    InputError as InputError,
    JudgeError as JudgeError,
    MissingPackageError as MissingPackageError,
    RollbookError as RollbookError,
    ServingError as ServingError,
)
from rollbook.inputs.prompts import (
    PromptConfig as PromptConfig,
    apply_prompt_to_row as apply_prompt_to_row,
    fill_prompt as fill_prompt,
    load_prompt_config as load_prompt_config,
)
from rollbook.inputs.skills import (
    SkillsRef as SkillsRef,
    load_skills as load_skills,
    stage_skills as stage_skills,
)
from rollbook.records.codec import (
    is_non_superseding_rollout_row as is_non_superseding_rollout_row,
    is_omitted_rollout_row as is_omitted_rollout_row,
    is_unstarted_rollout_row as is_unstarted_rollout_row,
    omitted_rollout_record as omitted_rollout_record,
)
from rollbook.records.failure_kinds import (
    Delivery as Delivery,
    EpisodeFailure as EpisodeFailure,
    FailureStage as FailureStage,
    JUDGE_FAILED as JUDGE_FAILED,
    JUDGE_UNPARSEABLE as JUDGE_UNPARSEABLE,
    VERIFIER_ERROR as VERIFIER_ERROR,
)
from rollbook.records.identity import (
    ATTEMPT_INDEX_KEY_NAME as ATTEMPT_INDEX_KEY_NAME,
    EpisodeId as EpisodeId,
    ROLLOUT_INDEX_KEY_NAME as ROLLOUT_INDEX_KEY_NAME,
    RUN_ID_KEY as RUN_ID_KEY,
    TASK_INDEX_KEY_NAME as TASK_INDEX_KEY_NAME,
    TaskId as TaskId,
    capture_key as capture_key,
    logical_rollout_id as logical_rollout_id,
    maybe_rollout_id as maybe_rollout_id,
)
from rollbook.records.keys import (
    NG_FAILURE_CLASS_KEY as NG_FAILURE_CLASS_KEY,
    NG_FAILURE_JUDGE_ERROR_KEY as NG_FAILURE_JUDGE_ERROR_KEY,
    NG_FAILURE_MESSAGE_KEY as NG_FAILURE_MESSAGE_KEY,
    NG_FAILURE_PARTIAL_RESPONSE_KEY as NG_FAILURE_PARTIAL_RESPONSE_KEY,
    NG_FAILURE_STAGE_KEY as NG_FAILURE_STAGE_KEY,
    NG_NO_PERSIST_KEY as NG_NO_PERSIST_KEY,
    NG_TERMINAL_KEY as NG_TERMINAL_KEY,
)
from rollbook.servers.openai_chat import (
    NeMoGymChatCompletion as NeMoGymChatCompletion,
    NeMoGymChatCompletionCreateParamsNonStreaming as NeMoGymChatCompletionCreateParamsNonStreaming,
    NeMoGymChatCompletionMessage as NeMoGymChatCompletionMessage,
    NeMoGymChatCompletionMessageCustomToolCall as NeMoGymChatCompletionMessageCustomToolCall,
    NeMoGymChatCompletionMessageForTraining as NeMoGymChatCompletionMessageForTraining,
    NeMoGymChatCompletionMessageParam as NeMoGymChatCompletionMessageParam,
    NeMoGymChatCompletionMessageToolCall as NeMoGymChatCompletionMessageToolCall,
    NeMoGymChatCompletionToolCall as NeMoGymChatCompletionToolCall,
    NeMoGymChatCompletionToolParam as NeMoGymChatCompletionToolParam,
    NeMoGymChoice as NeMoGymChoice,
    NeMoGymChoiceLogprobs as NeMoGymChoiceLogprobs,
    NeMoGymCompletionUsage as NeMoGymCompletionUsage,
    NeMoGymFunction as NeMoGymFunction,
    NeMoGymTokenLogprob as NeMoGymTokenLogprob,
)
from rollbook.servers.openai_items import (
    NeMoGymEasyInputMessage as NeMoGymEasyInputMessage,
    NeMoGymFunctionCallOutput as NeMoGymFunctionCallOutput,
    NeMoGymHostedItem as NeMoGymHostedItem,
    NeMoGymItemReference as NeMoGymItemReference,
    NeMoGymMessage as NeMoGymMessage,
    NeMoGymResponseFunctionCallOutput as NeMoGymResponseFunctionCallOutput,
    NeMoGymResponseFunctionToolCall as NeMoGymResponseFunctionToolCall,
    NeMoGymResponseOutputMessage as NeMoGymResponseOutputMessage,
    NeMoGymResponseReasoningItem as NeMoGymResponseReasoningItem,
)
from rollbook.servers.openai_parts import (
    NeMoGymInputContentPart as NeMoGymInputContentPart,
    NeMoGymOutputContentPart as NeMoGymOutputContentPart,
    NeMoGymReasoningText as NeMoGymReasoningText,
    NeMoGymResponseInputAudio as NeMoGymResponseInputAudio,
    NeMoGymResponseInputFile as NeMoGymResponseInputFile,
    NeMoGymResponseInputImage as NeMoGymResponseInputImage,
    NeMoGymResponseInputMessageContentList as NeMoGymResponseInputMessageContentList,
    NeMoGymResponseInputText as NeMoGymResponseInputText,
    NeMoGymResponseInputVideo as NeMoGymResponseInputVideo,
    NeMoGymResponseOutputRefusal as NeMoGymResponseOutputRefusal,
    NeMoGymResponseOutputText as NeMoGymResponseOutputText,
    NeMoGymSummary as NeMoGymSummary,
)
from rollbook.servers.openai_response import (
    NeMoGymIncompleteDetails as NeMoGymIncompleteDetails,
    NeMoGymReasoning as NeMoGymReasoning,
    NeMoGymResponse as NeMoGymResponse,
    NeMoGymResponseCreateParamsNonStreaming as NeMoGymResponseCreateParamsNonStreaming,
    NeMoGymResponseError as NeMoGymResponseError,
)
from rollbook.servers.openai_tools import (
    NeMoGymFunctionToolParam as NeMoGymFunctionToolParam,
    NeMoGymHostedToolParam as NeMoGymHostedToolParam,
    NeMoGymToolChoice as NeMoGymToolChoice,
    NeMoGymToolParam as NeMoGymToolParam,
)
from rollbook.servers.openai_training import (
    NeMoGymEasyInputMessageForTraining as NeMoGymEasyInputMessageForTraining,
    NeMoGymMessageForTraining as NeMoGymMessageForTraining,
    NeMoGymResponseFunctionToolCallForTraining as NeMoGymResponseFunctionToolCallForTraining,
    NeMoGymResponseOutputMessageForTraining as NeMoGymResponseOutputMessageForTraining,
    NeMoGymResponseReasoningItemForTraining as NeMoGymResponseReasoningItemForTraining,
    RESPONSES_TO_TRAIN as RESPONSES_TO_TRAIN,
    TokenIDLogProbMixin as TokenIDLogProbMixin,
    training_variant_of as training_variant_of,
)
from rollbook.servers.openai_unions import (
    NeMoGymResponseInput as NeMoGymResponseInput,
    NeMoGymResponseInputItem as NeMoGymResponseInputItem,
    NeMoGymResponseOutputItem as NeMoGymResponseOutputItem,
)
from rollbook.servers.openai_usage import (
    NeMoGymResponseInputTokensDetails as NeMoGymResponseInputTokensDetails,
    NeMoGymResponseOutputTokensDetails as NeMoGymResponseOutputTokensDetails,
    NeMoGymResponseUsage as NeMoGymResponseUsage,
    accumulate_response_usage as accumulate_response_usage,
)

__version__: Final = "0.1.0"
