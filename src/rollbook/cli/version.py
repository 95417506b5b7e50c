"""`gym --version`: which Rollbook, on which Python, where.

Rules:
* Versions are read from installed metadata; no library is imported to ask it for its own.
* What reads metadata is loaded for the object alone: the line is there at once.

Source: servers.md §10.2.
"""

import os
import sys
from pathlib import Path
from typing import Final

import rollbook
from rollbook.cli.terminal import say, say_json

_DEPENDENCIES: Final = ("aiohttp", "click", "fastapi", "msgspec", "omegaconf", "pydantic", "uvicorn")


def show_version(*, as_json: bool) -> None:
    """Print the version, as a line or as a JSON object."""
    if as_json:
        say_json(version_facts())
    else:
        say(f"rollbook {rollbook.__version__} (Python {_python()})")


def version_facts() -> dict[str, object]:
    """Return what a report about a problem needs to name."""
    import platform  # noqa: PLC0415  see the rules

    return {
        "rollbook": rollbook.__version__,
        "python": _python(),
        "python_path": sys.executable,
        "installation_path": str(Path(rollbook.__file__).parent),
        "dependencies": {name: _version_of(name) for name in _DEPENDENCIES},
        "system": {
            "os": platform.system(),
            "platform": platform.platform(),
            "architecture": platform.machine(),
            "cpus": os.cpu_count(),
        },
    }


def _python() -> str:
    return sys.version.split()[0]


def _version_of(name: str) -> str | None:
    import importlib.metadata  # noqa: PLC0415  see the rules

    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None
