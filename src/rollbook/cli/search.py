"""`gym search`: what of a shelf has to do with a few words.

Rules:
* What holds the words, in its name or its description, comes first; what is written nearly so comes behind.
* It is listed as `gym list` lists it.

Source: servers.md §10.2.
"""

import difflib
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import click

from rollbook.cli.list_assets import as_json, note_problems, show_all
from rollbook.cli.terminal import say, say_json
from rollbook.cli.verb import VerbCommand, wants_json
from rollbook.config.catalog import CatalogEntry, Shelf, shelf_entries
from rollbook.config.listed import Listed, listed
from rollbook.config.roots import add_search_dirs

_TYPES: Final[Mapping[str, tuple[Shelf, ...]]] = {
    "environments": (Shelf.ENVIRONMENT, Shelf.BENCHMARK),
    "benchmarks": (Shelf.BENCHMARK,),
    "agents": (Shelf.AGENT,),
    "models": (Shelf.MODEL,),
    "resources-servers": (Shelf.RESOURCES_SERVER,),
}
_QUERY: Final = ("+query=", "++query=", "query=")
_NEAR: Final = 0.75
_SHORTEST: Final = 4


@click.command("search", cls=VerbCommand, reports=True, short_help="Find what the shelf holds.")
@click.argument("words", nargs=-1, metavar="[TYPE] QUERY")
@click.option("--search-dir", metavar="DIR", multiple=True, help="Look here first (repeatable).")
@click.pass_context
def command(context: click.Context, /, words: tuple[str, ...], search_dir: tuple[str, ...]) -> None:
    """Find environments, benchmarks, agents, models or resources servers by their names and descriptions.

    TYPE is environments (benchmarks included; the default), benchmarks, agents, models or resources-servers.
    """
    what, query = _asked(words)
    add_search_dirs(search_dir)
    entries = [entry for shelf in _TYPES[what] for entry in shelf_entries(shelf)]
    found = [listed(entry) if entry.shelf.composes else Listed(entry) for entry in matching(entries, query)]
    note_problems(found)
    if wants_json(context):
        say_json([as_json(one) for one in found])
    elif found:
        show_all(found, what)
    else:
        say(f"Nothing among {len(entries)} {what} has to do with {query!r}; gym list {what} shows all.")


def _asked(words: Sequence[str]) -> tuple[str, str]:
    """Return what kind of thing is looked for, and the words; a word that names a kind is one when others follow."""
    plain = [_without_key(word) for word in words]
    what = plain[0] if len(plain) > 1 and plain[0] in _TYPES else "environments"
    query = " ".join(plain[1:] if len(plain) > 1 and plain[0] in _TYPES else plain).strip()
    if not query:
        raise click.UsageError("say what to look for: gym search [TYPE] QUERY.")
    return what, query


def _without_key(word: str) -> str:
    return next((word.removeprefix(key) for key in _QUERY if word.startswith(key)), word)


def matching(entries: Sequence[CatalogEntry], query: str) -> list[CatalogEntry]:
    """Return the entries that hold all words of `query`, those in the name first, and behind them those near it."""
    words = query.casefold().split()
    named = [entry for entry in entries if _holds(entry.name, words)]
    told = [entry for entry in entries if entry not in named and _holds(f"{entry.name} {entry.description}", words)]
    near = [entry for entry in entries if entry not in named and entry not in told and _is_near(entry, words)]
    return [*named, *told, *near]


def _holds(text: str, words: Sequence[str]) -> bool:
    folded = text.casefold()
    spaced = folded.replace("_", " ").replace("-", " ")
    return all(word in folded or word in spaced or word in folded.replace("_", "") for word in words)


def _is_near(entry: CatalogEntry, words: Sequence[str]) -> bool:
    """Whether every word is written nearly like one of the entry's."""
    known = list(_words_of(entry))
    return all(len(word) >= _SHORTEST and difflib.get_close_matches(word, known, 1, _NEAR) for word in words)


def _words_of(entry: CatalogEntry) -> Iterator[str]:
    yield entry.name.casefold()
    for text in (entry.name.replace("_", " ").replace("-", " ").replace("/", " "), entry.description):
        yield from (word.strip(".,;:()").casefold() for word in text.split())
