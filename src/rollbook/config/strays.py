"""Keys that were typed and that nothing reads, as far as can be known: most are mistyped options.

Rules:
* A key counts as read when it is an option, a word with a meaning of its own, a server, written in a file as well, or
  what an interpolation refers to. A server's own code may read others: a stray is worth a note, and refuses nothing.
* Files are asked last, and only for keys that nothing else knows.

Source: servers.md §1.2, §1.7.
"""

import re
from collections.abc import Callable, Collection, Iterable
from typing import Final

from rollbook.config.names import (
    ERROR_ON_AGENT_WITHOUT_ENVIRONMENT_SERVER_KEY,
    ERROR_ON_ALMOST_SERVERS_KEY,
    RESERVED_KEYS,
)
from rollbook.config.overrides import Override
from rollbook.config.references import is_candidate
from rollbook.config.tree import Tree, did_you_mean, walk

_SWITCHES: Final = frozenset({ERROR_ON_ALMOST_SERVERS_KEY, ERROR_ON_AGENT_WITHOUT_ENVIRONMENT_SERVER_KEY})
_FAMILIES: Final = ("policy_", "global_aiohttp_", "uvicorn_", "profiling_", "wandb_", "mlflow_", "hf_")
"""How keys begin that belong to model endpoints, clients, web servers and exporters."""


def stray_notes(
    typed: Iterable[Override], tree: Tree, options: Collection[str], written: Callable[[], Collection[str]]
) -> tuple[str, ...]:
    """Return a line for each top-level key that was `typed` and that nothing reads, with the nearest ones that are.

    `tree` is the configuration with its interpolations as text, `options` what the command reads, `written` the keys
    that files hold.
    """
    known = {*options, *RESERVED_KEYS, *_SWITCHES}
    roots = dict.fromkeys(str(override.path[0]) for override in typed if not override.removes)
    strays = [key for key in roots if key not in known and not _is_read(key, tree)]
    found = written() if strays else ()
    near = {*known, *(str(key) for key in tree if is_candidate(tree, key))}
    return tuple(_note(key, near) for key in strays if key not in found)


def _is_read(key: str, tree: Tree) -> bool:
    if key.startswith(_FAMILIES) or is_candidate(tree, key):
        return True
    reference = re.compile(rf"\$\{{[\s.]*{re.escape(key)}\b")
    return any(isinstance(node, str) and reference.search(node) for _, node in walk(tree))


def _note(key: str, known: Iterable[str]) -> str:
    return f"`{key}` is no option, no server and nothing that the configuration refers to.{did_you_mean(key, known)}"
