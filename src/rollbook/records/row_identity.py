"""Who a saved row says it is.

Rules:
* Two rows are of one attempt when rollout and attempt agree, and the run where both name one.
* A row whose identity keys are no identity is nobody's; reading it never fails.

Source: collection.md §1.3, §5.4.1.
"""

from rollbook.errors import InputError
from rollbook.records.identity import ATTEMPT_INDEX_KEY_NAME, RUN_ID_KEY, is_index, logical_rollout_id
from rollbook.records.json_values import JsonMapping

Identity = tuple[str | None, str, int]
"""Run id (None in rows that no managed run wrote), logical rollout id, attempt."""


def identity_of_row(row: JsonMapping) -> Identity | None:
    """Return who a row says it is, or None when it names no rollout."""
    try:
        rollout_id = logical_rollout_id(row)
    except InputError:
        return None
    if rollout_id is None:
        return None
    run_id, attempt = row.get(RUN_ID_KEY), row.get(ATTEMPT_INDEX_KEY_NAME)
    return (
        run_id if isinstance(run_id, str) and run_id else None,
        rollout_id,
        attempt if isinstance(attempt, int) and is_index(attempt) else 0,
    )


def is_same_attempt(row: JsonMapping, other: JsonMapping) -> bool:
    """Whether two rows are of one attempt of one rollout, as far as they say."""
    first, second = identity_of_row(row), identity_of_row(other)
    if first is None or second is None or first[1:] != second[1:]:
        return False
    return first[0] == second[0] or None in {first[0], second[0]}
