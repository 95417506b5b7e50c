"""Plain configuration trees: mappings, lists and scalars whose interpolations are still text.

Rules:
* A path is written with dots; a list position is a number in brackets: `a.datasets[0].name`.
* Laying one tree over another merges mappings and replaces everything else; `???` covers nothing.

Source: servers.md §1.2.
"""

from collections.abc import Iterable, Iterator
from copy import deepcopy
from difflib import get_close_matches
from typing import cast

from rollbook.config.names import AGENTS, MISSING, RESERVED_KEYS, SERVER_TYPES

Tree = dict[str, object]
Path = tuple[str | int, ...]


def laid_over(base: object, over: object) -> object:
    """Return `base` with `over` on top of it; neither is changed."""
    if isinstance(base, dict) and isinstance(over, dict):
        merged = dict(base)
        for key, value in over.items():
            merged[key] = laid_over(merged[key], value) if key in merged else deepcopy(value)
        return merged
    return base if over == MISSING else deepcopy(over)


def dotted(path: Path) -> str:
    """Write a path the way a message shows it."""
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else str(step)
    return text


def typed(path: Path) -> str:
    """Write a path the way an override takes it: list positions between dots."""
    return ".".join(map(str, path))


def walk(node: object, path: Path = ()) -> Iterator[tuple[Path, object]]:
    """Yield every node below and including `node`, parents first."""
    yield path, node
    for key, value in children(node):
        yield from walk(value, (*path, key))


def children(node: object) -> list[tuple[str | int, object]]:
    """Return the (key or position, value) pairs of a container; none for a scalar."""
    if isinstance(node, dict):
        return list(node.items())
    return list(enumerate(node)) if isinstance(node, list) else []


def at(tree: object, path: Path) -> object:
    """Return the node at `path`, or None when the path leads nowhere."""
    for step in path:
        found = dict(children(tree))
        if step not in found:
            return None
        tree = found[step]
    return tree


def mapping_at(tree: object, *path: str | int) -> Tree | None:
    """Return the mapping at `path`, or None when something else, or nothing, is there."""
    node = at(tree, path)
    return cast("Tree", node) if isinstance(node, dict) else None


def block_of(tree: Tree, instance: str) -> tuple[str, str, Tree] | None:
    """Return (server type, implementation, innermost block) of an instance, or None if it is not one in shape."""
    outer = mapping_at(tree, instance) if instance not in RESERVED_KEYS else None
    types = [key for key in outer or {} if key in SERVER_TYPES]
    inner = mapping_at(outer, types[0]) if len(types) == 1 else None
    if inner is None or len(inner) != 1:
        return None
    implementation = next(iter(inner))
    block = mapping_at(inner, implementation)
    return None if block is None else (types[0], implementation, block)


def blocks(tree: Tree, server_type: str) -> Iterator[tuple[str, str, Tree]]:
    """Yield (instance, implementation, innermost block) of every instance of a type."""
    for instance in list(tree):
        found = block_of(tree, instance)
        if found is not None and found[0] == server_type:
            yield instance, found[1], found[2]


def ref_name(node: object, server_type: str) -> str | None:
    """Return the name in a reference to a server of `server_type`, or None if `node` is no such reference."""
    if not isinstance(node, dict) or node.get("type") != server_type:
        return None
    name = node.get("name")
    return name if isinstance(name, str) else None


def stem_of(agent: str, agent_type: str) -> str:
    """Return what an agent instance is about: its name without its type, else without `_agent`, else its type."""
    for suffix in (f"_{agent_type}", "_agent"):
        if agent.endswith(suffix) and agent != suffix:
            return agent.removesuffix(suffix)
    return agent_type


def repoint_agents(tree: Tree, renamed: dict[str, str]) -> None:
    """Make every reference to a renamed agent, and every data set's pin of it, name its successor, in place."""
    for path, node in walk(tree):
        pinned = node.get("agent") if isinstance(node, dict) and path[-2:-1] == ("datasets",) else None
        for key, name in (("name", ref_name(node, AGENTS)), ("agent", pinned)):
            if name in renamed:
                cast("Tree", node)[key] = renamed[str(name)]


def did_you_mean(wrong: str, known: Iterable[str]) -> str:
    """Return ` Did you mean …?`, or nothing when no known name comes close."""
    close = get_close_matches(wrong, sorted(known))
    return f" Did you mean {' or '.join(f'`{name}`' for name in close)}?" if close else ""
