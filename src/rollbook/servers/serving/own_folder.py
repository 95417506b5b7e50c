"""A component's own folder as the working directory while the component is loaded and built.

Rules:
* Of the components that do not ship alone; a server in a process of its own is started there, so their code opens
  files relative to it.
* The directory before it is back when the block is left, whatever happens. Nothing is awaited inside.
* A relative path that is not found all the same is answered with the way that stays in that folder.

Source: servers.md §2.3.
"""

from contextlib import AbstractContextManager, chdir, nullcontext
from pathlib import Path
from typing import Final

from rollbook.config.roots import PARENT_DIR

STAYS_THERE: Final = (
    "; a server of this process is in its own folder only while it is built: to have it there throughout, give "
    "--serve processes"
)


def in_own_folder(folder: Path) -> AbstractContextManager[None]:
    """Return a block in which `folder` is the working directory, unless it is one of a component that ships."""
    where = folder.resolve()
    return nullcontext() if where.is_relative_to(PARENT_DIR) else chdir(where)


def relative_path_hint(error: BaseException) -> str:
    """Return what to say of `error` where a file of a relative path was not found; else nothing."""
    name = error.filename if isinstance(error, FileNotFoundError) else None
    relative = isinstance(name, str) and name != "" and not Path(name).is_absolute()
    return STAYS_THERE if relative else ""
