"""A component that imports a name of NeMo Gym's which is not among those that Rollbook has.

Rules:
* The import names are installed, so that nothing is left to install: the message names the name, file and line.
* A private name (a leading underscore) is never there, and the message says so.

Source: servers.md §13.3.
"""

import re
import traceback
from pathlib import Path
from typing import Final

from rollbook.errors import ServingError
from rollbook.servers.serving.own_distributions import NAMES_PACKAGE

_MODULE: Final = re.compile(rf"No module named '(?P<module>{NAMES_PACKAGE}\.[\w.]+)'")
_NAME: Final = re.compile(rf"cannot import name '(?P<name>\w+)' from '(?P<module>{NAMES_PACKAGE}(?:\.[\w.]+)?)'")
_FRAME: Final = re.compile(r'^ *File "(?P<file>[^<"][^"]*)", line (?P<line>\d+)', re.MULTILINE)
_LIST: Final = "docs/compat.md"


def name_left_out(said: str, where: object) -> ServingError | None:
    """Return the error for what Python says of an import, if it failed for a name that Rollbook does not have.

    `where` is the place of the import, as it is to be shown.
    """
    found = _NAME.search(said) or _MODULE.search(said)
    if found is None:
        return None
    parts = found.groupdict()
    name = ".".join(filter(None, (parts["module"], parts.get("name"))))
    private = any(part.startswith("_") for part in name.split("."))
    why = "private names are left out" if private else "it is not among the names of NeMo Gym that Rollbook has"
    return ServingError(f"{where} imports {name}: {why}; {_LIST} says which are there")


def name_left_out_in(log: str, where: Path) -> ServingError | None:
    """Return the same of a server that ended with `log`, `where` being its entry point."""
    frames = [f"{frame['file']}:{frame['line']}" for frame in _FRAME.finditer(log)]
    return name_left_out(log, frames[-1] if frames else where)


def place_of(error: BaseException) -> str:
    """Return the file and the line that raised `error`, Python's own import machinery left out."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith("<")]
    return f"{frames[-1].filename}:{frames[-1].lineno}" if frames else ""
