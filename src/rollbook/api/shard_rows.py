"""Rows that a caller holds → the rows of a shard: named anew, so that no two shards have a rollout by the same name.

Rules:
* A rollout's id is the shard's run id before the row's own; a row that another shard returned loses that one's first.
* What is recorded names its task and its rollout; of a row that has an id alone, its place in the call is its task.
* Two rows never stand for one rollout or have one name, and no number is one that the log of attempts cannot hold.

Source: collection.md §2.9, §11, §21.2 (16).
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from rollbook.api.direct_rows import DirectRow
from rollbook.errors import InputError
from rollbook.records.columns import LOW
from rollbook.records.identity import (
    MOST_ATTEMPTS,
    ROLLOUT_ID_KEY_NAME,
    ROLLOUT_INDEX_KEY_NAME,
    RUN_ID_KEY,
    TASK_INDEX_KEY_NAME,
    RolloutKey,
    is_index,
    logical_rollout_id,
)
from rollbook.records.json_values import JsonObject

_LARGEST_TASK = 2**63


def shard_rows(examples: Iterable[JsonObject], run_id: str) -> Iterator[JsonObject]:
    """Yield copies of `examples` that name the shard's run; a row that names no rollout is left as it is."""
    for number, row in enumerate(examples):
        yield _of_shard(dict(row), number, run_id) if isinstance(row, Mapping) else row


def _of_shard(row: JsonObject, number: int, run_id: str) -> JsonObject:
    try:
        own = logical_rollout_id(row)
    except InputError:
        return row
    if own is None:
        return row
    earlier = row.get(RUN_ID_KEY)
    if isinstance(earlier, str) and earlier:
        own = own.removeprefix(f"{earlier}-") or own
    named: JsonObject = {ROLLOUT_ID_KEY_NAME: f"{run_id}-{own}", RUN_ID_KEY: run_id}
    if not (is_index(row.get(TASK_INDEX_KEY_NAME)) and is_index(row.get(ROLLOUT_INDEX_KEY_NAME))):
        named |= {TASK_INDEX_KEY_NAME: number, ROLLOUT_INDEX_KEY_NAME: 0}
    return row | named


def refuse_unrecordable(rows: Sequence[DirectRow]) -> None:
    """Refuse rows of which a ledger could not tell what became of them.

    Raises:
        InputError: all of them.

    """
    faults, seen, named = list[str](), dict[RolloutKey, int](), dict[str | None, int]()
    for number, row in enumerate(rows):
        key = row.rollout.key
        first, first_named = seen.setdefault(key, number), named.setdefault(row.rollout_id, number)
        if first != number:
            faults.append(f"row {number}: the rollout {key} is that of row {first}; number each task's repeats from 0")
        elif first_named != number:
            faults.append(
                f"row {number}: the rollout id {_own_id(row)!r} is that of row {first_named}; leave "
                f"`{ROLLOUT_ID_KEY_NAME}` out, or give each row an id of its own"
            )
        if key.task >= _LARGEST_TASK or key.rollout > LOW or row.attempt > MOST_ATTEMPTS:
            faults.append(f"row {number}: the rollout {key}, attempt {row.attempt}, has a number that is too large")
    if faults:
        raise InputError("\n".join(faults))


def _own_id(row: DirectRow) -> str:
    return str(row.rollout_id).removeprefix(f"{row.run_id}-")


def are_numbered_in_order(rows: Iterable[DirectRow]) -> bool:
    """Whether each task's rollouts are numbered 0, 1, … in the order of the rows, as a plan made of them numbers."""
    counts: Counter[int] = Counter()
    for row in rows:
        key = row.rollout.key
        if key.rollout != counts[key.task]:
            return False
        counts[key.task] += 1
    return True
