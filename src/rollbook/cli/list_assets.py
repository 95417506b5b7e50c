"""`gym list …`: one command per kind, over one catalog.

Rules:
* A listing is read from the search roots' folders; no component is imported.
* A name that is not there is answered with the nearest ones.

Source: servers.md §10.2.
"""

import difflib
import shlex
import sys
from collections.abc import Callable, Sequence
from typing import Final

import click
from rich.console import Console
from rich.table import Table

from rollbook.cli.terminal import say, say_json
from rollbook.cli.verb import VerbCommand, wants_json
from rollbook.config.catalog import CatalogEntry, Shelf, selectors_of, shelf_entries
from rollbook.config.roots import add_search_dirs
from rollbook.errors import ConfigError
from rollbook.live.escape import escaped

_WIDTH_OF_A_FILE: Final = 160
_USAGE_EXIT_CODE: Final = 2


def _listing(name: str, shelves: Sequence[Shelf], what: str, also: str = "") -> click.Command:
    @click.command(name, cls=VerbCommand, reports=True, help=f"List {what}{also}; with NAME, show one of them.")
    @click.argument("wanted", required=False, metavar="[NAME]")
    @click.option("--search-dir", metavar="DIR", multiple=True, help="Look here first (repeatable).")
    @_kind_flag(shelves)
    @click.pass_context
    def listing(
        context: click.Context, /, wanted: str | None, search_dir: tuple[str, ...], kind: str | None = None
    ) -> None:
        add_search_dirs(search_dir)
        listed = [shelf for shelf in shelves if kind in {None, _KINDS[shelf]}]
        entries = [entry for shelf in listed for entry in shelf_entries(shelf)]
        if wanted is not None:
            entries = [_named(entries, wanted, what)]
        if wants_json(context):
            say_json([as_json(entry) for entry in entries])
        elif wanted is not None:
            _show_one(entries[0], search_dir)
        else:
            _show_all(entries, shelves, what)

    return listing


def _kind_flag(shelves: Sequence[Shelf]) -> Callable[[click.decorators.FC], click.decorators.FC]:
    """Return the flag that chooses among several shelves; of one shelf there is none."""
    if len(shelves) == 1:
        return lambda command: command
    kinds = [_KINDS[shelf] for shelf in shelves]
    return click.option("--kind", type=click.Choice(kinds), help="List those of this kind alone. [default: both]")


def _named(entries: Sequence[CatalogEntry], wanted: str, what: str) -> CatalogEntry:
    for entry in entries:
        if entry.name == wanted:
            return entry
    near = difflib.get_close_matches(wanted, [entry.name for entry in entries])
    hint = f" Did you mean {' or '.join(near)}?" if near else ""
    error = ConfigError(f"no {wanted} among the {what}.{hint} `gym list {what.replace(' ', '-')}` shows all.")
    error.exit_code = _USAGE_EXIT_CODE
    raise error


def as_json(entry: CatalogEntry) -> dict[str, object]:
    """Return what a listing says about one entry."""
    return {
        "name": entry.name,
        "kind": _KINDS[entry.shelf],
        "path": str(entry.path),
        "variants": list(entry.flavors),
        "description": entry.description,
    }


def _show_one(entry: CatalogEntry, search_dirs: Sequence[str]) -> None:
    say(entry.name)
    if entry.description:
        say(f"  {entry.description}")
    say(f"  at {entry.path}")
    for flavor in entry.flavors:
        say(f"  variant: {entry.shelf.flag} {entry.name}/{flavor}")
    selector = next(selectors_of(entry), entry.name)
    roots = "".join(f" --search-dir {shlex.quote(folder)}" for folder in search_dirs)
    say(f"  use: gym eval run{roots} {entry.shelf.flag} {selector} …")


def _show_all(entries: Sequence[CatalogEntry], shelves: Sequence[Shelf], what: str) -> None:
    if not entries:
        ships = "" if Shelf.RESOURCES_SERVER in {*shelves} else " `gym list resources-servers` shows what ships."
        say(f"No {what} under the search roots; add one with --search-dir.{ships}")
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

environments: Final = _listing("environments", (Shelf.ENVIRONMENT, Shelf.BENCHMARK), "environments", " and benchmarks")
benchmarks: Final = _listing("benchmarks", (Shelf.BENCHMARK,), "benchmarks")
agents: Final = _listing("agents", (Shelf.AGENT,), "agents")
models: Final = _listing("models", (Shelf.MODEL,), "models")
resources_servers: Final = _listing("resources-servers", (Shelf.RESOURCES_SERVER,), "resources servers")
