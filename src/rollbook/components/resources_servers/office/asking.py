"""What the tools of an office share: finding entries, reading times and addresses, and saying what is wrong."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, TypeVar

from resources_servers.office.records import Event

MOST_FOUND: Final = 20
TIME: Final = "%Y-%m-%d %H:%M"
Kind = TypeVar("Kind")


class OfficeError(Exception):
    """Something that an office cannot do; the message is for the model."""


def known(entries: Mapping[str, Kind], name: str, kind: str) -> Kind:
    """Return an entry.

    Raises:
        OfficeError: there is none of that id.

    """
    if name not in entries:
        raise OfficeError(f"there is no {kind} {name[:100]!r}; search for it first")
    return entries[name]


def listed(kind: str, entries: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return what a search found, cut to what a model reads, and how much there is."""
    return {kind: list(entries[:MOST_FOUND]), "found": len(entries)}


def has_words(text: str, words: str) -> bool:
    """Return whether a text has all of some words."""
    whole = text.casefold()
    return all(word in whole for word in words.casefold().split())


def addresses(people: Iterable[str]) -> list[str]:
    """Return addresses, each once.

    Raises:
        OfficeError: one is no address.

    """
    found: dict[str, str] = {}
    for person in people:
        address = person.strip()
        name, _, host = address.partition("@")
        if not name or "." not in host or " " in address:
            raise OfficeError(f"{person[:100]!r} is no address; write one such as ruth@tern.example")
        found.setdefault(address.casefold(), address)
    return list(found.values())


def path_in(path: str) -> str:
    """Return a path without outer slashes.

    Raises:
        OfficeError: it has no name, or leads out of the folder.

    """
    plain = path.strip().strip("/")
    if not plain or any(part in {"", ".", ".."} for part in plain.split("/")):
        raise OfficeError(f"{path[:100]!r} is no path; write one such as contracts/ferry.txt")
    return plain


def moment(text: str) -> datetime:
    """Return a time.

    Raises:
        OfficeError: it is none.

    """
    try:
        return datetime.strptime(text.strip(), TIME)  # noqa: DTZ007  an office keeps the time of its own place
    except ValueError:
        raise OfficeError(f"{text[:100]!r} is no time; write YYYY-MM-DD HH:MM") from None


def time_in(text: str) -> str:
    """Return a time as an office writes it.

    Raises:
        OfficeError: it is none.

    """
    return moment(text).strftime(TIME)


def span_of(event: Event) -> tuple[datetime, datetime]:
    """Return when an event starts and ends."""
    start = moment(event.start)
    return start, start + timedelta(minutes=event.duration)


def headed(word: str, subject: str) -> str:
    """Return a subject with a word before it, once."""
    return subject if subject.startswith(word) else f"{word} {subject}"
