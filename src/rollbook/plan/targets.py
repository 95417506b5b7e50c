"""A row → the agents that run it, and the name by which options find it.

Rules:
* A specific `agent_map` entry wins over `_default`, that over the row's own agent, that over its `task_source`.
* `fan_out` looks at the name before `agent_map`, and ignores what `agent_map` says for that row.
* An environment-routed row is neither mapped nor fanned out. A row that names its server is one: it goes there, and
  is given the server's agent where it names none.
* An episode task goes by the route that the command names for its taskset, in every mode; else to the server that is
  named, the one of legacy routing or the row's own; else by the route that the deployment has.
* A row that names nobody goes to the configuration's only agent, where there is one.

Source: collection.md §2.2, §2.3, §2.10.
"""

from collections.abc import Mapping

import msgspec

from rollbook.errors import InputError
from rollbook.plan.options import DEFAULT_KEY, PlanOptions, RoutingMode
from rollbook.records.json_values import JsonMapping, JsonObject, text_or_none
from rollbook.records.keys import AGENT_REF_KEY, NG_ENVIRONMENT_SERVER_KEY, TASK_SOURCE_KEY
from rollbook.records.source import SourceRow, is_materialized


class Target(msgspec.Struct, frozen=True):
    """Where copies of a row go: `agent_ref` None leaves the agent to `task_source` or to the server."""

    agent_ref: JsonMapping | None
    server: str | None = None

    @property
    def agent(self) -> str | None:
        """The agent's instance name."""
        return name_in(self.agent_ref)


class Routing(msgspec.Struct, frozen=True):
    """A row's targets; `basis` is the name per-agent options know it by, `replaced` an (old, new) agent pair.

    `unrouted` is the taskset of an episode task that no route leads anywhere; it has no targets.
    """

    basis: str | None
    targets: tuple[Target, ...]
    replaced: tuple[str, str] | None = None
    unrouted: str | None = None
    fanned_out: bool = False


def name_in(agent_ref: object) -> str | None:
    """Return the agent name of an `agent_ref` value."""
    name = agent_ref.get("name") if isinstance(agent_ref, Mapping) else None
    return name if isinstance(name, str) and name else None


def route(source: SourceRow, options: PlanOptions) -> Routing | None:
    """Return where a row goes, or None when it names nobody and nobody stands in.

    Raises:
        InputError: an episode task whose route cannot be read; a flat row where routes are by task set.

    """
    row = source.row
    if is_materialized(row):
        return _episode_routing(source, options)
    if options.routing is RoutingMode.TASKSET:
        raise InputError(
            f"{source.place}: environment_routing_mode=taskset needs rows with `task_id` and `task_input`; "
            "use environment_routing_mode=agent for flat rows"
        )
    if options.routing is RoutingMode.LEGACY:
        return _environment_routing(row, options.environment_server)
    stamped = text_or_none(row.get(NG_ENVIRONMENT_SERVER_KEY))
    return _environment_routing(row, stamped) if stamped is not None else _agent_routing(row, options)


def _agent_routing(row: JsonMapping, options: PlanOptions) -> Routing | None:
    own = row.get(AGENT_REF_KEY)
    agent, task_source = name_in(own), text_or_none(row.get(TASK_SOURCE_KEY))
    basis = agent or task_source or options.only_agent
    if basis is not None and basis in options.fan_out:
        return Routing(basis, tuple(Target({"name": name}) for name in options.fan_out[basis]), fanned_out=True)
    mapped = _mapped(agent, task_source, options.agent_map)
    if mapped is not None:
        replaced = (agent, mapped) if agent and agent != mapped else None
        return Routing(basis or mapped, (Target({"name": mapped}),), replaced)
    if agent is not None and isinstance(own, Mapping):
        return Routing(basis, (Target(own),))
    if task_source is not None:
        return Routing(basis, (Target(None),))
    return Routing(basis, (Target({"name": basis}),)) if basis else None


def _mapped(agent: str | None, task_source: str | None, agent_map: Mapping[str, str]) -> str | None:
    for name in (agent, task_source, DEFAULT_KEY):
        if name is not None and name in agent_map:
            return agent_map[name]
    return None


def _episode_routing(source: SourceRow, options: PlanOptions) -> Routing:
    task_id = source.row["task_id"]
    taskset = str(task_id.get("taskset") if isinstance(task_id, Mapping) else None)
    legacy = options.routing is RoutingMode.LEGACY
    named = options.environment_server if legacy else text_or_none(source.row.get(NG_ENVIRONMENT_SERVER_KEY))
    try:
        server = options.environment_routes.get(taskset) or named or options.deployment_routes.get(taskset)
    except InputError as error:
        raise InputError(f"{source.place}: {error}") from None
    if server is None and not options.open_routes:
        return Routing(taskset, (), unrouted=taskset)
    return _environment_routing(source.row, server)


def _environment_routing(row: JsonMapping, server: str | None) -> Routing:
    task_id = row.get("task_id")
    taskset = text_or_none(task_id.get("taskset")) if isinstance(task_id, Mapping) else None
    basis = taskset or text_or_none(row.get(TASK_SOURCE_KEY)) or server
    own = row.get(AGENT_REF_KEY)
    agent_ref: JsonObject | None = dict(own) if isinstance(own, Mapping) else None
    return Routing(basis, (Target(agent_ref, server),))
