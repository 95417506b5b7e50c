"""Which agent runs a data set's rows, and whether the servers that rows name exist and fit together.

Rules:
* Nothing is guessed: none and several candidates are errors that list them.
* Checks of many rows tell everything that is wrong in one message.

Source: servers.md §1.9, §8.3; collection.md §2.8, §2.10, §18.
"""

from collections.abc import Iterable, Iterator

from omegaconf import DictConfig

from rollbook.config.instances import (
    agents_bound_to,
    agents_of,
    attributed_agent,
    bound_to,
    dataset_entries,
    environment_servers,
    require_block,
)
from rollbook.config.missing import view_of
from rollbook.config.names import AGENTS, ENVIRONMENT_SERVERS, RESOURCES_SERVERS
from rollbook.config.pairing import BYPASS, names_in, pairing_is_free, unsupported_agent
from rollbook.config.taskset_routes import how_to_route
from rollbook.config.tree import Tree, block_of, blocks, did_you_mean, mapping_at
from rollbook.errors import ConfigError, InputError

_MAP_HINT = "or send the rows somewhere with +agent_map={<source>: <agent>} or +agent_name=<agent>"


def resolve_dataset_agent(
    cfg: DictConfig, declaring_instance: str, pin: str | None = None, taskset: str | None = None
) -> str:
    """Return the agent that runs the rows of a data set that `declaring_instance` declares.

    `pin` is the entry's own `agent`; `taskset` its task set, which then must have an environment server.

    Raises:
        InputError: a pin that does not fit, a task set without a route, or not exactly one candidate; lists them.
        ServerRefNotFoundError: no such instance.

    """
    tree = view_of(cfg)
    server_type, _, _ = require_block(tree, declaring_instance)
    if server_type not in {AGENTS, RESOURCES_SERVERS}:
        raise InputError(f"`{declaring_instance}` is one of {server_type}; only agents and resources servers have rows")
    if pin is not None:
        return _pinned(tree, declaring_instance, server_type, pin)
    if server_type == AGENTS:
        return declaring_instance
    routed = _routed(cfg, tree, taskset) if taskset is not None else None
    return routed or _only_bound(tree, declaring_instance)


def resolve_task_source(cfg: DictConfig, task_source: str) -> str:
    """Return the agent for rows that name nobody but the instance that declares them.

    Raises:
        InputError: no such instance, one without rows, several pins, or not exactly one candidate.

    """
    tree = view_of(cfg)
    if task_source not in tree:
        known = [name for name in tree if block_of(tree, name) is not None]
        raise InputError(f"there is no instance `{task_source}`.{did_you_mean(task_source, known)}")
    found = block_of(tree, task_source)
    if found is None or found[0] not in {AGENTS, RESOURCES_SERVERS}:
        raise InputError(f"`{task_source}` is neither an agent nor a resources server")
    pins = {str(entry["agent"]) for entry in dataset_entries(tree, task_source) if entry.get("agent")}
    if len(pins) > 1:
        raise InputError(f"the data sets of `{task_source}` pin several agents: {', '.join(sorted(pins))}; say which")
    return resolve_dataset_agent(cfg, task_source, next(iter(pins), None))


def resolve_task_sources(cfg: DictConfig, task_sources: Iterable[str]) -> dict[str, str]:
    """Return the agent for each task source.

    Raises:
        InputError: every source that leads to no agent, each with its reason.

    """
    agents: dict[str, str] = {}
    reasons: list[str] = []
    for source in dict.fromkeys(task_sources):
        try:
            agents[source] = resolve_task_source(cfg, source)
        except ConfigError as error:
            reasons.append(f"  task_source `{source}`: {error}")
    if reasons:
        raise InputError("\n".join(["rows lead to no agent:", *reasons, _MAP_HINT]))
    return agents


def check_agents(cfg: DictConfig, names: Iterable[str]) -> None:
    """Refuse agents that the configuration does not have.

    Raises:
        InputError: every such name, with the close ones.

    """
    tree = view_of(cfg)
    known = [name for name, _, _ in blocks(tree, AGENTS)]
    lines = [f"  {_unknown_agent(tree, name, known)}" for name in dict.fromkeys(names) if name not in known]
    if lines:
        listed = ", ".join(known) or "none"
        raise InputError("\n".join([f"rows name agents that are not there; agents: {listed}", *lines]))


def check_pairings(cfg: DictConfig, pairs: Iterable[tuple[str, str | None]]) -> None:
    """Refuse (agent, task source) pairs that a verifier does not admit, the agent's own verifier included.

    Raises:
        InputError: every such pair, with the list and the ways around it.

    """
    tree = view_of(cfg)
    reasons: dict[str, None] = {}
    for agent, source in pairs:
        own = bound_to(tree, agent, "resources_server", RESOURCES_SERVERS)
        for verifier in (source, own):
            reason = unsupported_agent(tree, agent, verifier) if verifier is not None else None
            if reason is not None:
                reasons[reason] = None
    if reasons:
        raise InputError("\n".join(reasons))


