"""The folder that code of a component takes for the one beside `resources_servers/` and the other shelves.

Rules:
* It is the first search root that holds a shelf, then the first such folder of the import path, then the package's own.
* Code asks for it when it is imported: a root that is named later does not move it.

Source: servers.md §1.1 (`PARENT_DIR`, where code, package and shelves are one tree).
"""

import sys
from pathlib import Path

from rollbook.config.names import SERVER_TYPES
from rollbook.config.roots import PARENT_DIR, search_roots


def component_root() -> Path:
    """Return the folder whose shelves are searched first."""
    named = [root for root in search_roots() if root != PARENT_DIR]
    imported = [Path(folder).absolute() for folder in sys.path]
    shelved = (root for root in (*named, *imported) if any((root / shelf).is_dir() for shelf in SERVER_TYPES))
    return next(shelved, PARENT_DIR)
