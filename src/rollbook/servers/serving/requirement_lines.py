"""Requirements files as installers read them: logical lines, and what one line asks for.

Rules:
* Comments go, continued lines are joined, and `-r` is followed; what lies beside a file is named by its absolute path.
* A line may hold credentials; what is shown of one goes through `without_credentials`.
* A line is taken apart only as far as its name, its extras and its place; versions are somebody else's business.

Source: servers.md §2.3.
"""

import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Final

import msgspec

_FILE_OPTION: Final = re.compile(r"^(?P<flag>-r|--requirement|-c|--constraint)[ =]*(?P<path>\S.*)$")
_EDITABLE: Final = re.compile(r"^(?:-e|--editable)[ =]+")
_NAMED: Final = re.compile(
    r"^(?P<name>[A-Za-z0-9](?:[\w.-]*[A-Za-z0-9])?)\s*(?:\[(?P<extras>[^\]]*)\])?\s*(?:@\s*(?P<place>\S.*))?"
)
_CREDENTIALS: Final = re.compile(r"(?P<scheme>\w+://)[^/\s]+@")
_PLACE: Final = re.compile(r"^(?P<place>[^\[\s;]+)(?:\[(?P<extras>[^\]]*)\])?")


class Asked(msgspec.Struct, frozen=True):
    """What one line asks for. `text` is the line for an installer; `place` is a local path or a URL, else empty."""

    text: str
    name: str = ""
    extras: frozenset[str] = frozenset()
    place: str = ""
    editable: bool = False


def requirement_lines(path: Path) -> tuple[str, ...]:
    """Return the packages that a requirements file names; options and comments are left out."""
    return tuple(line for line in logical_lines(path) if not line.startswith("-"))


def logical_lines(path: Path) -> Iterator[str]:
    """Yield the lines of a requirements file, those of the files that it includes in their place; none without it."""
    if not path.is_file():
        return
    for line in path.read_text(encoding="utf-8-sig").replace("\\\n", " ").splitlines():
        bare = re.sub(r"(^|\s)#.*", "", line).strip()
        other = _FILE_OPTION.match(bare)
        if other is None:
            yield from [bare] if bare else []
        elif other["flag"] in {"-r", "--requirement"}:
            yield from logical_lines(path.parent / other["path"])
        else:
            yield f"-c {_absolute(other['path'], path.parent)}"


def named_files(option: str) -> Iterator[Path]:
    """Yield the file that an option of a requirements file names, and those that it includes."""
    named = _FILE_OPTION.match(option)
    waiting = [Path(named["path"])] if named else []
    seen: set[Path] = set()
    while waiting:
        path = waiting.pop()
        if path in seen or not path.is_file():
            continue
        seen.add(path)
        yield path
        lines = path.read_text(encoding="utf-8-sig", errors="replace").splitlines()
        included = (_FILE_OPTION.match(re.sub(r"\s#.*", "", line).strip()) for line in lines)
        waiting.extend(path.parent / other["path"] for other in included if other)


def asked(line: str, folder: Path) -> Asked:
    """Return what `line` of a file in `folder` asks for."""
    editable = _EDITABLE.match(line)
    rest = line[editable.end() :] if editable else line
    if "://" in rest.partition(" ")[0] or rest.startswith((".", "/")):
        return _of_place(rest, folder, editable=editable is not None)
    found = _NAMED.match(rest)
    if found is None:
        return Asked(line)
    place = (found["place"] or "").partition(" ;")[0].strip()
    editable_place = editable is not None and bool(place)
    text = f"-e {_absolute(place, folder)}" if editable_place else rest
    if place and "://" not in place and not editable_place:
        where = (folder / place.removeprefix("file:")).resolve().as_uri()
        text = rest[: found.start("place")] + rest[found.start("place") :].replace(place, where, 1)
        place = where
    return Asked(text, canonical(found["name"]), _extras(found["extras"]), place, editable is not None)


def _of_place(text: str, folder: Path, *, editable: bool) -> Asked:
    found = _PLACE.match(text)
    place = found["place"] if found else text
    extras = found["extras"] if found and found["extras"] else ""
    where = _absolute(place, folder)
    shown = f"{where}[{extras}]" if extras else where
    return Asked(f"-e {shown}" if editable else shown, "", _extras(extras), where, editable)


def _absolute(place: str, folder: Path) -> str:
    return place if "://" in place else str((folder / place).resolve())


def without_credentials(text: str) -> str:
    """Return `text` as it may be shown: what stands before the host of an address is masked."""
    return _CREDENTIALS.sub(r"\g<scheme>****@", text)


def climbs(place: str) -> bool:
    """Whether a local path only goes upwards, as the path of the repository that holds a component does."""
    parts = PurePosixPath(place).parts
    return bool(parts) and set(parts) <= {"..", "."}


def canonical(name: str) -> str:
    """Return a distribution's name as all ways to write it are compared."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _extras(text: str | None) -> frozenset[str]:
    return frozenset(canonical(extra.strip()) for extra in (text or "").split(",") if extra.strip())
