"""Command-line overrides: `key=value`, `+key=value`, `++key=value`, `~key`.

Rules:
* The three ways to set a key mean the same; `~key` removes a key, `~key=value` only one of that value.
* Tokens apply in the order they were typed, on top of everything else.
* Plain values and lists of them are read here; anything richer is read by Hydra's grammar, imported for it alone.
* A token that cannot be read is shown without its value, which may be a secret.

Source: servers.md §1.2.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import msgspec
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from rollbook.config.files import configuration, plain
from rollbook.config.tree import Path, Tree, at, children, did_you_mean, dotted
from rollbook.errors import ConfigError

_TOKEN: Final = re.compile(r"(?P<sign>\+\+|\+|~)?(?P<key>[A-Za-z_$][\w$.-]*)(?:=(?P<value>.*))?", re.DOTALL)
_INT: Final = re.compile(r"[+-]?(0|[1-9][0-9]*)")
_FLOAT: Final = re.compile(r"[+-]?[0-9]+\.[0-9]+([eE][+-]?[0-9]+)?")
_WORD: Final = re.compile(r"[A-Za-z_./][A-Za-z0-9_./:@%*?|+-]*|\?\?\?")
_ADDRESS: Final = re.compile(r"[0-9]{1,3}(\.[0-9]{1,3}){3}(:[0-9]+)?")
_RICH_WORDS: Final = frozenset({"inf", "nan"})
_WORDS: Final = {"true": True, "false": False, "null": None}


class Override(msgspec.Struct, frozen=True):
    """One token: where it points, and what it does there."""

    path: Path
    value: object
    removes: bool = False
    only_if_equal: bool = False

    @property
    def label(self) -> str:
        """The key as typed."""
        return dotted(self.path)


class _NotPlain(Exception):  # noqa: N818  a signal between two readers, never seen outside
    """The value needs Hydra's grammar."""


def parse_overrides(tokens: Iterable[str]) -> tuple[Override, ...]:
    """Read command-line tokens.

    Raises:
        ConfigError: a token that is no override; names its key, never its value.

    """
    return tuple(_parse(token) for token in tokens)


def apply_overrides(cfg: DictConfig, overrides: Sequence[Override], *, lenient: bool = False) -> DictConfig:
    """Return `cfg` with the overrides on top; `lenient` forgives the removal of a key that is not there.

    Raises:
        ConfigError: the removal of a key that is not there; a value laid below a scalar or a list.

    """
    result = cfg.copy()
    OmegaConf.set_struct(result, False)  # noqa: FBT003  the library's own signature
    for override in overrides:
        if override.removes:
            result = _removed(result, override, lenient=lenient)
        else:
            _set(result, override)
    return result


def _set(cfg: DictConfig, override: Override) -> None:
    value = configuration({"value": override.value}, f"override {override.label}")._get_node("value")  # noqa: SLF001
    try:
        OmegaConf.update(cfg, ".".join(map(str, override.path)), value, merge=True, force_add=True)
    except (OmegaConfBaseException, TypeError, ValueError, AttributeError):
        raise ConfigError(
            f"the override {override.label}=… does not fit what is there: a list and a mapping cannot be merged, "
            f"and a list has no such place; remove what is there first, with ~<key>"
        ) from None


def _removed(cfg: DictConfig, override: Override, *, lenient: bool) -> DictConfig:
    tree = plain(cfg)
    *above, last = _steps(tree, override.path)
    parent = at(tree, tuple(above))
    known = dict(children(parent))
    if not isinstance(parent, (dict, list)) or last not in known:
        if lenient:
            return cfg
        close = did_you_mean(str(last), [str(key) for key in known])
        raise ConfigError(f"~{override.label}: there is no such key to remove.{close}")
    if override.only_if_equal and known[last] != override.value:
        raise ConfigError(f"~{override.label}=…: the key has another value; type ~{override.label} to remove it anyway")
    if isinstance(parent, list):
        parent.pop(int(last))
    else:
        parent.pop(last)
    return configuration(tree, "the merged configuration")


def _steps(tree: Tree, path: Path) -> Path:
    """Return `path` with numbers where it walks through lists."""
    steps: Path = ()
    for step in path:
        inside_list = isinstance(at(tree, steps), list) and str(step).isdigit()
        steps = (*steps, int(step) if inside_list else step)
    return steps


def _parse(token: str) -> Override:
    match = _TOKEN.fullmatch(token)
    if match is None or (match["sign"] != "~" and match["value"] is None):
        raise ConfigError(f"{_shown(token)} is no override; write key=value, +key=value, ++key=value or ~key")
    path = tuple(match["key"].split("."))
    if not all(path):
        raise ConfigError(f"{_shown(token)}: a part of the key is empty")
    if match["value"] is None:
        return Override(path, None, removes=True)
    value = _value(token, match["value"])
    return Override(path, value, removes=match["sign"] == "~", only_if_equal=match["sign"] == "~")


def _value(token: str, text: str) -> object:
    try:
        return _plain_value(text)
    except _NotPlain:
        return _hydra_value(token)


def _plain_value(text: str) -> object:
    if text.startswith("[") and text.endswith("]") and len(text) > 1:
        return [_plain_scalar(item.strip()) for item in _items(text[1:-1])]
    return _plain_scalar(text) if text else ""


def _items(text: str) -> Iterator[str]:
    return iter(text.split(",")) if text.strip() else iter(())


def _plain_scalar(text: str) -> object:
    lowered = text.lower()
    if lowered in _WORDS:
        return _WORDS[lowered]
    if _INT.fullmatch(text):
        return int(text)
    if _FLOAT.fullmatch(text):
        return float(text)
    if _ADDRESS.fullmatch(text):
        return text
    if _WORD.fullmatch(text) and lowered not in _RICH_WORDS and not _looks_like_number(text):
        return text
    raise _NotPlain


def _looks_like_number(text: str) -> bool:
    return text[0] == "." and text[1:2].isdigit()


def _hydra_value(token: str) -> object:
    from hydra.core.override_parser.overrides_parser import OverridesParser  # noqa: PLC0415  rare, and slow to import
    from hydra.errors import HydraException  # noqa: PLC0415  the same

    try:
        parsed = OverridesParser.create().parse_override(token)
    except HydraException:
        raise ConfigError(
            f"{_shown(token)} cannot be read; quote text that holds spaces, commas, quotes or =: "
            f"\"{_key_of(token)}='the text'\""
        ) from None
    if parsed.is_sweep_override():
        raise ConfigError(
            f"{_shown(token)} is a sweep over several values; for a list write {_key_of(token)}=[a,b], "
            f"for text write \"{_key_of(token)}='a,b'\""
        )
    return _as_plain(parsed.value())


def _as_plain(value: object) -> object:
    if isinstance(value, dict):
        return {str(key): _as_plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_as_plain(item) for item in value]
    return value if isinstance(value, (str, int, float, bool)) or value is None else str(value)


def _key_of(token: str) -> str:
    return token.partition("=")[0]


def _shown(token: str) -> str:
    key, equals, _ = token.partition("=")
    return f"`{key[:80]}{equals}{'…' if equals else ''}`"


def tree_of(overrides: Sequence[Override]) -> Tree:
    """Return what the overrides alone set, as a tree."""
    return plain(apply_overrides(OmegaConf.create({}), overrides, lenient=True))
