"""Materialized lines → rollouts, and which of them are still owed.

Rules:
* A line is read for its identity and its stamps alone; it is sent as it stands.
* Which rollouts are owed is asked of the fold; the number of an attempt is handed out when it is about to be sent.

Source: collection.md §1.5, §4.7, §4.8, §5.2.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

import msgspec

from rollbook.errors import InputError
from rollbook.plan.targets import name_in
from rollbook.records.codec import encode, stamps_of
from rollbook.records.disposition import DEFAULT_RULES, OWED, Rules
from rollbook.records.identity import ATTEMPT_INDEX_KEY_NAME, RolloutKey
from rollbook.records.keys import (
    AGENT_REF_KEY,
    NG_ENVIRONMENT_SERVER_KEY,
    NG_POLICY_MODEL_SERVER_KEY,
    NG_RESULT_TYPE_KEY,
    REUSE_CACHED_DELIVERABLE_KEY,
)
from rollbook.records.source import is_materialized
from rollbook.records.standing import Standings
from rollbook.records.task import Rollout


@dataclass(frozen=True, slots=True)
class Destination:
    """The environment server that runs a row, what implements it, and the policy model behind its agent."""

    server: str
    result_type: str | None = None
    policy_model: str | None = None


FindDestination = Callable[[str | None, str | None], Destination]
"""(agent, stamped environment server) → where the row goes. Raises ConfigError when nothing or too much fits."""


class _Line(msgspec.Struct):
    task: int = msgspec.field(name="_ng_task_index")
    rollout: int = msgspec.field(name="_ng_rollout_index")
    rollout_id: Any = msgspec.field(name="_ng_rollout_id", default=msgspec.UNSET)
    agent_ref: Any = msgspec.UNSET
    task_source: Any = msgspec.UNSET
    skills_ref: Any = msgspec.UNSET
    server: Any = msgspec.field(name=NG_ENVIRONMENT_SERVER_KEY, default=msgspec.UNSET)
    task_id: Any = msgspec.UNSET
    task_input: Any = msgspec.UNSET


_DECODER: Final = msgspec.json.Decoder(_Line)


def rollout_of(line: bytes, find: FindDestination) -> Rollout:
    """Read one materialized line.

    Raises:
        InputError: the line names no rollout.

    """
    try:
        read = _DECODER.decode(line)
    except msgspec.DecodeError as error:
        raise InputError(f"materialized inputs: a line that names no rollout: {error}") from error
    row: dict[str, object] = msgspec.to_builtins(read)
    agent = name_in(row.get(AGENT_REF_KEY))
    destination = find(agent, read.server if isinstance(read.server, str) else None)
    stamps = stamps_of(row) | {NG_ENVIRONMENT_SERVER_KEY: destination.server}
    named = {NG_RESULT_TYPE_KEY: destination.result_type, NG_POLICY_MODEL_SERVER_KEY: destination.policy_model}
    stamps |= {key: value for key, value in named.items() if value is not None}
    return Rollout(
        key=RolloutKey(read.task, read.rollout),
        line=line,
        server=destination.server,
        agent=agent,
        is_episode=is_materialized(row),
        stamps=stamps,
    )


def owed(
    rollouts: Iterable[Rollout | None], standings: Standings, rules: Rules = DEFAULT_RULES
) -> Iterator[Rollout | None]:
    """Yield the rollouts that a resume would run, in plan order; None, which stands for a pause, goes through."""
    return (rollout for rollout in rollouts if rollout is None or is_owed(rollout.key, standings, rules))


def is_owed(key: RolloutKey, standings: Standings, rules: Rules = DEFAULT_RULES) -> bool:
    """Whether another attempt of `key` is to be made."""
    return standings.standing(key, rules).disposition in OWED


def numbered(rollout: Rollout, attempt: int, *, reuses_deliverable: bool = False) -> Rollout:
    """Return `rollout` as its attempt `attempt`; the number travels in the row and on every record."""
    row = msgspec.json.decode(rollout.line, type=dict[str, object]) | {ATTEMPT_INDEX_KEY_NAME: attempt}
    if reuses_deliverable:
        row[REUSE_CACHED_DELIVERABLE_KEY] = True
    stamps = dict(rollout.stamps) | {ATTEMPT_INDEX_KEY_NAME: attempt}
    return replace(rollout, line=encode(row), attempt=attempt, stamps=stamps)
