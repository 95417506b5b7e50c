"""Whether the calls of a response leave the office as the expected calls do.

Rules:
* Both lists of calls are played on an office as every session finds it; what the calls say in return does not matter.
* Things made anew are compared without their ids and in any order; capitals and white space do not matter in texts.
* A field that a row lists as free may say anything, but not nothing.

Source: the verifier compares states, as servers.md §7.3 (11) has it.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final

from pydantic import ValidationError

from resources_servers.office.asking import OfficeError
from resources_servers.office.records import Office, opened
from resources_servers.office.tools import TOOLS
from rollbook import untrusted_json

KINDS: Final = ("mails", "events", "files", "customers")
MOST_TOLD: Final = 20
LONGEST_TOLD: Final = 1000
_EXACT: Final = frozenset({"folder", "status", "start", "sent_at"})


def done(office: Office, name: str, arguments: object) -> dict[str, Any]:
    """Do what a call asks in an office, and return what the tool answers; a call that fails answers with `error`."""
    tool = TOOLS.get(name)
    if tool is None:
        return {"error": f"there is no tool {name[:100]!r}; there are {', '.join(TOOLS)}"}
    try:
        return tool.act(office, tool.arguments.model_validate(arguments))
    except OfficeError as error:
        return {"error": str(error)}
    except ValidationError as error:
        first = error.errors()[0]
        return {"error": f"{'.'.join(map(str, first['loc'])) or name}: {first['msg']}"}


def after(calls: Iterable[tuple[str, object]]) -> Office:
    """Return the office that calls leave behind."""
    office = opened()
    for name, arguments in calls:
        done(office, name, arguments)
    return office


def read(text: str) -> object:
    """Return the arguments that a call's text holds, None when it cannot be read."""
    try:
        return untrusted_json(text or "{}")
    except ValueError:
        return None


def differences(found: Office, expected: Office, free: frozenset[str] = frozenset()) -> list[str]:
    """Return in what two offices differ, a line for each thing, none when they are alike.

    `free`: fields such as `mails.body` that may say anything.
    """
    before = opened()
    lines: list[str] = []
    for kind in KINDS:
        ours, theirs = (_entries(office, before, kind, free) for office in (found, expected))
        lines += [f"{kind}: missing: {text}" for text in (theirs - ours).elements()]
        lines += [f"{kind}: not expected: {text}" for text in (ours - theirs).elements()]
    return [line if len(line) <= LONGEST_TOLD else f"{line[:LONGEST_TOLD]}…" for line in lines[:MOST_TOLD]]


def _entries(office: Office, before: Office, kind: str, free: frozenset[str]) -> Counter[str]:
    entries: Mapping[str, Any] = getattr(office, kind)
    old: Mapping[str, Any] = getattr(before, kind)
    named = kind == "files"
    return Counter(
        json.dumps({"id": name if named or name in old else "new"} | _plain(entry.model_dump(), kind, free))
        for name, entry in entries.items()
    )


def _plain(fields: dict[str, Any], kind: str, free: frozenset[str]) -> dict[str, Any]:
    return {
        name: bool(value) if f"{kind}.{name}" in free else _text(value, exact=name in _EXACT)
        for name, value in fields.items()
    }


def _text(value: object, *, exact: bool) -> object:
    if isinstance(value, list):
        return sorted(str(_text(entry, exact=exact)) for entry in value)
    return " ".join(value.split()).casefold() if isinstance(value, str) and not exact else value
