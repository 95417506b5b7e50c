"""Rollouts without a result that enter the metrics with reward 0, because somebody chose so.

Rules:
* Where a rollout stands is asked of `Standings`: its latest execution decides first, and only then is it looked at
  whether what that left is counted.
* A recorded failure is never taken for a missing rollout, whatever its class.
* A rollout that names neither an agent nor a server belongs to nobody's metrics, and is not counted.
* Metrics alone change: the row of such a rollout exists in no file.

Source: collection.md §4.9, §4.11, §6.5, §21.1.6, §21.7(b); vectors V11, V16, V17; case RC-73.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final

import msgspec

from rollbook.records.columns import PLANNED, packed_key, unpacked_key
from rollbook.records.disposition import Disposition, Rules
from rollbook.records.identity import ROLLOUT_INDEX_KEY_NAME, TASK_INDEX_KEY_NAME, RolloutKey
from rollbook.records.json_values import JsonMapping, JsonObject
from rollbook.records.keys import (
    AGENT_REF_KEY,
    FAILURE_REASON_KEY,
    MASK_SAMPLE_KEY,
    NG_ENVIRONMENT_SERVER_KEY,
    NG_FAILURE_PREFIX,
    RESPONSE_KEY,
    RESPONSES_CREATE_PARAMS_KEY,
    REWARD_KEY,
    ROLLOUT_FAILURE_KEY,
    STATUS_FAILURE_KIND_KEY,
)
from rollbook.records.outcome import Failed, Outcome, Result
from rollbook.records.place import Place
from rollbook.records.reading import reward_of
from rollbook.records.standing import Standing, Standings
from rollbook.records.table import NO_ROW

BY_CLASS: Final = "class"
BY_MARK: Final = "mark"
AS_MISSING: Final = "missing"

_MISSING: Final = frozenset(
    {Disposition.INTERRUPTED, Disposition.HELD_INTERRUPTED, Disposition.NEVER_STARTED, Disposition.UNTOUCHED}
)
_ABOUT_THE_FAILURE: Final = frozenset({STATUS_FAILURE_KIND_KEY, FAILURE_REASON_KEY, ROLLOUT_FAILURE_KEY})
_NEVER_ADDED: Final = frozenset({RESPONSE_KEY, RESPONSES_CREATE_PARAMS_KEY})


class Counting(msgspec.Struct, frozen=True):
    """What was chosen to count as zero: failures of these classes, and rollouts that left nothing.

    A failure that its producer marked counts whatever was chosen.
    """

    failure_classes: frozenset[str] = frozenset()
    missing: bool = False


NOTHING_COUNTED: Final = Counting()


class Added(msgspec.Struct, frozen=True):
    """A rollout that has no result and counts as zero.

    `why` is `class` or `mark`, where a failure counts that lies at `place` (None where it is not known), or `missing`.
    `agent` and `server` are those of the plan, else those that the failure names. `reward` is 0 unless the failure's
    row holds another one, as older versions wrote it.
    """

    key: RolloutKey
    agent: str | None
    server: str | None
    why: str
    place: Place | None
    reward: float = 0.0


def added(standings: Standings, counting: Counting, rules: Rules) -> Iterator[Added]:
    """Yield every planned rollout that has no result and counts as zero, by task and repeat.

    Where the fold holds no plan, every rollout counts as planned that a record names.
    """
    return (one for one in _chosen(standings, counting, rules) if one.agent is not None or one.server is not None)


def without_failures(
    counting: Counting, folds: Iterable[Standings], failed_by_class: Mapping[str, int]
) -> Iterator[str]:
    """Yield of every chosen class that no failure in `folds` is of that it is none, and which there are.

    Where nothing failed, nothing is told: a class is chosen for what may happen.
    """
    kinds = {kind.failure_class for fold in folds for kind in fold.kinds_of_ending if isinstance(kind, Failed)}
    there_are = ", ".join(f"{name} ({count})" for name, count in failed_by_class.items())
    for name in sorted(counting.failure_classes - kinds) if there_are else ():
        yield f"no rollout failed with class {name}; there are: {there_are}"


def zeros(standings: Standings, counting: Counting, rules: Rules) -> Iterator[tuple[int, float]]:
    """Yield the packed key and the reward of every rollout that `added` yields."""
    return ((packed_key(one.key), one.reward) for one in added(standings, counting, rules))


def nameless(standings: Standings, counting: Counting, rules: Rules) -> int:
    """Return how many rollouts were to count as zero and do not, because neither agent nor server is known of them."""
    return sum(one.agent is None and one.server is None for one in _chosen(standings, counting, rules))


def added_row(
    one: Added, failure: JsonMapping | None, task: JsonMapping | None, carried: Collection[str]
) -> JsonObject:
    """Return the row that stands for `one` in the metrics.

    `failure` is the row of the failure that counts (None for a missing rollout), `task` the rollout's materialized row,
    and `carried` the keys that real rows of the same group have: no other field of the task is added.
    """
    row: JsonObject = {} if failure is None else _without_the_failure(failure)
    row[TASK_INDEX_KEY_NAME], row[ROLLOUT_INDEX_KEY_NAME] = one.key.task, one.key.rollout
    if failure is not None:
        row[MASK_SAMPLE_KEY] = False
    if reward_of(row.get(REWARD_KEY)) is None:
        row[REWARD_KEY] = 0.0
    if one.server is not None:
        row.setdefault(NG_ENVIRONMENT_SERVER_KEY, one.server)
    task = task or {}
    if one.agent is not None:
        row.setdefault(AGENT_REF_KEY, task.get(AGENT_REF_KEY) or {"name": one.agent})
    return row | {name: value for name, value in task.items() if name not in row and _may_be_added(name, carried)}


def _without_the_failure(failure: JsonMapping) -> JsonObject:
    return {
        name: value
        for name, value in failure.items()
        if name not in _ABOUT_THE_FAILURE and not name.startswith(NG_FAILURE_PREFIX)
    }


def _may_be_added(name: str, carried: Collection[str]) -> bool:
    return name in carried and not name.startswith("_") and name not in _NEVER_ADDED


def _chosen(standings: Standings, counting: Counting, rules: Rules) -> Iterator[Added]:
    kinds = standings.kinds_of_ending
    if not counting.missing and not any(_why_it_counts(kind, counting) for kind in kinds):
        return
    for number in _without_result(standings, kinds):
        standing = standings.standing(unpacked_key(number), rules)
        why = _why(standing, counting)
        if why is not None:
            yield _named(standings, number, standing, why)


def _without_result(standings: Standings, kinds: tuple[Outcome, ...]) -> Iterator[int]:
    """Yield the packed key of each planned rollout of which no result stands, in order."""
    columns, of_row = standings.columns, standings.table.kinds
    results = frozenset(number for number, kind in enumerate(kinds) if isinstance(kind, Result))
    every = not any(columns.flags)
    for number, seat in standings.in_order():
        row = columns.row[seat]
        if (row == NO_ROW or of_row[row] not in results) and (every or columns.flags[seat] & PLANNED):
            yield number


def _why(standing: Standing, counting: Counting) -> str | None:
    if standing.disposition in _MISSING:
        return AS_MISSING if counting.missing else None
    if standing.record is None or standing.disposition is Disposition.IN_FLIGHT:
        return None
    return _why_it_counts(standing.record.outcome, counting)


def _why_it_counts(outcome: Outcome, counting: Counting) -> str | None:
    if not isinstance(outcome, Failed):
        return None
    if outcome.counts_as_zero:
        return BY_MARK
    return BY_CLASS if {outcome.failure_class, outcome.legacy_class} & counting.failure_classes else None


def _named(standings: Standings, number: int, standing: Standing, why: str) -> Added:
    columns, record = standings.columns, standing.record
    seat = columns.seats[number]
    agent, server = columns.names[columns.group[seat]] if columns.flags[seat] & PLANNED else (None, None)
    if record is not None:
        agent, server = agent or record.agent, server or record.server
    if record is None or why == AS_MISSING:
        return Added(standing.key, agent, server, why, None)
    kept = record.outcome.reward if isinstance(record.outcome, Failed) else None
    return Added(standing.key, agent, server, why, record.place, kept or 0.0)
