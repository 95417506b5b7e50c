"""Modules that lie in a component's folder and say something about its data.

Rules:
* A module is imported anew under a name of its own: two components' modules never meet.
* Whatever its code raises is told with its file. To leave the process is to raise: the command that asked goes on.
"""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType, TracebackType

from rollbook.errors import TaskDataSchemaError


class TheirCode:
    """A block that runs code of somebody's file: what it raises becomes an error that names the file.

    `doing` ends before the error's own words, such as `hook raised `. An interrupt passes.

    Raises:
        TaskDataSchemaError: the block raised an error, or wanted to leave the process.

    """

    __slots__ = ("_before",)

    def __init__(self, path: Path | str, doing: str = "") -> None:
        self._before = f"{path}: {doing}"

    def __enter__(self) -> None:
        """Begin."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Say what was raised, if anything was."""
        if isinstance(error, (Exception, SystemExit)):
            raise TaskDataSchemaError(f"{self._before}{type(error).__name__}: {error}") from error


def imported(path: Path, kind: str) -> ModuleType:
    """Return the module of a file; `kind` says in its name what it is of its component.

    Raises:
        ImportError: the file is no module; and whatever its code raises.

    """
    name = f"rollbook_{kind}_of_{path.parent.name}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is no module")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
