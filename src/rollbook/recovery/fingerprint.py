"""Settings and configuration → one digest a dotted key, so that a later command can say which key differs.

Rules:
* A digest is of a value, not of how it is written: the order of keys, and `1` or `1.0`, change nothing.
* No credential, nor a digest of one, is in what is returned; a credential that changes, changes nothing.
* A server is in when a rollout of the plan can reach it: its agent, the environment servers in front of it, and
  whatever they refer to. What a server's own host and port are is given out at each start, and left out.
* A key leads to one value: a step that holds a dot is quoted.

Source: collection.md §1.8, §5.4.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Final

from rollbook.config.environments import agents_fronted_by
from rollbook.config.names import ENVIRONMENT_SERVERS, SERVER_TYPES
from rollbook.config.tree import Tree, block_of, blocks, ref_name, walk
from rollbook.recovery.credentials import MARKER, masked_text, names_credential, without_credentials
from rollbook.recovery.drift import SETTINGS, Drift, drift_of

_PLAIN_STEP: Final = re.compile(r'[^."\[\]\s]+')
_GIVEN_OUT: Final = frozenset({"host", "port"})
_EXACT: Final = 2**53
"""From here on not every whole number is a float."""


def fingerprints(
    settings: Mapping[str, object], config: Mapping[str, object], agents: Iterable[str], servers: Iterable[str]
) -> dict[str, str]:
    """Return dotted key → SHA-256 of its canonical value, one a leaf, sorted by key.

    `settings` are the collection's, under `settings.<key>`; `config` is the resolved configuration, of which the
    instances that `agents` and environment `servers` of the plan can reach are taken, under `<instance>.…`. A list
    that holds no mapping is one leaf.
    """
    tree = _plain_mapping(config)
    found = dict(_leaves(_plain_mapping(settings), SETTINGS))
    for instance in used_instances(tree, agents, servers):
        found.update(_of_instance(tree, instance))
    return {key: digest_of(found[key]) for key in sorted(found)}


def configuration_sha256(keys: Mapping[str, str]) -> str:
    """Return one digest of all fingerprints that are not irrelevant; where two are alike, no key is left to compare."""
    told = {key: digest for key, digest in keys.items() if drift_of(key) is not Drift.IRRELEVANT}
    return digest_of(json.dumps(told, sort_keys=True))


def digest_of(value: object) -> str:
    """Return the SHA-256 of a value's canonical JSON: sorted keys, no spaces, UTF-8."""
    text = json.dumps(_plain(value), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def used_instances(config: Tree, agents: Iterable[str], servers: Iterable[str]) -> tuple[str, ...]:
    """Return the instances that rollouts of `agents` and environment `servers` can reach, in the tree's order."""
    named = set(agents)
    fronting = {name for name, _, block in blocks(config, ENVIRONMENT_SERVERS) if named & {*agents_fronted_by(block)}}
    waiting, seen = [*named, *fronting, *servers], set[str]()
    while waiting:
        instance = waiting.pop()
        found = block_of(config, instance)
        if found is not None and instance not in seen:
            seen.add(instance)
            waiting += _referred_to(found[2])
    return tuple(instance for instance in config if instance in seen)


def _referred_to(block: Tree) -> Iterator[str]:
    for _, node in walk(block):
        names = (ref_name(node, server_type) for server_type in SERVER_TYPES)
        yield from (name for name in names if name is not None)


def _of_instance(tree: Tree, instance: str) -> Iterator[tuple[str, object]]:
    found = block_of(tree, instance)
    if found is None:
        return
    server_type, implementation, block = found
    own = {name: value for name, value in block.items() if name not in _GIVEN_OUT}
    yield from _leaves(own, f"{_step(instance)}.{_step(server_type)}.{_step(implementation)}")


def _leaves(node: object, key: str) -> Iterator[tuple[str, object]]:
    """Yield (dotted key, value without credentials) of every leaf; an empty container is one."""
    if isinstance(node, dict) and node:
        for name, value in node.items():
            below = f"{key}.{_step(name)}"
            yield from ((below, MARKER),) if names_credential(name) else _leaves(value, below)
    elif isinstance(node, list) and any(isinstance(inner, dict) for _, inner in walk(node)):
        for position, value in enumerate(node):
            yield from _leaves(value, f"{key}[{position}]")
    else:
        yield key, without_credentials(node)


def _step(name: str) -> str:
    shown = masked_text(name)
    return shown if _PLAIN_STEP.fullmatch(shown) else json.dumps(shown, ensure_ascii=False)


def _plain_mapping(mapping: Mapping[str, object]) -> Tree:
    return {str(key): _plain(value) for key, value in mapping.items()}


def _plain(value: object) -> object:
    """Return a value as JSON has it; what JSON does not have, as text."""
    if isinstance(value, Mapping):
        return _plain_mapping(value)
    if isinstance(value, str) or value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) < _EXACT else value
    if isinstance(value, AbstractSet):
        return sorted((_plain(part) for part in value), key=str)
    return [_plain(part) for part in value] if isinstance(value, Sequence) else str(value)
