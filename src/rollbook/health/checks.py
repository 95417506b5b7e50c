"""Every health check: its id, what it is run on, and the function that looks.

Rules:
* A check is found by its line here; adding one is adding a line and a function.
* Checks of a record look at it alone. Those of a task, of copies and of checks that raised belong to the reductions:
  `tasks`, `summary` and `examine`.

Source: collection.md §7.2.
"""

from collections.abc import Callable, Iterable
from typing import Final

import msgspec

from rollbook.health import record_checks as record
from rollbook.health.finding import Scope
from rollbook.health.observed import Observed

Looks = Callable[[Observed], record.Result]


class Check(msgspec.Struct, frozen=True):
    """One check; `looks` is None where a reduction decides."""

    id: str
    scope: Scope
    looks: Looks | None = None


EXECUTION_ERROR: Final = "check_execution_error"
UNREADABLE: Final = "record_unreadable"
DUPLICATE: Final = "rollout_duplicate_identity"
ENDED_ON_FAILED_CALL: Final = "rollout_ended_on_failed_model_call"
CONSISTENTLY_UNHEALTHY: Final = "task_consistently_unhealthy"
NO_SUCCESSFUL_CALLS: Final = "task_no_successful_model_calls"

CHECKS: Final = (
    Check(EXECUTION_ERROR, Scope.EXECUTION),
    Check(UNREADABLE, Scope.EXECUTION),
    Check(DUPLICATE, Scope.DUPLICATES),
    Check("rollout_missing_agent_turns", Scope.RECORD, record.missing_agent_turns),
    Check(ENDED_ON_FAILED_CALL, Scope.RECORD, record.ended_on_failed_model_call),
    Check("agent_turn_hollow", Scope.RECORD, record.turn_hollow),
    Check("model_call_zero_completion_tokens", Scope.RECORD, record.zero_completion_tokens),
    Check("model_call_missing_token_counts", Scope.RECORD, record.missing_token_counts),
    Check("trajectory_capture_mismatch", Scope.RECORD, record.capture_mismatch),
    Check("model_call_failed", Scope.RECORD, record.model_call_failed),
    Check("rollout_token_count_mismatch", Scope.RECORD, record.token_count_mismatch),
    Check("model_call_runaway_generation", Scope.RECORD, record.runaway_generation),
    Check(CONSISTENTLY_UNHEALTHY, Scope.TASK),
    Check(NO_SUCCESSFUL_CALLS, Scope.TASK),
)
CHECK_IDS: Final = tuple(check.id for check in CHECKS)
BIT: Final = {name: 1 << number for number, name in enumerate(CHECK_IDS)}
"""Checks as bits, in the order of the table: how very many records keep what was found in each."""
BY_NUMBER: Final = (DUPLICATE, CONSISTENTLY_UNHEALTHY, NO_SUCCESSFUL_CALLS)
"""Checks that know rollouts and tasks by their numbers alone."""
OF_RECORDS: Final = tuple(check for check in CHECKS if check.scope is not Scope.TASK)
OF_TASKS: Final = tuple(check for check in CHECKS if check.scope is Scope.TASK)


def mask_of(names: Iterable[str]) -> int:
    """Return the bits of the checks that `names` give."""
    mask = 0
    for name in names:
        mask |= BIT[name]
    return mask


def names_of(mask: int) -> list[str]:
    """Return the checks whose bits `mask` has, in the order of the table."""
    return [name for name, bit in BIT.items() if mask & bit]


def ignored_of(names: Iterable[str]) -> tuple[str, ...]:
    """Return the checks to ignore: trimmed, each once, in the order of the table.

    Raises:
        ValueError: an id that is no check's; names the known ones.

    """
    asked = {name.strip() for name in names} - {""}
    unknown = sorted(asked - BIT.keys())
    if unknown:
        raise ValueError(f"unknown health checks: {', '.join(unknown)}; known: {', '.join(sorted(BIT))}")
    return tuple(name for name in CHECK_IDS if name in asked)
