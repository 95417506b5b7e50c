"""Configuration files: one YAML file → a tree, and a list of files → trees in the order they are merged.

Rules:
* An included file comes before the one that includes it; a file that is reached twice is merged once.
* Files that include one another in a circle are an error that names the chain.
* A message about a file names line and column where the parser knows them, and shows none of its text.

Source: servers.md §1.2, §1.3.
"""

import logging
import re
from collections.abc import Mapping, Sequence
from pathlib import Path as FilePath

import msgspec
import yaml
from omegaconf import DictConfig, ListConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from rollbook.config.names import CONFIG_PATHS_KEY, COPY_KEY, INHERIT_KEY
from rollbook.config.placed_yaml import refuse_expansion
from rollbook.config.recursion import as_deep_as_usual
from rollbook.config.roots import require_read_path
from rollbook.config.tree import Path, Tree, at, children, dotted, walk
from rollbook.errors import ConfigError, ConfigInterpolationError, MalformedConfigPathsError

_LOG = logging.getLogger(__name__)
_OPERATOR = re.compile(r"\$\{(inherit_from|copy):\s*([^{}]+?)\s*\}")
_TOP = "a configuration is a mapping of names to blocks"
_OPERATOR_KEYS = {"inherit_from": INHERIT_KEY, "copy": COPY_KEY}


class Source(msgspec.Struct, frozen=True):
    """One place that configuration came from: a file, the command line, the calling program."""

    label: str
    tree: DictConfig


class Places(msgspec.Struct, frozen=True):
    """Which source a value came from, lowest precedence first."""

    sources: Sequence[Source] = ()

    def of(self, path: Path) -> str:
        """Return ` (in <source>)`: every source of a block, the last one of a value; nothing where none is known."""
        nodes = [(source.label, at(plain(source.tree), path)) for source in self.sources]
        labels = [label for label, node in nodes if node is not None]
        if not labels:
            return ""
        last = next(node for _, node in reversed(nodes) if node is not None)
        return f" (in {' and '.join(labels if isinstance(last, dict) else labels[-1:])})"


def plain(cfg: DictConfig) -> Tree:
    """Return a configuration as plain containers, interpolations and `???` as text."""
    tree = OmegaConf.to_container(cfg, resolve=False)
    return {str(key): value for key, value in tree.items()} if isinstance(tree, dict) else {}


def configuration(tree: Mapping[str, object], label: str) -> DictConfig:
    """Return a plain tree as a configuration.

    Raises:
        ConfigInterpolationError: text that opens an interpolation and does not close it; names the dotted path.

    """
    try:
        return OmegaConf.create({key: _with_operator_mappings(value) for key, value in tree.items()})
    except OmegaConfBaseException as error:
        raise _malformed_interpolation(label, error) from None


def read_yaml(path: FilePath) -> DictConfig:
    """Return the configuration in one file; an empty file is an empty configuration.

    Raises:
        ConfigError: no text, no YAML, or no mapping at the top.
        ConfigInterpolationError: a malformed interpolation.

    """
    try:
        with as_deep_as_usual():
            refuse_expansion(path)
            loaded = OmegaConf.load(path)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        problem = error.problem or "unreadable"
        hint = "; between braces or brackets write '???' in quotes" if "found '?'" in problem else ""
        raise ConfigError(f"malformed YAML in {path}{place}: {problem}{hint}") from None
    except yaml.YAMLError as error:
        raise ConfigError(f"malformed YAML in {path}: {type(error).__name__}") from None
    except RecursionError:
        raise ConfigError(f"{path}: a YAML alias (*name) stands inside the block it repeats; write it out") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is not UTF-8 text (byte {error.start}); save it as UTF-8") from None
    except OmegaConfBaseException as error:
        raise _malformed_interpolation(str(path), error) from None
    except OSError as error:
        reason = f"cannot be read: {error.strerror}" if error.errno else f"holds one value; {_TOP}"
        raise ConfigError(f"{path} {reason}") from None
    if not isinstance(loaded, DictConfig):
        raise ConfigError(f"{path} holds a {_kind(loaded)}; {_TOP}")
    tree = plain(loaded)
    if list(tree.values()) == [None] and isinstance(yaml.compose(path.read_text("utf-8")), yaml.ScalarNode):
        raise ConfigError(f"{path} holds one value; {_TOP}")
    return loaded if _with_operator_mappings(tree) == tree else configuration(tree, str(path))


