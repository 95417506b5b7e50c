"""Who a rollout is: one identity, one type.

Rules:
* A key is built here and compared everywhere; nobody glues task and rollout numbers together by hand.
* A logical rollout id never ends like an attempt (`-a3`), so that (id, attempt) → capture key is injective.

Source: collection.md §1.1, §2.9; servers.md §3.10.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from rollbook.errors import InputError

TASK_INDEX_KEY_NAME: Final = "_ng_task_index"
ROLLOUT_INDEX_KEY_NAME: Final = "_ng_rollout_index"
ATTEMPT_INDEX_KEY_NAME: Final = "_ng_attempt_index"
ROLLOUT_ID_KEY_NAME: Final = "_ng_rollout_id"
RUN_ID_KEY: Final = "_ng_run_id"
MOST_ATTEMPTS: Final = 1_000_000
"""The highest number that an attempt may have; who reads a higher one reads a damaged line."""

_ROLLOUT_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_ATTEMPT_SUFFIX = re.compile(r".*-a[1-9][0-9]*")


class RolloutKey(msgspec.Struct, frozen=True, order=True):
    """One repeat of one task: what a plan owes and a score counts."""

    task: int
    rollout: int

    def __str__(self) -> str:
        """Write the key as the field writes a logical rollout id, for example `3-0`."""
        return f"{self.task}-{self.rollout}"


def checked_rollout_id(value: str) -> str:
    """Return `value` when it may name a logical rollout.

    Raises:
        InputError: it holds other characters than the wire allows, or ends like an attempt.

    """
    if not _ROLLOUT_ID.fullmatch(value):
        raise InputError(f"rollout id {value!r} does not match ^[A-Za-z0-9][A-Za-z0-9._-]*$")
    if _ATTEMPT_SUFFIX.fullmatch(value):
        raise InputError(f"rollout id {value!r} names an attempt (it ends in -a<number>); give the rollout's own id")
    return value


def is_index(value: object) -> bool:
    """Whether `value` is a non-negative integer and no boolean."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def logical_rollout_id(row: Mapping[str, Any]) -> str | None:
    """Return the id that all attempts of the row's rollout share, or None when the row names no rollout.

    The row's explicit `_ng_rollout_id` wins over `<task index>-<rollout index>`.
    """
    explicit = row.get(ROLLOUT_ID_KEY_NAME)
    if explicit is not None:
        return checked_rollout_id(str(explicit))
    task, rollout = row.get(TASK_INDEX_KEY_NAME), row.get(ROLLOUT_INDEX_KEY_NAME)
    return f"{task}-{rollout}" if is_index(task) and is_index(rollout) else None


def capture_key(rollout_id: str, attempt: int) -> str:
    """Return the name of one attempt in URLs, capture files and telemetry."""
    return f"{rollout_id}-a{attempt}" if attempt > 0 else rollout_id


def maybe_rollout_id(row: Mapping[str, Any]) -> str | None:
    """Return the capture key of the attempt that the row stands for, or None when it names no rollout."""
    rollout_id = logical_rollout_id(row)
    attempt = row.get(ATTEMPT_INDEX_KEY_NAME)
    if rollout_id is None:
        return None
    return capture_key(rollout_id, attempt if isinstance(attempt, int) and is_index(attempt) else 0)
