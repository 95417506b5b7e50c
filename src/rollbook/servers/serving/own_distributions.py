"""Our own distributions, as an installer is to be asked for them.

Rules:
* What is installed here is installed there: an editable folder, a folder, an archive or a commit by its address, and
  what came from an index by its version.
* Where the import names of NeMo Gym are not installed, it is said what to type.

Source: servers.md §2.3; PEP 610.
"""

import json
from collections.abc import Iterable
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from rollbook.errors import ServingError

OWN: Final = "rollbook"
NAMES: Final = "rollbook-nemo-gym"
NAMES_PACKAGE: Final = "nemo_gym"
_NAMES_FOLDER: Final = Path("compat") / "nemo_gym"


def own_lines(extras: Iterable[str] = (), *, with_names: bool) -> tuple[str, ...]:
    """Return the lines that install what is installed here: ours, and the names of the field where they are asked for.

    Raises:
        ServingError: Rollbook is used without being installed.

    """
    ours = installed(OWN)
    if ours is None:
        raise ServingError(
            "Rollbook is not installed here, so that no other environment can be given it; install it: pip install ."
        )
    names = installed(NAMES) if with_names else None
    return (_line(OWN, ours, extras), *([_line(NAMES, names)] if names is not None else []))


def installed(name: str) -> Distribution | None:
    """Return the installed distribution `name`, or None."""
    try:
        return distribution(name)
    except PackageNotFoundError:
        return None


def how_to_install_names() -> str:
    """Return the command that installs the import names of NeMo Gym."""
    ours = installed(OWN)
    folder = _local_folder(_direct_url(ours)) if ours is not None else None
    if folder is not None and (folder / _NAMES_FOLDER / "pyproject.toml").is_file():
        return f"pip install {folder / _NAMES_FOLDER}"
    return f"pip install {NAMES}"


def _line(name: str, found: Distribution, extras: Iterable[str] = ()) -> str:
    told = _direct_url(found)
    wanted = ",".join(sorted(extras))
    brackets = f"[{wanted}]" if wanted else ""
    folder = _local_folder(told)
    if folder is not None and told.get("dir_info", {}).get("editable"):
        return f"-e {folder}{brackets}"
    if told.get("url"):
        return f"{name}{brackets} @ {_address(told)}"
    return f"{name}{brackets}=={found.version}"


def _address(told: dict[str, Any]) -> str:
    commit = told.get("vcs_info")
    return f"{commit['vcs']}+{told['url']}@{commit['commit_id']}" if commit else str(told["url"])


def _local_folder(told: dict[str, Any]) -> Path | None:
    parts = urlsplit(str(told.get("url", "")))
    return Path(unquote(parts.path)) if parts.scheme == "file" and "dir_info" in told else None


def _direct_url(found: Distribution) -> dict[str, Any]:
    text = found.read_text("direct_url.json")
    told = json.loads(text) if text else {}
    return told if isinstance(told, dict) else {}
