"""Asking a judge model."""

from rollbook import (
    JudgeError as JudgeError,
    call_judge as call_judge,
    judge_failsafe as judge_failsafe,
    reraise_judge_errors as reraise_judge_errors,
)
