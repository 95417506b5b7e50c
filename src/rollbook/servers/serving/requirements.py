"""The packages that a component needs beyond ours, as its `requirements.txt` names them.

Rules:
* A package that is not installed is named together with the line that installs it; nothing is installed.

Source: servers.md §2.3.
"""

import shlex
from pathlib import Path

from rollbook.errors import MissingPackageError


def missing_package(package: str, folder: Path) -> MissingPackageError:
    """Return the error for a component in `folder` that imports `package`, which is not installed."""
    component = f"{folder.parent.name}/{folder.name}"
    lines = requirement_lines(folder / "requirements.txt")
    install = " ".join(shlex.quote(line) for line in lines) or package
    return MissingPackageError(
        f"{component} needs the package {package!r}, which is not installed; run: pip install {install}"
    )


def requirement_lines(path: Path) -> tuple[str, ...]:
    """Return the packages that a requirements file names; options and comments are left out."""
    if not path.is_file():
        return ()
    lines = (line.partition(" #")[0].strip() for line in path.read_text(encoding="utf-8").splitlines())
    return tuple(line for line in lines if line and not line.startswith(("#", "-")))
