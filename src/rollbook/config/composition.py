"""A standalone agent takes the place of the agents that a configuration declares.

Rules:
* A standalone agent is one whose `resources_server.name` is `???`; there is at most one.
* What it replaces keeps `resources_server`, `model_server` and `datasets`; everything else comes from the standalone,
  and its `model_server` too where what it replaces has none.
* An environment server that fronts the standalone alone goes with it: those of what it replaces front the successors.
* `agent_map` sends the rows of a replaced agent to its successor, and references follow.
* A command-line override that would be lost in this is an error that names where it belongs.

Source: servers.md §1.6.
"""

from collections.abc import Sequence
from copy import deepcopy
from typing import Final

import msgspec

from rollbook.config.environments import agents_fronted_by
from rollbook.config.names import AGENT_MAP_KEY, AGENT_NAME_KEY, AGENTS, ENVIRONMENT_SERVERS, FAN_OUT_KEY, MISSING
from rollbook.config.overrides import Override, tree_of
from rollbook.config.pairing import unsupported_agent
from rollbook.config.tree import Tree, block_of, blocks, laid_over, mapping_at, repoint_agents, stem_of
from rollbook.errors import AgentCompositionError, UnsupportedAgentOverrideError, UnsupportedAgentPairingError

_KEPT: Final = ("resources_server", "model_server", "datasets")
_BLOCK_DEPTH: Final = 3


class _Standalone(msgspec.Struct, frozen=True):
    name: str
    type: str
    block: Tree


def compose_agents(tree: Tree, overrides: Sequence[Override]) -> Tree:
    """Return `tree` with its standalone agent, if it has one, bound to what the other agents were bound to.

    Raises:
        AgentCompositionError: several standalone agents, or nothing to bind one to.
        UnsupportedAgentPairingError: a verifier that does not admit the agent type.
        UnsupportedAgentOverrideError: an override of an agent that composition removes.

    """
    unbound = [_Standalone(*found) for found in blocks(tree, AGENTS) if _resources_name(found[2]) == MISSING]
    if not unbound:
        return tree
    if len(unbound) > 1:
        names = ", ".join(f"`{agent.name}`" for agent in unbound)
        raise AgentCompositionError(f"several standalone agents: {names}; choose one with --agent-type")
    standalone = unbound[0]
    bound = [
        (name, kind, block)
        for name, kind, block in blocks(tree, AGENTS)
        if _resources_name(block) not in (None, MISSING)
    ]
    if not bound:
        raise AgentCompositionError(
            f"the standalone agent `{standalone.name}` has nothing to be bound to: no agent of the configuration has a "
            f"`resources_server`; add a configuration that has one, or "
            f"++{standalone.name}.{AGENTS}.{standalone.type}.resources_server.name=<instance>"
        )
    products = {name: f"{stem_of(name, kind)}_{standalone.type}" for name, kind, _ in bound}
    products = {old: new if _is_free(tree, products, old, new) else old for old, new in products.items()}
    result = _composed(tree, standalone, bound, products, overrides)
    _check_pairings(result, products)
    return result


def _resources_name(block: Tree) -> object:
    ref = block.get("resources_server")
    return ref.get("name") if isinstance(ref, dict) else None


def _is_free(tree: Tree, products: dict[str, str], old: str, new: str) -> bool:
    twice = sum(name == new for name in products.values()) > 1
    return not twice and (new == old or new in products or new not in tree or _is_unbound(tree, new))


def _is_unbound(tree: Tree, name: str) -> bool:
    found = block_of(tree, name)
    return found is not None and _resources_name(found[2]) == MISSING


