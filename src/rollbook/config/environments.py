"""Generated environment servers: one `legacy_agent` for every agent that no environment server fronts.

Rules:
* What a configuration declares itself is never touched.
* One warning lists every generated block, ready to be pasted into the configuration.

Source: servers.md §1.5, step 5.
"""

import warnings
from collections.abc import Iterator

from rollbook.config.names import (
    AGENTS,
    ENVIRONMENT_SERVERS,
    ERROR_ON_AGENT_WITHOUT_ENVIRONMENT_SERVER_KEY,
    LEGACY_AGENT,
)
from rollbook.config.secrets import as_yaml
from rollbook.config.tree import Tree, blocks, ref_name, stem_of, walk
from rollbook.errors import AgentWithoutEnvironmentServerError


def agents_fronted_by(block: object) -> tuple[str, ...]:
    """Return the agents that an environment server's block refers to, in order."""
    names = (ref_name(node, AGENTS) for _, node in walk(block))
    return tuple(dict.fromkeys(name for name in names if name is not None))


def with_environment_servers(tree: Tree) -> Tree:
    """Return `tree` with an environment server for every agent that has an entry point and is fronted by none.

    Raises:
        AgentWithoutEnvironmentServerError: there is such an agent, and the configuration asks for this to be an error.

    """
    bare = list(_bare_agents(tree))
    if not bare:
        return tree
    added: Tree = {}
    for agent, agent_type in bare:
        added[_free_name({*tree, *added}, agent, agent_type)] = _legacy_block(agent)
    listed = ", ".join(f"`{agent}`" for agent, _ in bare)
    if tree.get(ERROR_ON_AGENT_WITHOUT_ENVIRONMENT_SERVER_KEY):
        raise AgentWithoutEnvironmentServerError(
            f"no environment server fronts {listed}; add to the configuration:\n{as_yaml(added)}"
        )
    warnings.warn(
        f"no environment server fronts {listed}; generated ones do, write them down:\n{as_yaml(added)}",
        DeprecationWarning,
        stacklevel=2,
    )
    return {**tree, **added}


def _bare_agents(tree: Tree) -> Iterator[tuple[str, str]]:
    fronted = {agent for _, _, block in blocks(tree, ENVIRONMENT_SERVERS) for agent in agents_fronted_by(block)}
    for agent, agent_type, block in blocks(tree, AGENTS):
        if agent not in fronted and block.get("entrypoint"):
            yield agent, agent_type


def _free_name(taken: set[str], agent: str, agent_type: str) -> str:
    """Return `<stem>_environment_server`, or a name made of the whole agent's name where that is taken."""
    wanted = f"{stem_of(agent, agent_type)}_environment_server"
    return wanted if wanted not in taken else f"{agent}_environment_server"


def _legacy_block(agent: str) -> Tree:
    ref = {"type": AGENTS, "name": agent}
    return {ENVIRONMENT_SERVERS: {LEGACY_AGENT: {"entrypoint": "app.py", "agent_server": ref}}}
