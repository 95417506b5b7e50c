"""`gym list …`: one command per kind, over one catalog.

Rules:
* A listing is read from the search roots' folders; no component is imported.
* A name that is not there is answered with the nearest ones.
* Environments and benchmarks are told with what their manifests say; one that cannot be read is noted beside them.

Source: servers.md §10.2.
"""

import difflib
import shlex
import sys
from collections.abc import Sequence
from typing import Final

import click
from rich.console import Console
from rich.table import Table

from rollbook.cli.flags import Declared, flags
from rollbook.cli.terminal import note, say, say_json
from rollbook.cli.verb import VerbCommand, wants_json
from rollbook.config.catalog import CatalogEntry, Shelf, selectors_of, shelf_entries
from rollbook.config.listed import EXPERIMENTAL, NO_MANIFEST, Listed, is_self_contained, listed, pattern_of
from rollbook.config.roots import add_search_dirs
from rollbook.errors import ConfigError
from rollbook.live.escape import escaped

_WIDTH_OF_A_FILE: Final = 160
_USAGE_EXIT_CODE: Final = 2


def _listing(name: str, shelves: Sequence[Shelf], what: str, also: str = "") -> click.Command:
    @click.command(name, cls=VerbCommand, reports=True, help=f"List {what}{also}; with NAME, show one of them.")
    @click.argument("wanted", required=False, metavar="[NAME]")
    @_filters(shelves)
    @click.option("--search-dir", metavar="DIR", multiple=True, help="Look here first (repeatable).")
    @click.pass_context
    def listing(
        context: click.Context,
        /,
        wanted: str | None,
        search_dir: tuple[str, ...],
        kind: str | None = None,
        **filters: str | None,
    ) -> None:
        add_search_dirs(search_dir)
        entries = [entry for shelf in shelves if kind in {None, _KINDS[shelf]} for entry in shelf_entries(shelf)]
        if wanted is not None:
            entries = [_named(entries, wanted, what)]
        shown = [one for one in map(_with_manifest, entries) if one.passes(filters)]
        note_problems(shown)
        if wants_json(context):
            say_json([as_json(one) for one in shown])
        elif wanted is not None:
            _show_one(shown, wanted, search_dir)
        elif not shown and entries:
            say(f"No {what} of {len(entries)} are what the filters say.")
        else:
            show_all(shown, what)

    return listing


def _filters(shelves: Sequence[Shelf]) -> Declared:
    """Return the flags that choose among what is listed; of servers there are none."""
    if not all(shelf.composes for shelf in shelves):
        return flags()
    kinds = [_KINDS[shelf] for shelf in shelves]
    of_several = [
        click.option("--kind", type=click.Choice(kinds), help="List those of this kind alone. [default: both]")
    ]
    return flags(*_MANIFEST_FILTERS, *(of_several if len(kinds) > 1 else []))


def _with_manifest(entry: CatalogEntry) -> Listed:
    return listed(entry) if entry.shelf.composes else Listed(entry)


def note_problems(shown: Sequence[Listed]) -> None:
    """Tell on standard error which manifests cannot be read, and why."""
    for one in shown:
        if one.problem:
            first, *others = one.problem.splitlines()
            more = f" (and {len(others)} more: gym env validate {one.entry.name})" if others else ""
            note(f"{first}{more}")


def _named(entries: Sequence[CatalogEntry], wanted: str, what: str) -> CatalogEntry:
    for entry in entries:
        if entry.name == wanted:
            return entry
    near = difflib.get_close_matches(wanted, [entry.name for entry in entries])
    hint = f" Did you mean {' or '.join(near)}?" if near else ""
    error = ConfigError(f"no {wanted} among the {what}.{hint} `gym list {what.replace(' ', '-')}` shows all.")
    error.exit_code = _USAGE_EXIT_CODE
    raise error


def as_json(one: Listed) -> dict[str, object]:
    """Return what a listing says about one entry."""
    entry = one.entry
    told: dict[str, object] = {"name": entry.name, "kind": _KINDS[entry.shelf]}
    if entry.shelf.composes:
        told |= one.as_json()
    if entry.shelf is Shelf.AGENT:
        told |= {"pattern": pattern_of(entry), "self_contained": is_self_contained(entry)}
    return told | {"path": str(entry.path), "variants": list(entry.flavors), "description": entry.description}


def _show_one(shown: Sequence[Listed], wanted: str, search_dirs: Sequence[str]) -> None:
    if not shown:
        say(f"{wanted} is not what the filters say.")
        return
    entry = shown[0].entry
    say(entry.name)
    if entry.description:
        say(f"  {entry.description}")
    told = as_json(shown[0])
    for field in ("status", *_TOLD_OF_ONE, "pattern"):
        if told.get(field) is not None:
            say(f"  {field.replace('_', ' ')}: {told[field]}")
    say(f"  at {entry.path}")
    for flavor in entry.flavors:
        say(f"  variant: {entry.shelf.flag} {entry.name}/{flavor}")
    selector = next(selectors_of(entry), entry.name)
    roots = "".join(f" --search-dir {shlex.quote(folder)}" for folder in search_dirs)
    say(f"  use: gym eval run{roots} {entry.shelf.flag} {selector} …")


def show_all(shown: Sequence[Listed], what: str) -> None:
    """Print entries as a table, or that there are none."""
    if not shown:
        say(f"No {what} under the search roots; add one with --search-dir.")
        return
    columns = _COLUMNS_OF_COMPOSED if all(one.entry.shelf.composes for one in shown) else _COLUMNS_OF_SERVERS
    table = Table(box=None, pad_edge=False)
    for title in columns:
        folds = title in {"Variants", "Description"}
        table.add_column(title, no_wrap=not folds, overflow="fold" if folds else "ellipsis")
    for one in shown:
        told = as_json(one) | {"variants": ", ".join(one.entry.flavors), "description": _cut(one.entry.description)}
        table.add_row(*(escaped(str(told.get(title.lower()) or "-")) for title in columns))
    width = None if sys.stdout.isatty() else _WIDTH_OF_A_FILE
    Console(highlight=False, markup=False, width=width).print(table)


def _cut(description: str) -> str:
    """Return a description as a table of many shows it."""
    return description if len(description) <= _SHOWN_OF_MANY else description[: _SHOWN_OF_MANY - 1] + "…"


_SHOWN_OF_MANY: Final = 300
_COLUMNS_OF_COMPOSED: Final = ("Name", "Kind", "Status", "Lifecycle", "Domain", "Description")
_COLUMNS_OF_SERVERS: Final = ("Name", "Kind", "Variants", "Description")
_TOLD_OF_ONE: Final = ("version", "domain", "modality", "integration_profile", "licensing", "lifecycle")
_MANIFEST_FILTERS: Final = (
    click.option("--domain", metavar="DOMAIN", help="List those about this alone, such as math."),
    click.option("--modality", metavar="MODALITY", help="List those whose tasks are made of this, such as text."),
    click.option("--licensing", metavar="LICENCE", help="List those under this licence, such as Apache-2.0."),
    click.option("--status", type=click.Choice([EXPERIMENTAL, NO_MANIFEST]), help="List those of this status."),
    click.option("--lifecycle", type=click.Choice(["active", "deprecated"]), help="List those of this lifecycle."),
)
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
