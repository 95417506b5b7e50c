"""Questions about the servers of a finished configuration: which there are, and who is bound to whom.

Rules:
* An answer is read from the resolved configuration; nothing is guessed from a name.
* Where one server is needed, none and several are errors that list the candidates.

Source: servers.md §1.9, §8.3; collection.md §2.8, §2.10.
"""

from collections.abc import Iterator

from omegaconf import DictConfig

from rollbook.config.environments import agents_fronted_by
from rollbook.config.missing import view_of
from rollbook.config.names import AGENTS, ENVIRONMENT_SERVERS, MODELS, RESOURCES_SERVERS
from rollbook.config.references import is_candidate, problems
from rollbook.config.tree import Tree, block_of, blocks, did_you_mean, mapping_at, ref_name
from rollbook.config.types import ServerInstanceConfig
from rollbook.errors import (
    AgentWithoutEnvironmentServerError,
    AmbiguousEnvironmentServerError,
    ConfigError,
    NoServerInstancesError,
    ServerRefNotFoundError,
)


def server_instances(cfg: DictConfig) -> tuple[ServerInstanceConfig, ...]:
    """Return the server instances of a configuration, in its order; blocks that only look like servers are left out."""
    tree = view_of(cfg)
    return tuple(_instance(tree, name) for name in tree if is_candidate(tree, name) and not problems(tree, name))


def require_server_instances(cfg: DictConfig) -> tuple[ServerInstanceConfig, ...]:
    """Return the server instances of a configuration that must have some.

    Raises:
        NoServerInstancesError: it has none.

    """
    found = server_instances(cfg)
    if not found:
        raise NoServerInstancesError(
            "the configuration declares no server; name one with --config, --environment, --benchmark or "
            "--resources-server, or +config_paths=[<file>]"
        )
    return found


def agents(cfg: DictConfig) -> tuple[str, ...]:
    """Return the names of the agent instances, in the configuration's order."""
    return tuple(name for name, _, _ in blocks(view_of(cfg), AGENTS))


def implementation_of(cfg: DictConfig, instance: str) -> tuple[str, str]:
    """Return (server type, implementation) of an instance.

    Raises:
        ServerRefNotFoundError: no such instance; names the close ones.

    """
    server_type, implementation, _ = require_block(view_of(cfg), instance)
    return server_type, implementation


def first_block(cfg: DictConfig, instance: str) -> DictConfig:
    """Return the innermost mapping of an instance, as a part of `cfg`.

    Raises:
        ServerRefNotFoundError: no such instance; names the close ones.

    """
    server_type, implementation, _ = require_block(view_of(cfg), instance)
    block = cfg[instance][server_type][implementation]
    if not isinstance(block, DictConfig):
        raise ConfigError(f"`{instance}.{server_type}.{implementation}` is no mapping")
    return block


def resources_server_of(cfg: DictConfig, agent: str) -> str | None:
    """Return the resources server that an agent is bound to, if any."""
    return bound_to(view_of(cfg), agent, "resources_server", RESOURCES_SERVERS)


def model_server_of(cfg: DictConfig, agent: str) -> str | None:
    """Return the model server that an agent asks, if any."""
    return bound_to(view_of(cfg), agent, "model_server", MODELS)


def environment_servers_of(cfg: DictConfig, agent: str) -> tuple[str, ...]:
    """Return the environment servers that front an agent."""
    return tuple(
        name for name, _, block in blocks(view_of(cfg), ENVIRONMENT_SERVERS) if agent in agents_fronted_by(block)
    )


def environment_server_for(cfg: DictConfig, agent: str) -> str:
    """Return the one environment server that fronts an agent.

    Raises:
        AgentWithoutEnvironmentServerError: none does.
        AmbiguousEnvironmentServerError: several do.

    """
    found = environment_servers_of(cfg, agent)
    if not found:
        raise AgentWithoutEnvironmentServerError(
            f"no environment server fronts the agent `{agent}`; give one of "
            f"{', '.join(environment_servers(cfg)) or 'your environment servers'} an `agent_server` that names it"
        )
    if len(found) > 1:
        raise AmbiguousEnvironmentServerError(
            f"the agent `{agent}` is fronted by {', '.join(found)}; keep one, or choose one for every row with "
            f"++environment_routing_mode=legacy ++environment_server_name={found[0]}"
        )
    return found[0]


def environment_servers(cfg: DictConfig) -> tuple[str, ...]:
    """Return the names of the environment server instances."""
    return tuple(name for name, _, _ in blocks(view_of(cfg), ENVIRONMENT_SERVERS))


def agents_of(cfg: DictConfig, environment_server: str) -> tuple[str, ...]:
    """Return the agents that an environment server fronts, its `agent_server` first."""
    _, _, block = require_block(view_of(cfg), environment_server)
    own = ref_name(block.get("agent_server"), AGENTS)
    fronted = agents_fronted_by(block)
    return tuple(dict.fromkeys([own, *fronted])) if own is not None else fronted


def attributed_agent(cfg: DictConfig, environment_server: str) -> str | None:
    """Return the agent that an environment server's rows are counted under: `agent_server`, or its only agent."""
    _, _, block = require_block(view_of(cfg), environment_server)
    own, fronted = ref_name(block.get("agent_server"), AGENTS), agents_fronted_by(block)
    return own or (fronted[0] if len(fronted) == 1 else None)


def only_agent(cfg: DictConfig) -> str | None:
    """Return the configuration's only agent, or None when it has none or several."""
    found = agents(cfg)
    return found[0] if len(found) == 1 else None


def require_block(tree: Tree, instance: str) -> tuple[str, str, Tree]:
    """Return (server type, implementation, innermost block) of an instance.

    Raises:
        ServerRefNotFoundError: no such instance; names the close ones.

    """
    found = block_of(tree, instance)
    if found is None:
        known = [name for name in tree if block_of(tree, name) is not None]
        raise ServerRefNotFoundError(
            f"no server instance `{instance}`; there are: {', '.join(known) or 'none'}.{did_you_mean(instance, known)}"
        )
    return found


def bound_to(tree: Tree, agent: str, key: str, server_type: str) -> str | None:
    """Return the name in an agent's reference `key`, if it has one."""
    found = block_of(tree, agent)
    return ref_name(found[2].get(key), server_type) if found is not None and found[0] == AGENTS else None


def agents_bound_to(tree: Tree, resources_server: str) -> tuple[str, ...]:
    """Return the agents whose `resources_server` is the given one."""
    named = (name for name, _, _ in blocks(tree, AGENTS))
    return tuple(
        name for name in named if bound_to(tree, name, "resources_server", RESOURCES_SERVERS) == resources_server
    )


def dataset_entries(tree: Tree, instance: str) -> Iterator[Tree]:
    """Yield the dataset entries that an instance declares."""
    found = block_of(tree, instance)
    entries = found[2].get("datasets") if found is not None else None
    for position, _ in enumerate(entries if isinstance(entries, list) else ()):
        entry = mapping_at({"datasets": entries}, "datasets", position)
        if entry is not None:
            yield entry


def _instance(tree: Tree, name: str) -> ServerInstanceConfig:
    server_type, implementation, block = require_block(tree, name)
    return ServerInstanceConfig(name, server_type, implementation, block)
