"""`--environment NAME[/FLAVOR]` and its like → the configuration file that the name stands for.

Rules:
* A selector is shorthand for one path under the search roots; `--config` names such a path outright.
* Files are merged in one order, whatever the order of the flags: config, benchmark, environment, resources server,
  model, agent. The file that loads later overrides.
* A name that several roots hold goes to the first root, and a warning says so.

Source: servers.md §10.1.
"""

import difflib
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import click

from rollbook.config.roots import search_roots

_LOG = logging.getLogger(__name__)
_CONFIGS: Final = "configs"


@dataclass(frozen=True, slots=True)
class Selector:
    """One flag that names something on the shelf `folder`; `nested` shelves keep `config.yaml` beside the files."""

    flag: str
    folder: str
    nested: bool = False

    def candidates(self, name: str) -> tuple[str, ...]:
        """Return the relative paths that `name` may stand for, best first."""
        head, _, flavor = name.rpartition("/")
        if self.nested:
            paths = [f"{self.folder}/{name}/config.yaml"]
            return tuple([*paths, f"{self.folder}/{head}/{flavor}.yaml"] if head else paths)
        head, _, flavor = name.partition("/")
        return (f"{self.folder}/{head}/{_CONFIGS}/{flavor or head}.yaml",)

    def offered(self) -> tuple[str, ...]:
        """Return the names that the search roots hold for this flag."""
        return tuple(sorted({name for root in search_roots() for name in self._names_in(root / self.folder)}))

    def _names_in(self, shelf: Path) -> Iterator[str]:
        if self.nested:
            for path in shelf.rglob("config.yaml"):
                yield path.parent.relative_to(shelf).as_posix()
            return
        for path in shelf.glob(f"*/{_CONFIGS}/*.yaml"):
            name = path.parent.parent.name
            yield name if path.stem == name else f"{name}/{path.stem}"


SELECTORS: Final[Mapping[str, Selector]] = {
    "benchmark": Selector("--benchmark", "benchmarks", nested=True),
    "environment": Selector("--environment", "environments", nested=True),
    "resources_server": Selector("--resources-server", "resources_servers"),
    "model_type": Selector("--model-type", "responses_api_models"),
    "agent_type": Selector("--agent-type", "responses_api_agents"),
}


def config_paths_of(given: Mapping[str, object]) -> list[str]:
    """Return the configuration files that `--config` and the selectors name, in the order in which they are merged."""
    paths = list(_texts(given.get("config")))
    for parameter, selector in SELECTORS.items():
        paths += [selected_path(selector, name) for name in _texts(given.get(parameter))]
    return list(dict.fromkeys(paths))


def _texts(value: object) -> Sequence[str]:
    if isinstance(value, str):
        return [value]
    return [str(item) for item in value] if isinstance(value, tuple) else []


def selected_path(selector: Selector, name: str) -> str:
    """Return the path, relative to a search root, that `name` stands for.

    Raises:
        click.UsageError: no root holds it; names the path, what comes close and the folders searched.

    """
    roots = search_roots()
    for path in selector.candidates(name):
        holders = [root for root in roots if (root / path).is_file()]
        if len(holders) > 1:
            _LOG.warning("%s %s lies in several roots; %s is used", selector.flag, name, holders[0] / path)
        if holders:
            return path
    raise click.UsageError(_unknown(selector, name, roots))


def _unknown(selector: Selector, name: str, roots: Sequence[Path]) -> str:
    offered = selector.offered()
    near = difflib.get_close_matches(name, offered, n=3)
    flavors = [known for known in offered if known.startswith(f"{name}/")]
    found = [*near, *(flavor for flavor in flavors if flavor not in near)]
    hint = f" Did you mean {' or '.join(found)}?" if found else ""
    searched = ", ".join(str(root) for root in roots)
    return f"{selector.flag} {name}: no {selector.candidates(name)[0]} in {searched}.{hint}"
