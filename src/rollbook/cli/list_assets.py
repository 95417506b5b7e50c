"""`gym list …`: one command per kind, over one catalog.

Rules:
* A listing is read from the search roots' folders; no component is imported.
* A name that is not there is answered with the nearest ones.

Source: servers.md §10.2.
"""

import difflib
import sys
from collections.abc import Sequence
from typing import Final

import click
from rich.console import Console
from rich.table import Table

from rollbook.cli.terminal import say, say_json
from rollbook.cli.verb import VerbCommand, wants_json
from rollbook.config.catalog import CatalogEntry, Shelf, shelf_entries
from rollbook.config.roots import add_search_dirs
from rollbook.errors import ConfigError
from rollbook.live.escape import escaped

_WIDTH_OF_A_FILE: Final = 160


def _listing(name: str, shelves: Sequence[Shelf], what: str) -> click.Command:
    @click.command(name, cls=VerbCommand, reports=True, help=f"List {what}; with NAME, show one of them.")
    @click.argument("wanted", required=False, metavar="[NAME]")
    @click.option("--search-dir", metavar="DIR", multiple=True, help="Look here first (repeatable).")
    @click.pass_context
    def listing(context: click.Context, /, wanted: str | None, search_dir: tuple[str, ...]) -> None:
        add_search_dirs(search_dir)
        entries = [entry for shelf in shelves for entry in shelf_entries(shelf)]
        if wanted is not None:
            entries = [_named(entries, wanted, what)]
        if wants_json(context):
            say_json([as_json(entry) for entry in entries])
        elif wanted is not None:
            _show_one(entries[0])
        else:
            _show_all(entries, what)

    return listing


def _named(entries: Sequence[CatalogEntry], wanted: str, what: str) -> CatalogEntry:
    for entry in entries:
        if entry.name == wanted:
            return entry
    near = difflib.get_close_matches(wanted, [entry.name for entry in entries])
    hint = f" Did you mean {' or '.join(near)}?" if near else ""
    raise ConfigError(f"no {wanted} among the {what}.{hint} `gym list {what.replace(' ', '-')}` shows all.")


def as_json(entry: CatalogEntry) -> dict[str, object]:
    """Return what a listing says about one entry."""
    return {
        "name": entry.name,
        "kind": _KINDS[entry.shelf],
        "path": str(entry.path),
        "variants": list(entry.flavors),
        "description": entry.description,
    }


def _show_one(entry: CatalogEntry) -> None:
    say(entry.name)
    if entry.description:
        say(f"  {entry.description}")
    say(f"  at {entry.path}")
    for flavor in entry.flavors:
        say(f"  variant: {entry.shelf.flag} {entry.name}/{flavor}")
    say(f"  use: gym eval run {entry.shelf.flag} {entry.name} …")


def _show_all(entries: Sequence[CatalogEntry], what: str) -> None:
    if not entries:
        say(f"No {what} under the search roots; add one with --search-dir.")
        return
    table = Table(box=None, pad_edge=False)
    for title in ("Name", "Kind"):
        table.add_column(title, no_wrap=True)
    for title in ("Variants", "Description"):
        table.add_column(title, overflow="fold")
    for entry in entries:
        cells = (entry.name, _KINDS[entry.shelf], ", ".join(entry.flavors), _cut(entry.description))
        table.add_row(*(escaped(cell) for cell in cells))
    width = None if sys.stdout.isatty() else _WIDTH_OF_A_FILE
    Console(highlight=False, markup=False, width=width).print(table)


def _cut(description: str) -> str:
    """Return a description as a table of many shows it."""
    return description if len(description) <= _SHOWN_OF_MANY else description[: _SHOWN_OF_MANY - 1] + "…"


_SHOWN_OF_MANY: Final = 300
_KINDS: Final = {
    Shelf.ENVIRONMENT: "environment",
    Shelf.BENCHMARK: "benchmark",
    Shelf.AGENT: "agent",
    Shelf.MODEL: "model",
    Shelf.RESOURCES_SERVER: "resources server",
    Shelf.ENVIRONMENT_SERVER: "environment server",
}

environments: Final = _listing("environments", (Shelf.ENVIRONMENT, Shelf.BENCHMARK), "environments")
benchmarks: Final = _listing("benchmarks", (Shelf.BENCHMARK,), "benchmarks")
agents: Final = _listing("agents", (Shelf.AGENT,), "agents")
models: Final = _listing("models", (Shelf.MODEL,), "models")
resources_servers: Final = _listing("resources-servers", (Shelf.RESOURCES_SERVER,), "resources servers")
