"""Materialized lines → rollouts, and which of them are still owed.

Rules:
* A line is read for its identity and its stamps alone; it is sent as it stands.
* Which rollouts are owed is asked of the fold; the number of an attempt is handed out when it is about to be sent.

Source: collection.md §1.5, §4.7, §4.8, §5.2.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

import msgspec

from rollbook.errors import InputError
from rollbook.plan.targets import name_in
from rollbook.records.codec import encode, provenance_of
from rollbook.records.disposition import DEFAULT_RULES, Rules
from rollbook.records.identity import (
    ATTEMPT_INDEX_KEY_NAME,
    ROLLOUT_ID_KEY_NAME,
    ROLLOUT_INDEX_KEY_NAME,
    TASK_INDEX_KEY_NAME,
    RolloutKey,
)
from rollbook.records.json_values import JsonObject
from rollbook.records.keys import (
    AGENT_REF_KEY,
    NG_ENVIRONMENT_SERVER_KEY,
    NG_POLICY_MODEL_SERVER_KEY,
    NG_RESULT_TYPE_KEY,
    REUSE_CACHED_DELIVERABLE_KEY,
    SKILLS_REF_KEY,
    TASK_SOURCE_KEY,
)
from rollbook.records.standing import Standings
from rollbook.records.task import Rollout


class Destination(msgspec.Struct, frozen=True):
    """The environment server that runs a row, what implements it, and the policy model behind its agent."""

    server: str
    result_type: str | None = None
    policy_model: str | None = None


_NONE_GIVEN: Final = msgspec.Raw()
FindDestination = Callable[[str | None, str | None], Destination]
"""(agent, stamped environment server) → where the row goes. Raises ConfigError when nothing or too much fits."""


class _Line(msgspec.Struct, gc=False):
    """What is read of a materialized line; names are kept as they are written, and read once a route."""

    task: int = msgspec.field(name=TASK_INDEX_KEY_NAME)
    rollout: int = msgspec.field(name=ROLLOUT_INDEX_KEY_NAME)
    rollout_id: msgspec.Raw = msgspec.field(name=ROLLOUT_ID_KEY_NAME, default=_NONE_GIVEN)
    agent_ref: msgspec.Raw = _NONE_GIVEN
    task_source: msgspec.Raw = _NONE_GIVEN
    skills_ref: msgspec.Raw = _NONE_GIVEN
    server: msgspec.Raw = msgspec.field(name=NG_ENVIRONMENT_SERVER_KEY, default=_NONE_GIVEN)
    task_id: msgspec.Raw = _NONE_GIVEN
    task_input: msgspec.Raw = _NONE_GIVEN


_DECODER: Final = msgspec.json.Decoder(_Line)


class _Route(msgspec.Struct, frozen=True):
    """Where lines that name the same agent, server, source and skills go, and what their records say of it."""

    destination: Destination
    agent: str | None
    stamped: bytes


class RolloutReader:
    """Materialized lines → rollouts. What many lines name alike is looked up once."""

    def __init__(self, find: FindDestination) -> None:
        self._find = find
        self._routes: dict[tuple[bytes, bytes, bytes, bytes], _Route] = {}

    def __call__(self, line: bytes) -> Rollout:
        """Read one materialized line.

        Raises:
            InputError: the line names no rollout.
            ConfigError: nothing or too much runs it.

        """
        try:
            read = _DECODER.decode(line)
        except msgspec.DecodeError as error:
            raise InputError(f"materialized inputs: a line that names no rollout: {error}") from error
        names = (bytes(read.agent_ref), bytes(read.server), bytes(read.task_source), bytes(read.skills_ref))
        route = self._routes.get(names)
        if route is None:
            route = self._routes[names] = self._route(names)
        is_episode = _is_episode(read)
        own = b'"_ng_task_index":%d,"_ng_rollout_index":%d' % (read.task, read.rollout)
        own += _own_names(read, is_episode=is_episode)
        return Rollout(
            RolloutKey(read.task, read.rollout),
            line,
            route.destination.server,
            route.agent,
            is_episode=is_episode,
            stamped=own + route.stamped,
        )

    def _route(self, names: tuple[bytes, bytes, bytes, bytes]) -> _Route:
        agent_ref, server, source, skills = (msgspec.json.decode(name) if name else None for name in names)
        agent = name_in(agent_ref)
        destination = self._find(agent, server if isinstance(server, str) else None)
        given = {AGENT_REF_KEY: agent_ref, TASK_SOURCE_KEY: source, SKILLS_REF_KEY: skills}
        present = dict(zip(given, (names[0], names[2], names[3]), strict=True))
        stamps = {key: value for key, value in given.items() if present[key]}
        stamps[NG_ENVIRONMENT_SERVER_KEY] = destination.server
        named = {NG_RESULT_TYPE_KEY: destination.result_type, NG_POLICY_MODEL_SERVER_KEY: destination.policy_model}
        stamps |= {key: value for key, value in named.items() if value is not None}
        return _Route(destination, agent, _inside(stamps))


def rollout_of(line: bytes, find: FindDestination) -> Rollout:
    """Read one materialized line; of many, a `RolloutReader` remembers what they name alike. Raises as it does."""
    return RolloutReader(find)(line)


def _is_episode(read: _Line) -> bool:
    """Whether the line is a materialized task, as `is_materialized` has it of a row."""
    return read.task_input != _NONE_GIVEN and bytes(read.task_id)[:1] == b"{"


def _own_names(read: _Line, *, is_episode: bool) -> bytes:
    """Return what a record of this line alone carries: its explicit id, and where its task came from."""
    stamps: JsonObject = {} if read.rollout_id == _NONE_GIVEN else {ROLLOUT_ID_KEY_NAME: read.rollout_id}
    if is_episode:
        stamps |= provenance_of(msgspec.json.decode(read.task_input))
    return _inside(stamps) if stamps else b""


def _inside(stamps: Mapping[str, object]) -> bytes:
    """Return `stamps` as they follow other keys of an object."""
    return b"," + encode(stamps)[1:-1]


def owed(
    rollouts: Iterable[Rollout | None], standings: Standings, rules: Rules = DEFAULT_RULES
) -> Iterator[Rollout | None]:
    """Yield the rollouts that a resume would run, in plan order; None, which stands for a pause, goes through."""
    return (rollout for rollout in rollouts if rollout is None or is_owed(rollout.key, standings, rules))


def is_owed(key: RolloutKey, standings: Standings, rules: Rules = DEFAULT_RULES) -> bool:
    """Whether another attempt of `key` is to be made."""
    return standings.standing(key, rules).is_owed


def numbered(rollout: Rollout, attempt: int, *, reuses_deliverable: bool = False) -> Rollout:
    """Return `rollout` as its attempt `attempt`; the number travels in the row and on every record."""
    row = msgspec.json.decode(rollout.line, type=dict[str, object]) | {ATTEMPT_INDEX_KEY_NAME: attempt}
    if reuses_deliverable:
        row[REUSE_CACHED_DELIVERABLE_KEY] = True
    stamped = encode(rollout.stamps | {ATTEMPT_INDEX_KEY_NAME: attempt})[1:-1]
    return msgspec.structs.replace(rollout, line=encode(row), attempt=attempt, stamped=stamped)
