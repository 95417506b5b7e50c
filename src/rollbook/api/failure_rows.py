"""What a row of the failures sidecar says about further attempts, for code that reads such rows itself.

Rules:
* The rule is that of a resume (`records/disposition.py`); here a row is only turned into what it asks for.

Source: collection.md §4.7, §4.8.
"""

import os

from rollbook.config.attempt_cap import max_rollout_attempts
from rollbook.records import disposition, keys
from rollbook.records.json_values import JsonMapping
from rollbook.records.outcome import Failed


def is_terminal_failure(row: JsonMapping, *, retry_terminal_timeouts: bool = False) -> bool:
    """Whether no further attempt is made after the failure in `row`, however few there were.

    `retry_terminal_timeouts`: failures by time and by what was missing are tried again, as that setting of a run does.
    """
    told = row.get(keys.NG_FAILURE_LEGACY_CLASS_KEY)
    failed = Failed(
        failure_class=str(row.get(keys.NG_FAILURE_CLASS_KEY)),
        terminal=bool(row.get(keys.NG_TERMINAL_KEY)),
        legacy_class=told if isinstance(told, str) else None,
    )
    return disposition.is_terminal_failure(failed, retry_terminal_timeouts=retry_terminal_timeouts)


def get_max_rollout_attempts() -> int:
    """Return how many failures a rollout of a run that starts now may have: `NEMO_GYM_MAX_ROLLOUT_ATTEMPTS`, or 3."""
    return max_rollout_attempts(os.environ)
