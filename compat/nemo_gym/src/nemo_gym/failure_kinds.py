"""The words for what went wrong."""

from rollbook import (
    JUDGE_FAILED as JUDGE_FAILED,
    JUDGE_UNPARSEABLE as JUDGE_UNPARSEABLE,
    VERIFIER_ERROR as VERIFIER_ERROR,
    FailureStage as FailureStage,
    is_namespaced as is_namespaced,
    is_registered as is_registered,
    validate_failure_kind as validate_failure_kind,
)