def _composed(
    tree: Tree,
    standalone: _Standalone,
    bound: Sequence[tuple[str, str, Tree]],
    products: dict[str, str],
    overrides: Sequence[Override],
) -> Tree:
    gone = {standalone.name, *products, *_fronting_alone(tree, standalone.name)}
    result = {name: value for name, value in tree.items() if name not in gone}
    again = _overrides_of_standalone(standalone, overrides)
    for name, _, block in bound:
        _refuse_lost_overrides(name, products[name], standalone, overrides)
        kept = {key: deepcopy(block[key]) for key in _KEPT if key in block}
        left_to_kept = {*_KEPT} - {"model_server"}
        own = {key: deepcopy(value) for key, value in standalone.block.items() if key not in left_to_kept}
        product = laid_over(own | kept, again)
        result[products[name]] = {AGENTS: {standalone.type: product}}
    renamed = {old: new for old, new in products.items() if old != new}
    repoint_agents(result, renamed)
    return _with_rows_following(result, renamed)


def _fronting_alone(tree: Tree, agent: str) -> list[str]:
    """Return the environment servers that front `agent` and nobody else: what it becomes is fronted already."""
    found = ((name, agents_fronted_by(block)) for name, _, block in blocks(tree, ENVIRONMENT_SERVERS))
    return [name for name, fronted in found if fronted == (agent,)]


def _overrides_of_standalone(standalone: _Standalone, overrides: Sequence[Override]) -> Tree:
    """Return what the command line says about `model_server` and `datasets`, which each product keeps otherwise."""
    own = (standalone.name, AGENTS, standalone.type)
    addressed = [override for override in overrides if override.path[0] == standalone.name]
    for override in addressed:
        inside = override.path[:_BLOCK_DEPTH] == own and len(override.path) > _BLOCK_DEPTH
        if not inside or override.path[_BLOCK_DEPTH] == "resources_server":
            raise UnsupportedAgentOverrideError(
                f"the override {override.label} cannot be applied to the agents that `{standalone.name}` was composed "
                f"into; write ++{'.'.join(own)}.<key>=<value> with a key other than resources_server"
            )
    kept = [override for override in addressed if override.path[_BLOCK_DEPTH] in _KEPT]
    return mapping_at(tree_of(kept), *own) or {}


def _refuse_lost_overrides(name: str, product: str, standalone: _Standalone, overrides: Sequence[Override]) -> None:
    for override in overrides:
        lost = len(override.path) <= _BLOCK_DEPTH or override.path[_BLOCK_DEPTH] not in _KEPT
        if override.path[0] == name and lost:
            raise UnsupportedAgentOverrideError(
                f"the override {override.label} is for `{name}`, which `{product}` of type {standalone.type} replaces; "
                f"write it for `{standalone.name}.{AGENTS}.{standalone.type}`, from which `{product}` is made"
            )


def _with_rows_following(tree: Tree, renamed: dict[str, str]) -> Tree:
    """Send the rows of replaced agents, and the options that name them, to the successors."""
    if not renamed:
        return tree
    given = mapping_at(tree, AGENT_MAP_KEY) or {}
    followed = {source: renamed.get(str(target), target) for source, target in given.items()}
    result: Tree = {**tree, AGENT_MAP_KEY: {**renamed, **followed}}
    name, fan_out = tree.get(AGENT_NAME_KEY), mapping_at(tree, FAN_OUT_KEY)
    if isinstance(name, str) and name in renamed:
        result[AGENT_NAME_KEY] = renamed[name]
    if fan_out is not None:
        result[FAN_OUT_KEY] = {key: _followed(names, renamed) for key, names in fan_out.items()}
    return result


def _followed(names: object, renamed: dict[str, str]) -> object:
    return [renamed.get(str(name), name) for name in names] if isinstance(names, list) else names


def _check_pairings(tree: Tree, products: dict[str, str]) -> None:
    for product in products.values():
        found = block_of(tree, product)
        verifier = _resources_name(found[2]) if found is not None else None
        reason = unsupported_agent(tree, product, verifier) if isinstance(verifier, str) else None
        if reason is not None:
            raise UnsupportedAgentPairingError(reason)
