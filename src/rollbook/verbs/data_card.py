"""The data card beside a data set's rows, as a hub reads it: YAML between two lines of `---`, then text.

Rules:
* A card whose front matter cannot be read names nothing.

Source: servers.md §8.12.
"""

import re
from pathlib import Path
from typing import Final

import yaml

from rollbook.config.placed_yaml import plain_yaml

_FRONT: Final = re.compile(r"---[ \t]*\n(.*?)^(?:---|\.\.\.)[ \t]*$", re.DOTALL | re.MULTILINE)


def licences_of(card: Path) -> tuple[str, ...]:
    """Return the identifiers that a data card gives as `license`: a text, or a list of them."""
    front = _FRONT.match(card.read_text(encoding="utf-8-sig", errors="replace"))
    try:
        told = plain_yaml(front[1]) if front else None
    except (yaml.YAMLError, RecursionError):
        return ()
    said = told.get("license") if isinstance(told, dict) else None
    return tuple(one.strip() for one in (said if isinstance(said, list) else [said]) if isinstance(one, str))