def config_paths_in(cfg: DictConfig, label: str) -> list[str]:
    """Return the `config_paths` of a configuration; none when it has no such key.

    Raises:
        MalformedConfigPathsError: something other than a list of strings.

    """
    try:
        value = cfg.get(CONFIG_PATHS_KEY)
        items = OmegaConf.to_container(value, resolve=True) if OmegaConf.is_config(value) else value
    except OmegaConfBaseException as error:
        raise ConfigInterpolationError(f"{label}: `{CONFIG_PATHS_KEY}` cannot be resolved: {error.msg}") from None
    if items is None:
        return []
    if not isinstance(items, list) or not all(isinstance(item, str) for item in items):
        raise MalformedConfigPathsError(
            f"{label}: `{CONFIG_PATHS_KEY}` is a {_kind(items)}, not a list of strings; "
            "write it as [first.yaml,second.yaml]"
        )
    return [str(item) for item in items]


class IncludeWalk(msgspec.Struct):
    """A walk over `config_paths`: `sources` fills in merge order."""

    top: DictConfig
    sources: list[Source] = msgspec.field(default_factory=list)
    _open: list[FilePath] = msgspec.field(default_factory=list)
    _done: set[FilePath] = msgspec.field(default_factory=set)

    def visit(self, paths: Sequence[str], asked_by: str) -> None:
        """Read `paths` and what they include, each file once.

        Raises:
            ConfigPathNotFoundError: a file that no root holds.
            ConfigError: files that include one another in a circle, or cannot be read.

        """
        for path in paths:
            found = require_read_path(path, f"configuration file (named in {asked_by})")
            self._visit_file(found, FilePath(found).resolve())

    def _visit_file(self, path: FilePath, identity: FilePath) -> None:
        if identity in self._open:
            chain = " → ".join(str(step) for step in [*self._open[self._open.index(identity) :], identity])
            raise ConfigError(
                f"configuration files include one another: {chain}; remove one of these `{CONFIG_PATHS_KEY}` entries"
            )
        if identity in self._done:
            _LOG.warning("%s is named more than once in config_paths; it is merged once", path)
            return
        cfg = read_yaml(path)
        self._open.append(identity)
        self.visit(self._included(cfg, str(path)), str(path))
        self._open.pop()
        self._done.add(identity)
        self.sources.append(Source(str(path), cfg))

    def _included(self, cfg: DictConfig, label: str) -> list[str]:
        """Return the file's own `config_paths`, which may interpolate keys of the command line."""
        own = plain(cfg).get(CONFIG_PATHS_KEY)
        return (
            []
            if own is None
            else config_paths_in(merged(cfg, self.top, configuration({CONFIG_PATHS_KEY: own}, label)), label)
        )


def merged(*layers: DictConfig) -> DictConfig:
    """Return the layers merged, later ones on top: mappings merge, everything else is replaced."""
    result = OmegaConf.merge(*layers) if layers else OmegaConf.create({})
    return result if isinstance(result, DictConfig) else OmegaConf.create({})


def stacked(sources: Sequence[Source]) -> DictConfig:
    """Return the sources merged, later ones on top.

    Raises:
        ConfigError: a list in one source where a lower one has a mapping, or the other way round.

    """
    try:
        return merged(*(source.tree for source in sources))
    except OmegaConfBaseException:
        raise ConfigError(_clash(sources)) from None


def _clash(sources: Sequence[Source]) -> str:
    """Say which two sources disagree on whether a key is a list or a mapping."""
    owners: dict[Path, tuple[str, str]] = {}
    for source in sources:
        for path, node in walk(plain(source.tree)):
            if isinstance(node, (dict, list)):
                kind, label = owners.get(path, (_kind(node), source.label))
                if kind != _kind(node) and "mapping" in {kind, _kind(node)}:
                    here = f"`{dotted(path)}` is a {_kind(node)} in {source.label}"
                    return f"{here} and a {kind} in {label}; make them one kind"
                owners[path] = (_kind(node), source.label)
    return "sources of the configuration cannot be merged: a list meets a mapping"


def _malformed_interpolation(label: str, error: OmegaConfBaseException) -> ConfigInterpolationError:
    where = f"`{error.full_key}`" if error.full_key else "a value"
    return ConfigInterpolationError(
        f"{label}: {where} holds a malformed interpolation; write ${{key}} or ${{oc.env:NAME}}, or \\${{ for the text"
    )


def _with_operator_mappings(node: object) -> object:
    """Write `${inherit_from:a.b}` as the mapping `{_inherit_from: a.b}`, so that later sources can add to it."""
    if isinstance(node, str):
        match = _OPERATOR.fullmatch(node.strip())
        return {_OPERATOR_KEYS[match[1]]: match[2]} if match else node
    if isinstance(node, dict):
        return {key: _with_operator_mappings(value) for key, value in children(node)}
    return [_with_operator_mappings(item) for item in node] if isinstance(node, list) else node


def _kind(value: object) -> str:
    items = list(value) if isinstance(value, (list, ListConfig)) else None
    if items is not None:
        odd = next((item for item in items if not isinstance(item, str)), None)
        return "list" if odd is None else f"list that holds a {type(odd).__name__}"
    return "mapping" if isinstance(value, dict) else "text" if isinstance(value, str) else type(value).__name__
