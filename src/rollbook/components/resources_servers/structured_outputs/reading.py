"""A text in one of five formats, read as a value.

Rules:
* A text that is not in its format raises, and so does one that would grow: a document type in XML, aliases in YAML that
  stand for more than a text of that length could hold, or anything nested deeper than anybody reads.
* NaN and infinities are no JSON, and no numbers of YAML and TOML either.
* The root element of an XML document is the one key of its value; a CSV table is the list of its rows.
"""

import csv
import io
import json
import re
import tomllib
from collections.abc import Callable, Mapping
from typing import Any, Final

import yaml

from resources_servers.structured_outputs.elements import read_xml

MOST_NODES: Final = 1_000_000
DEEPEST: Final = 200
_DIGIT: Final = re.compile(r"[0-9]")
_YAML: Final[Any] = type("_Yaml", (getattr(yaml, "CSafeLoader", yaml.SafeLoader),), {})


class UnreadableError(Exception):
    """A text is not in its format, or grows beyond measure."""


def read(text: str, form: str) -> Any:
    """Return the value of a text in a format of `FORMATS`.

    Raises:
        UnreadableError: it has none.

    """
    try:
        return FORMATS[form](text)
    except (ValueError, TypeError, yaml.YAMLError, csv.Error) as error:
        raise UnreadableError(f"{type(error).__name__}: {error}") from error
    except (RecursionError, MemoryError) as error:
        raise UnreadableError("it is nested too deeply, or too large") from error


def read_json(text: str) -> Any:
    """Return the value of a JSON text.

    Raises:
        ValueError: it is not JSON, or holds an integer of more digits than Python reads.

    """
    return json.loads(text, parse_constant=_no_number)


def _no_number(name: str) -> float:
    raise ValueError(f"{name} is no JSON")


def _toml_number(text: str) -> float:
    return float(text) if _DIGIT.search(text) else _no_number(text)


def _yaml_number(loader: Any, node: Any) -> Any:
    return loader.construct_yaml_float(node) if _DIGIT.search(node.value) else _no_number(node.value)


_YAML.add_constructor("tag:yaml.org,2002:float", _yaml_number)


def _read_yaml(text: str) -> Any:
    _refuse_growth(text)
    return yaml.load(text, Loader=_YAML)  # noqa: S506  a safe loader


def _refuse_growth(text: str) -> None:
    """Raise where aliases stand for too much or for what they stand in, and where collections are nested too deeply."""
    sizes: dict[str, int | None] = {}
    open_nodes: list[tuple[str | None, int]] = [(None, 0)]
    for event in yaml.parse(text, Loader=_YAML):
        if isinstance(event, yaml.CollectionStartEvent):
            _name(sizes, event.anchor, None)
            open_nodes.append((event.anchor, 1))
            size = 0
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor, size = open_nodes.pop()
            _name(sizes, anchor, size)
        elif isinstance(event, yaml.AliasEvent):
            size = _size(sizes, event.anchor)
        else:
            size = int(isinstance(event, yaml.ScalarEvent))
            _name(sizes, getattr(event, "anchor", None), size)
        anchor, sum_so_far = open_nodes[-1]
        open_nodes[-1] = (anchor, sum_so_far + size)
        if sum_so_far + size > MOST_NODES or len(open_nodes) > DEEPEST:
            raise ValueError("its aliases stand for too much, or it is nested too deeply")


def _name(sizes: dict[str, int | None], anchor: str | None, size: int | None) -> None:
    if anchor is not None:
        sizes[anchor] = size


def _size(sizes: Mapping[str, int | None], anchor: str | None) -> int:
    size = sizes.get(anchor or "", 0)
    if size is None:
        raise ValueError(f"the alias {anchor!r} stands inside what it stands for")
    return size


def _read_csv(text: str) -> list[dict[str, Any]]:
    rows = csv.DictReader(io.StringIO(text, newline=""))
    return Table(rows.fieldnames or (), rows)


class Table(list[dict[str, Any]]):
    """The rows of a CSV text, and the names of its columns."""

    def __init__(self, columns: Any = (), rows: Any = ()) -> None:
        super().__init__(rows)
        self.columns = tuple(columns)


FORMATS: Final[Mapping[str, Callable[[str], Any]]] = {
    "json": read_json,
    "yaml": _read_yaml,
    "xml": lambda text: read_xml(text, DEEPEST),
    "toml": lambda text: tomllib.loads(text, parse_float=_toml_number),
    "csv": _read_csv,
}
