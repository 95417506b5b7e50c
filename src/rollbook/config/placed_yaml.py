"""A small YAML file → its values and the line of each, for files that people write and are told about.

Rules:
* What a document repeats by reference (`*name`) is refused: a few lines of it can stand for any amount of data.
* A key that stands twice is refused: the reader would see one value and the program another.
* A file is UTF-8 text, with or without a byte order mark, of a size that people write.

Source: servers.md §8.12.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec
import yaml
from yaml.constructor import ConstructorError

from rollbook.errors import ConfigError

Place = tuple[str | int, ...]
"""Where a value lies in a document: keys and indices, from the top."""
_MOST_BYTES: Final = 1 << 20
_DEEPEST: Final = 40
_MOST_VALUES: Final = 200_000


class PlacedYaml(msgspec.Struct, frozen=True):
    """The values of one file, and the lines at which they begin."""

    path: Path
    tree: Mapping[str, object]
    lines: Mapping[Place, int]

    def at(self, place: Place) -> str:
        """Return `file:line` of a value, of what encloses it where it is not there."""
        known = next((place[:end] for end in range(len(place), 0, -1) if place[:end] in self.lines), ())
        return f"{self.path}:{self.lines.get(known, 1)}"


def read_placed_yaml(path: Path, what: str) -> PlacedYaml:
    """Return the mapping in a file; `what` says in a message what the file was to be.

    Raises:
        FileNotFoundError: no such file.
        ConfigError: no text, no YAML, no mapping at the top, an alias, or a key that stands twice.

    """
    text = _text(path)
    try:
        loader = _PlacedLoader(text, path)
        node = loader.get_single_node()
        lines = dict(_lines(path, node, ()))
        tree = None if node is None else loader.construct_document(node)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = f"{path}:{mark.line + 1}" if mark else str(path)
        raise ConfigError(f"{place}: malformed YAML: {error.problem or 'unreadable'}") from None
    except (yaml.YAMLError, ValueError) as error:
        raise ConfigError(f"{path} cannot be read as YAML: {str(error).splitlines()[0]}") from None
    if not isinstance(node, yaml.MappingNode) or not isinstance(tree, dict):
        found = "nothing" if tree is None else "a list" if isinstance(tree, list) else "one value"
        raise ConfigError(f"{path} holds {found}; {what} is a mapping: write `field: value` lines")
    return PlacedYaml(path, tree, lines)


class _Loader(yaml.SafeLoader):
    """Reads plain values; one that is not what its tag says is an error with its line, as every other."""

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        """Return the value of a node."""
        try:
            return super().construct_object(node, deep=deep)
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
            said = f"`{node.value:.60}`" if isinstance(node.value, str) else "what stands here"
            kind = node.tag.rpartition(":")[2]
            raise ConstructorError(None, None, f"{said} is no {kind}", node.start_mark) from None


class _PlacedLoader(_Loader):
    """Refuses what people do not write while it reads: once through a file is enough."""

    def __init__(self, text: str, path: Path) -> None:
        """Read a text that stands in the file `path`."""
        super().__init__(text)
        self._path = path
        self._depth = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        """Return the next node with what it holds."""
        event = self.peek_event()  # type: ignore[no-untyped-call]  # its stubs leave it out
        place = f"{self._path}:{_line(event)}"
        if isinstance(event, yaml.AliasEvent):
            raise ConfigError(f"{place}: an alias (*{event.anchor}) stands for other text; write it out")
        if self._depth >= _DEEPEST and isinstance(event, yaml.CollectionStartEvent):
            raise ConfigError(f"{place}: values are nested more than {_DEEPEST} deep")
        self._depth += 1
        node = super().compose_node(parent, index)
        self._depth -= 1
        return node


def plain_yaml(text: str) -> Any:
    """Return the value that a text is.

    Raises:
        yaml.YAMLError: it is no YAML, or a value is not what its tag says.

    """
    return yaml.load(text, _Loader)  # noqa: S506  a loader of plain values


def refuse_expansion(path: Path) -> None:
    """Refuse a file in which aliases stand for more values than a configuration has, before anything expands them.

    Raises:
        ConfigError: it does; a file that cannot be read as YAML is left to who reads it.

    """
    data = path.read_bytes() if path.is_file() else b""
    if b"*" not in data or b"&" not in data:
        return
    try:
        node = yaml.compose(data, yaml.SafeLoader)
        count = _expanded(node, {}) if node is not None else 0
    except (yaml.YAMLError, RecursionError):
        return
    if count > _MOST_VALUES:
        raise ConfigError(f"{path}: its aliases (*name) stand for more than {_MOST_VALUES} values; write fewer of them")


def _expanded(node: yaml.Node, known: dict[int, int]) -> int:
    """Return how many values a node stands for once its aliases are written out."""
    if id(node) not in known:
        inner = node.value if isinstance(node.value, list) else []
        parts = [part for item in inner for part in (item if isinstance(item, tuple) else (item,))]
        known[id(node)] = 1 + sum(_expanded(part, known) for part in parts)
    return known[id(node)]


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(_MOST_BYTES + 1)
        if len(data) > _MOST_BYTES:
            raise ConfigError(f"{path} is larger than {_MOST_BYTES} bytes; nobody wrote it by hand, and it is not read")
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(
            f"{path} cannot be read: it is not UTF-8 text (byte {error.start}); save it as UTF-8"
        ) from None
    except FileNotFoundError:
        raise
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from None


def _lines(path: Path, node: yaml.Node | None, place: Place) -> Iterator[tuple[Place, int]]:
    if isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            yield (*place, index), _line(item)
            yield from _lines(path, item, (*place, index))
    elif isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for key, value in node.value:
            line, name = _line(key), str(key.value)
            if name in seen:
                raise ConfigError(f"{path}:{line}: `{name}` stands twice; keep one")
            seen.add(name)
            yield (*place, name), line
            yield from _lines(path, value, (*place, name))


def _line(part: yaml.Node | yaml.Event) -> int:
    return part.start_mark.line + 1 if part.start_mark else 1
