"""The merge operators of YAML files: `_inherit_from`, `_copy`, `_delete_key`.

Rules:
* The mapping that an operator names is laid under the one that holds it; `_inherit_from` also takes it away.
* An operator's source has its own operators applied first; a circle of them is an error that names the chain.
* Moving a whole agent instance renames it: references to the old name follow, and only one block may claim it.

Source: servers.md §1.3.
"""

import logging
from copy import deepcopy
from typing import cast

import msgspec

from rollbook.config.files import Places
from rollbook.config.names import AGENTS, COPY_KEY, DELETE_KEY, INHERIT_KEY, MISSING
from rollbook.config.tree import Path, Tree, at, children, did_you_mean, dotted, laid_over, repoint_agents
from rollbook.errors import AmbiguousAgentRenameError, ConfigError, InheritPathNotFoundError

_LOG = logging.getLogger(__name__)
Container = dict[str | int, object]


def apply_operators(tree: Tree, places: Places) -> Tree:
    """Return `tree` with every operator applied.

    Raises:
        InheritPathNotFoundError: a source that is not there.
        AmbiguousAgentRenameError: several blocks that move the same agent.
        ConfigError: operators in a circle, or keys to be laid over something that is no mapping.

    """
    operators = _Operators({"": deepcopy(tree)}, places)
    operators.expand((), "")
    operators.remove_moved()
    return cast("Tree", operators.root[""])


class _Operators(msgspec.Struct):
    """One application: `root[""]` is the tree, so that the tree itself has a parent; `moved` is source → targets."""

    root: Tree
    places: Places
    moved: dict[Path, list[Path]] = msgspec.field(default_factory=dict)
    _open: list[Path] = msgspec.field(default_factory=list)
    _done: set[Path] = msgspec.field(default_factory=set)

    def expand(self, parent: Path, key: str | int) -> None:
        """Apply the operators of a node and of everything below it."""
        path = (*parent, key)
        if path in self._done:
            return
        self._enter(path)
        self._apply_here(path)
        for child, _ in children(at(self.root, path)):
            self.expand(path, child)
        self._delete_keys(path)
        self._open.pop()
        self._done.add(path)

    def remove_moved(self) -> None:
        """Take the sources of `_inherit_from` away and let references follow renamed agents."""
        renamed = dict(self._renamed(source) for source in self.moved if self._is_agent(source))
        for source in sorted(self.moved, key=len, reverse=True):
            parent = at(self.root, source[:-1])
            if isinstance(parent, dict):
                parent.pop(source[-1], None)
        repoint_agents(cast("Tree", self.root[""]), renamed)

    def _enter(self, path: Path) -> None:
        if path in self._open:
            chain = " → ".join(dotted(step[1:]) for step in [*self._open[self._open.index(path) :], path])
            raise ConfigError(f"merge operators form a circle: {chain}; remove one of them")
        self._open.append(path)

    def _apply_here(self, path: Path) -> None:
        """Replace the node at `path` by its source with its own keys on top, until no operator is left on it."""
        node = at(self.root, path)
        while isinstance(node, dict) and (INHERIT_KEY in node or COPY_KEY in node):
            operator = INHERIT_KEY if INHERIT_KEY in node else COPY_KEY
            local = {key: value for key, value in node.items() if key != operator}
            source = self._source_path(path, operator, node[operator])
            base = at(self.root, source)
            if local and base != MISSING and not isinstance(base, dict):
                raise ConfigError(
                    f"`{dotted(path[1:])}`{self.places.of(path[1:])} adds keys to `{dotted(source[1:])}`, "
                    "which is no mapping"
                )
            if operator == INHERIT_KEY:
                self.moved.setdefault(source, []).append(path)
            node = laid_over(base, local) if local and base != MISSING else deepcopy(base)
            cast("Container", at(self.root, path[:-1]))[path[-1]] = node

    def _source_path(self, target: Path, operator: str, named: object) -> Path:
        """Walk to the source that an operator names, applying operators on the way, and expand it."""
        path: Path = ("",)
        for step in str(named).split("."):
            if path != ("",) and path not in self._done and path not in self._open:
                self._enter(path)
                self._apply_here(path)
                self._open.pop()
            known = {str(key): key for key, _ in children(at(self.root, path))}
            if step not in known:
                raise InheritPathNotFoundError(
                    f"`{dotted(target[1:])}`{self.places.of(target[1:])}: `{operator}: {named}` names nothing: "
                    f"there is no `{step}` in `{dotted(path[1:]) or 'the configuration'}`.{did_you_mean(step, known)}"
                )
            path = (*path, known[step])
        if path == target[: len(path)]:
            raise ConfigError(f"`{dotted(target[1:])}`: `{operator}: {named}` names a block that holds it")
        self.expand(path[:-1], path[-1])
        return path

    def _delete_keys(self, path: Path) -> None:
        node = at(self.root, path)
        if not isinstance(node, dict) or DELETE_KEY not in node:
            return
        named = node.pop(DELETE_KEY)
        for key in named.split(",") if isinstance(named, str) else list(named or []):
            if node.pop(str(key).strip(), self) is self:
                _LOG.warning("`%s`: %s names `%s`, which is not there", dotted(path[1:]), DELETE_KEY, str(key).strip())

    def _is_agent(self, source: Path) -> bool:
        node = at(self.root, source)
        return len(source) == 2 and isinstance(node, dict) and AGENTS in node  # noqa: PLR2004  root and instance

    def _renamed(self, source: Path) -> tuple[str, str]:
        targets = [target for target in self.moved[source] if len(target) == len(source)]
        if len(targets) > 1:
            names = ", ".join(f"`{dotted(target[1:])}`" for target in targets)
            raise AmbiguousAgentRenameError(
                f"{names} each move the agent `{source[1]}` by {INHERIT_KEY}; "
                f"one may keep it, write {COPY_KEY} in the others"
            )
        return str(source[1]), str(targets[0][1] if targets else source[1])
