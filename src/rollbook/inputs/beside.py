"""Modules that lie in a component's folder and say something about its data.

Rules:
* A module is imported anew under a name of its own: two components' modules never meet.
"""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Final

from pydantic import PydanticUserError

BROKEN: Final = (ImportError, SyntaxError, NameError, AttributeError, TypeError, ValueError, PydanticUserError)
"""What the import of somebody's module raises when it is at fault."""


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
