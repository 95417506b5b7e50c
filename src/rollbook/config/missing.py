"""What a merged configuration still lacks: `???` values and interpolations that point at nothing.

Rules:
* Everything that is missing is told in one message, each line with what to type.
* A message names keys and environment variables, never a value.

Source: servers.md §1.3, §1.5.
"""

import re
from collections.abc import Iterator
from typing import Final

import msgspec
from omegaconf import DictConfig, ListConfig, OmegaConf
from omegaconf.errors import (
    InterpolationToMissingValueError,
    MissingMandatoryValue,
    OmegaConfBaseException,
)

from rollbook.config.files import Places, plain
from rollbook.config.names import MISSING
from rollbook.config.tree import Path, Tree, children, dotted, typed, walk
from rollbook.errors import ConfigInterpolationError, ConfigMissingValuesError

Container = DictConfig | ListConfig
_CIRCLE = "interpolations form a circle: a block interpolates a block that holds it; point it at a value instead"
_DEEPEST_INTERPOLATION = 20
_FLAGS: Final = {
    "policy_base_url": "--model-url",
    "policy_api_key": "--model-api-key",
    "policy_model_name": "--model",
}
_KEY = re.compile(r"Interpolation key '([^']+)' not found")
_VARIABLE = re.compile(r"Environment variable '([^']+)' not found")


class Unresolved(msgspec.Struct, frozen=True):
    """An interpolation that points at nothing: at `path`, because of `reason`; `cure` is what to type."""

    path: Path
    reason: str
    cure: str


def check_values(cfg: DictConfig, places: Places) -> None:
    """Refuse a configuration that still lacks values.

    Raises:
        ConfigMissingValuesError: mandatory values that nothing filled in; lists dangling interpolations as well.
        ConfigInterpolationError: interpolations that point at nothing, where no mandatory value is missing.

    """
    missing = missing_paths(plain(cfg))
    dangling = list(unresolved(cfg))
    lines = [f"  `{dotted(path)}`{places.of(path)}: {_to_type(typed(path))}" for path in missing]
    wants = [f"  `{dotted(one.path)}`{places.of(one.path)}: {one.reason}; {one.cure}" for one in dangling]
    if missing:
        heading = "values that the configuration leaves open (`???`) and nothing fills in:"
        tail = ["and interpolations that point at nothing:", *wants] if wants else []
        raise ConfigMissingValuesError("\n".join([heading, *lines, *tail]))
    if dangling:
        raise ConfigInterpolationError("\n".join(["interpolations that point at nothing:", *wants]))


def missing_paths(tree: Tree) -> list[Path]:
    """Return where a tree holds `???`."""
    return [path for path, node in walk(tree) if node == MISSING]


def unresolved(cfg: DictConfig) -> Iterator[Unresolved]:
    """Yield the interpolations of `cfg` that cannot be resolved, except those that lead to a `???`."""
    return _unresolved(cfg, plain(cfg), ())


def resolved(cfg: DictConfig) -> Tree:
    """Return a configuration as plain containers, every interpolation replaced by its value.

    Raises:
        ConfigInterpolationError: an interpolation that points at nothing, or blocks that hold one another.

    """
    try:
        tree = OmegaConf.to_container(cfg, resolve=True)
    except (OmegaConfBaseException, RecursionError):
        check_values(cfg, Places())
        raise ConfigInterpolationError(_CIRCLE) from None
    return {str(key): value for key, value in children(tree)}


def view_of(cfg: DictConfig) -> Tree:
    """Return a configuration as plain containers, resolved as far as it can be: the rest stays text.

    Raises:
        ConfigInterpolationError: blocks that hold one another.

    """
    return {str(key): value for key, value in children(_viewed(cfg, plain(cfg), (), ()))}


def _viewed(node: Container, written: object, path: Path, through: tuple[Path, ...]) -> object:
    """Return a container's view; `written` is its text, `through` the interpolations that led here, outermost first."""
    if len(through) > _DEEPEST_INTERPOLATION:
        raise ConfigInterpolationError(f"`{dotted(through[0])}`: {_CIRCLE}")
    values = {key: _viewed_value(node, (*path, key), text, through) for key, text in children(written)}
    return values if isinstance(node, DictConfig) else list(values.values())


def _viewed_value(node: Container, path: Path, text: object, through: tuple[Path, ...]) -> object:
    if not _holds_interpolation(text):
        return text
    try:
        value = _child(node, path[-1])
    except OmegaConfBaseException:
        return text
    if not isinstance(value, (DictConfig, ListConfig)):
        return value
    if not _is_interpolation(text):
        return _viewed(value, text, path, through)
    return _viewed(value, OmegaConf.to_container(value, resolve=False), path, (*through, path))


def _unresolved(node: Container, written: object, path: Path) -> Iterator[Unresolved]:
    for key, text in children(written):
        here = (*path, key)
        if _is_interpolation(text):
            found = _problem(node, here, str(text))
            if found is not None:
                yield found
        elif _holds_interpolation(text):
            yield from _unresolved(_container(node, key), text, here)


def _holds_interpolation(text: object) -> bool:
    if isinstance(text, dict):
        return any(map(_holds_interpolation, text.values()))
    return any(map(_holds_interpolation, text)) if isinstance(text, list) else _is_interpolation(text)


def _is_interpolation(text: object) -> bool:
    return isinstance(text, str) and "${" in text


def _child(node: Container, key: str | int) -> object:
    return node[int(key)] if isinstance(node, ListConfig) else node[key]


def _container(node: Container, key: str | int) -> Container:
    child = _child(node, key)
    return child if isinstance(child, (DictConfig, ListConfig)) else OmegaConf.create({})


def _problem(node: Container, path: Path, text: str) -> Unresolved | None:
    try:
        _child(node, path[-1])
    except (InterpolationToMissingValueError, MissingMandatoryValue):
        return None
    except OmegaConfBaseException as error:
        return _explained(path, text, str(error))
    return None


def _explained(path: Path, text: str, message: str) -> Unresolved:
    key, variable = _KEY.search(message), _VARIABLE.search(message)
    if key is not None:
        target = _absolute(path, text, key[1])
        return Unresolved(path, f"there is no `{target}`", _to_type(target))
    if variable is not None:
        return Unresolved(path, f"the environment has no {variable[1]}", f"set it: export {variable[1]}=<value>")
    reasons = {
        "Recursive": "it leads back to itself",
        "parent node": "it leads to a block that holds it",
        "Unsupported interpolation": "it names an unknown resolver",
    }
    reason = next((reason for start, reason in reasons.items() if start in message), "it cannot be resolved")
    return Unresolved(path, reason, f"add ++{typed(path)}=<value>")


def _to_type(key: str) -> str:
    """Say what to type to fill `key` in: its flag, where it has one, and its override."""
    flag = f"{_FLAGS[key]} <value> or " if key in _FLAGS else ""
    return f"add {flag}++{key}=<value>"


def _absolute(path: Path, text: str, key: str) -> str:
    """Return the key that `text` at `path` asks for, whose leading dots count containers upwards."""
    match = re.search(rf"\$\{{\s*(\.*){re.escape(key)}\s*\}}", text)
    dots = len(match[1]) if match else 0
    return typed((*path[: len(path) - dots], key)) if dots else key
