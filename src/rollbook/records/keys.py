"""The field's own key names for how an attempt ended and where it came from.

Rules:
* These names stand here once; outside `records` an ending is a type, and its keys are never spelled.
* Identity keys live in `identity`, beside the values they build.

Source: collection.md §1.3.
"""

from typing import Final

from rollbook.records.identity import ATTEMPT_INDEX_KEY_NAME, RUN_ID_KEY

NG_FAILURE_CLASS_KEY: Final = "_ng_failure_class"
NG_FAILURE_LEGACY_CLASS_KEY: Final = "_ng_failure_legacy_class"
NG_TERMINAL_KEY: Final = "_ng_failure_terminal"
NG_FAILURE_TYPE_KEY: Final = "_ng_failure_type"
NG_FAILURE_MESSAGE_KEY: Final = "_ng_failure_message"
NG_FAILURE_HTTP_STATUS_KEY: Final = "_ng_failure_http_status"
NG_FAILURE_RESPONSE_BODY_KEY: Final = "_ng_failure_response_body"
NG_FAILURE_STAGE_KEY: Final = "_ng_failure_stage"
NG_FAILURE_PARTIAL_RESPONSE_KEY: Final = "_ng_failure_partial_response"
NG_FAILURE_JUDGE_ERROR_KEY: Final = "_ng_failure_judge_error"
NG_FAILURE_MAX_ATTEMPTS_KEY: Final = "_ng_failure_max_attempts"
NG_FAILURE_COUNTS_AS_ZERO_KEY: Final = "_ng_failure_counts_as_zero"
NG_FAILURE_DELIVERY_KEY: Final = "_ng_failure_delivery"
NG_FAILURE_EVIDENCE_KEY: Final = "_ng_failure_evidence"
NG_FAILURE_EVENTS_KEY: Final = "_ng_failure_events"
NG_FAILURE_ID_KEY: Final = "_ng_failure_id"
REJUDGED_FAILURE_ID_KEY: Final = "_ng_rejudged_failure_id"
NG_FAILURE_EVENTS_OMITTED_KEY: Final = "_ng_failure_events_omitted"
NG_FAILURE_REPORT_KEYS: Final = (NG_FAILURE_EVENTS_KEY, NG_FAILURE_ID_KEY, NG_FAILURE_EVENTS_OMITTED_KEY)
STATUS_FAILURE_KIND_KEY: Final = "failure_kind"
FAILURE_REASON_KEY: Final = "failure_reason"
ROLLOUT_FAILURE_KEY: Final = "rollout_failure"
"""The key of a saved failure row that holds its typed record."""
STATUS_MODEL_FINAL_KEY: Final = "_ng_model_final"

NG_NO_PERSIST_KEY: Final = "_ng_no_persist"
NG_DISPATCH_DRAINED_KEY: Final = "_ng_dispatch_drained"
NG_OMITTED_ROLLOUT_KEY: Final = "_ng_omitted_rollout"
NG_UNROUTED_RUN_ERROR_KEY: Final = "_ng_unrouted_run_error"

NG_FAILURE_PREFIX: Final = "_ng_failure_"
COLLECTOR_KEYS: Final = frozenset(
    {
        NG_NO_PERSIST_KEY,
        NG_DISPATCH_DRAINED_KEY,
        NG_OMITTED_ROLLOUT_KEY,
        NG_UNROUTED_RUN_ERROR_KEY,
        ATTEMPT_INDEX_KEY_NAME,
        RUN_ID_KEY,
    }
)
"""What collection alone writes, besides every key with `NG_FAILURE_PREFIX`; no dataset row has it."""

AGENT_REF_KEY: Final = "agent_ref"
TASK_SOURCE_KEY: Final = "task_source"
SKILLS_REF_KEY: Final = "skills_ref"
NG_ENVIRONMENT_SERVER_KEY: Final = "_ng_environment_server"
NG_RESULT_TYPE_KEY: Final = "_ng_result_type"
NG_TASK_ID_KEY: Final = "_ng_task_id"
NG_POLICY_MODEL_SERVER_KEY: Final = "ng_policy_model_server"
NG_DIGEST_KEY: Final = "_ng_digest"
NG_DATASET_DIGEST_KEY: Final = "_ng_dataset_digest"
PROVENANCE_KEYS: Final = (NG_DIGEST_KEY, NG_DATASET_DIGEST_KEY)
NG_ELAPSED_KEY: Final = "elapsed_seconds"

COLLECTOR_STAMPS: Final = frozenset(
    {
        AGENT_REF_KEY,
        TASK_SOURCE_KEY,
        SKILLS_REF_KEY,
        NG_POLICY_MODEL_SERVER_KEY,
        "ng_model_call_capture",
        "ng_perf",
    }
)
"""What the collector may put onto a record, besides keys that begin with `_ng_`."""

ROLLOUT_REPEAT_ATTRIBUTE: Final = "nemo.gym.rollout.repeat"
TASK_ID_ATTRIBUTE: Final = "nemo.gym.task.id"

DELIVERABLES_KEY: Final = "deliverables_dir"
REUSE_CACHED_DELIVERABLE_KEY: Final = "reuse_cached_deliverable"
REWARD_KEY: Final = "reward"
RESPONSE_KEY: Final = "response"
MASK_SAMPLE_KEY: Final = "mask_sample"
RESPONSES_CREATE_PARAMS_KEY: Final = "responses_create_params"

BULKY_KEYS: Final = frozenset(
    {
        RESPONSE_KEY,
        RESPONSES_CREATE_PARAMS_KEY,
        "ng_agent_observations",
        "ng_model_call_capture",
        "ng_trajectory",
    }
)
"""Top-level values that an aggregation request leaves out."""