def check_dataset_admits(cfg: DictConfig, agent: str, taskset: str | None) -> None:
    """Refuse an agent that the data set of its rows does not admit; `taskset` is None for a flat row.

    Raises:
        InputError: names the agent, its type, the data set and its list.

    """
    tree = view_of(cfg)
    found = block_of(tree, agent)
    if found is None or pairing_is_free(tree):
        return
    for entry in _entries_for(tree, agent, taskset):
        admitted = names_in(entry.get("allowed_agents"))
        if admitted and found[1] not in admitted:
            raise InputError(
                f"agent `{agent}` is a {found[1]}; data set `{entry.get('name')}` admits {', '.join(admitted)} "
                f"(allowed_agents). {BYPASS}"
            )


def check_stamp(cfg: DictConfig, server: str, agent: str | None = None, task_source: str | None = None) -> None:
    """Refuse a row's environment server that is not there or does not fit the row's agent or task source.

    Raises:
        InputError: what does not fit, and what would.

    """
    tree = view_of(cfg)
    found = block_of(tree, server)
    known = environment_servers(cfg)
    if found is None or found[0] != ENVIRONMENT_SERVERS:
        listed = ", ".join(known) or "none"
        raise InputError(
            f"there is no environment server `{server}`; there are: {listed}.{did_you_mean(server, known)}"
        )
    fronted = agents_of(cfg, server)
    if agent is not None and fronted and agent not in fronted:
        raise InputError(
            f"the environment server `{server}` fronts {', '.join(fronted)}, not the row's agent `{agent}`"
        )
    bound = _resources_of_server(tree, found[2], attributed_agent(cfg, server))
    if task_source is not None and bound is not None and task_source not in {bound, *fronted}:
        raise InputError(f"the environment server `{server}` is bound to `{bound}`, the row comes from `{task_source}`")


def check_server_admits(cfg: DictConfig, server: str, agent: str | None, task_source: str | None = None) -> None:
    """Refuse the agent that runs an environment server's rows where their verifier does not admit it.

    Raises:
        InputError: names the agent, its type, the verifier and its list.

    """
    tree = view_of(cfg)
    _, _, block = require_block(tree, server)
    for verifier in (task_source, _resources_of_server(tree, block, agent)):
        reason = unsupported_agent(tree, agent, verifier) if agent is not None and verifier is not None else None
        if reason is not None:
            raise InputError(reason)


def _pinned(tree: Tree, declaring: str, server_type: str, pin: str) -> str:
    found = block_of(tree, pin)
    agents = [name for name, _, _ in blocks(tree, AGENTS)]
    if found is None or found[0] != AGENTS:
        raise InputError(f"`{declaring}` pins `{pin}`, which is no agent instance.{did_you_mean(pin, agents)}")
    wanted = declaring
    if server_type == AGENTS:
        wanted = bound_to(tree, declaring, "resources_server", RESOURCES_SERVERS) or declaring
    bound = bound_to(tree, pin, "resources_server", RESOURCES_SERVERS)
    if pin != declaring and bound != wanted:
        raise InputError(f"`{declaring}` pins `{pin}`, whose resources_server is `{bound}`, not `{wanted}`")
    return pin


def _routed(cfg: DictConfig, tree: Tree, taskset: str) -> str | None:
    server = (mapping_at(tree, "environment_server_routes") or {}).get(taskset)
    if server is None:
        raise InputError(f"no environment server for taskset `{taskset}`; {how_to_route(taskset)}")
    return attributed_agent(cfg, str(server))


def _only_bound(tree: Tree, resources_server: str) -> str:
    found = agents_bound_to(tree, resources_server)
    if len(found) != 1:
        what = f"several agents are: {', '.join(found)}; pin one with `agent:`" if found else "no agent is; add one"
        raise InputError(f"exactly one agent must be bound to `{resources_server}` to run its rows, {what}")
    return found[0]


def _unknown_agent(tree: Tree, name: str, known: list[str]) -> str:
    if name in tree:
        return f"`{name}` exists but is not an agent instance"
    return f"`{name}` is not in the configuration.{did_you_mean(name, known)}"


def _entries_for(tree: Tree, agent: str, taskset: str | None) -> Iterator[Tree]:
    own = list(dataset_entries(tree, agent))
    if taskset is None:
        yield from own
        return
    everywhere = [entry for name, _, _ in blocks(tree, AGENTS) for entry in dataset_entries(tree, name)]
    declared = [entry for entry in everywhere if (entry.get("taskset") or entry.get("name")) == taskset]
    yield from declared or [entry for entry in own if not entry.get("taskset")]


def _resources_of_server(tree: Tree, block: Tree, agent: str | None) -> str | None:
    ref = block.get("resources_server")
    if isinstance(ref, dict) and isinstance(ref.get("name"), str):
        return str(ref["name"])
    return bound_to(tree, agent, "resources_server", RESOURCES_SERVERS) if agent is not None else None
