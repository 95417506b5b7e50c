"""Which rollouts saved rows complete.

Rules:
* A rollout is counted once, however many rows it has.

Source: collection.md §6.7, §21.4.26.
"""

from collections.abc import Iterable
from typing import Final

from rollbook.records.identity import ROLLOUT_INDEX_KEY_NAME, TASK_INDEX_KEY_NAME
from rollbook.records.json_values import JsonMapping
from rollbook.records.keys import NG_FAILURE_CLASS_KEY, NG_NO_PERSIST_KEY

_IDENTITY: Final = ("stage_index", TASK_INDEX_KEY_NAME, ROLLOUT_INDEX_KEY_NAME)


def completed_samples(results: Iterable[JsonMapping], final_zeros: Iterable[JsonMapping]) -> int:
    """Return how many rollouts have a result among `results`, or a failure that is a score of 0 for good."""
    completed = [row for row in results if not (row.get(NG_FAILURE_CLASS_KEY) or row.get(NG_NO_PERSIST_KEY))]
    return len({tuple(row.get(key) for key in _IDENTITY) for row in (*completed, *final_zeros)})
