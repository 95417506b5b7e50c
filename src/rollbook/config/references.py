"""Blocks that are to be servers, and references between servers, checked.

Rules:
* A top-level mapping that holds a server type is a server or an error; one without is data.
* A reference names an instance of the type it says; a wrong name is answered with the close ones.

Source: servers.md §1.4, §1.5 steps 7 and 10.
"""

import logging
from collections.abc import Iterator, Sequence

from pydantic import ValidationError

from rollbook.config.files import Places
from rollbook.config.names import (
    AGENTS,
    ERROR_ON_ALMOST_SERVERS_KEY,
    MODELS,
    RESERVED_KEYS,
    RESOURCES_SERVERS,
    SERVER_TYPES,
)
from rollbook.config.roots import search_roots
from rollbook.config.secrets import as_yaml, masked
from rollbook.config.tree import Tree, block_of, did_you_mean, dotted, mapping_at, ref_name, walk
from rollbook.config.types import BaseRunServerTypeConfig, ResourcesServerTypeConfig
from rollbook.errors import AlmostServerError, ServerRefNotFoundError

_LOG = logging.getLogger(__name__)
_NAME_A_MODEL = " Name a model server with --model-type (for example simulated_model, openai_model, vllm_model)."


def is_candidate(tree: Tree, name: str) -> bool:
    """Tell whether a top-level key looks like a server instance."""
    outer = mapping_at(tree, name)
    return name not in RESERVED_KEYS and outer is not None and any(key in SERVER_TYPES for key in outer)


def problems(tree: Tree, name: str) -> list[str]:
    """Return what keeps a candidate from being a server instance; nothing when it is one."""
    outer = mapping_at(tree, name) or {}
    if len(outer) != 1:
        return [f"{name} has the keys {', '.join(outer)}; an instance has exactly one, its server type"]
    found = block_of(tree, name)
    if found is None:
        return [_shape_problem(name, outer)]
    server_type, implementation, block = found
    model = ResourcesServerTypeConfig if server_type == RESOURCES_SERVERS else BaseRunServerTypeConfig
    try:
        model.model_validate(block)
    except ValidationError as error:
        prefix = (name, server_type, implementation)
        return [
            f"{dotted((*prefix, *detail['loc']))}: {detail['msg']}"
            for detail in error.errors(include_url=False, include_input=False)
        ]
    return []


def check_almost_servers(resolved_tree: Tree, written: Tree, places: Places) -> None:
    """Refuse, or warn about, blocks that look like servers and are none.

    Raises:
        AlmostServerError: such a block, unless `error_on_almost_servers` is false; shows it as written, masked.

    """
    for name in resolved_tree:
        found = problems(resolved_tree, name) if is_candidate(resolved_tree, name) else []
        if not found:
            continue
        listed = "\n".join(f"  {problem}" for problem in found)
        shown = as_yaml(masked({name: written.get(name)}))
        message = f"`{name}`{places.of((name,))} looks like a server and is none:\n{listed}\n{shown}"
        if resolved_tree.get(ERROR_ON_ALMOST_SERVERS_KEY) is not False:
            raise AlmostServerError(f"{message}mend it, or let it pass with ++{ERROR_ON_ALMOST_SERVERS_KEY}=false")
        _LOG.warning("%s", message)


def check_references(tree: Tree, places: Places, *, with_agents: bool = True) -> None:
    """Refuse references to servers that are not there; without agents, which nobody asks, not those to their models.

    Raises:
        ServerRefNotFoundError: every such reference, with close matches.

    """
    lines = list(_dangling(tree, places, with_agents=with_agents))
    if lines:
        raise ServerRefNotFoundError("\n".join(lines))


def _dangling(tree: Tree, places: Places, *, with_agents: bool) -> Iterator[str]:
    instances = {name: found[0] for name in tree if (found := block_of(tree, name)) is not None}
    for path, node in walk(tree):
        for server_type in SERVER_TYPES:
            name = ref_name(node, server_type)
            if name is None or instances.get(name) == server_type:
                continue
            if server_type == MODELS and not with_agents and instances.get(str(path[0])) == AGENTS:
                continue
            of_type = [instance for instance, kind in instances.items() if kind == server_type]
            other = f", it is one of {instances[name]}" if name in instances else ""
            hint = did_you_mean(name, of_type) or _how_to_have(server_type, name, of_type)
            yield (
                f"`{dotted(path)}`{places.of(path)} refers to `{name}`, which is no instance of {server_type}{other}; "
                f"there are: {', '.join(of_type) or 'none'}.{hint}"
            )


def _how_to_have(server_type: str, name: str, of_type: Sequence[str]) -> str:
    """Return what to type so that the server is there, as far as the search roots tell."""
    if server_type == MODELS:
        return "" if of_type else _NAME_A_MODEL
    held = (root / server_type / name / "configs" / f"{name}.yaml" for root in search_roots())
    if server_type != RESOURCES_SERVERS or not any(file.is_file() for file in held):
        return ""
    return f" A search root holds it: give --resources-server {name} beside what you name."


def _shape_problem(name: str, outer: Tree) -> str:
    server_type = next(iter(outer))
    inner = mapping_at(outer, server_type)
    if inner is None:
        return f"{name}.{server_type} is no mapping; it holds one key, the implementation's folder"
    if len(inner) != 1:
        keys = ", ".join(str(key) for key in inner) or "none"
        return f"{name}.{server_type} has the keys {keys}; exactly one implementation is allowed"
    return f"{name}.{server_type}.{next(iter(inner))} is no mapping; it holds the server's settings"
