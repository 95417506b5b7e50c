"""Where a file goes that is to appear whole, looked at before it is made.

Rules:
* A file may take the place of a file and of nothing else: a device, a pipe, a socket or a folder stays what it is.
* What a link leads to is replaced, and the link stays.
"""

import os
from pathlib import Path

from rollbook.errors import InputError


def output_file(path: Path) -> Path:
    """Return the place to which a file goes that is called `path`.

    Raises:
        InputError: something is there that is no file.

    """
    place = Path(os.path.realpath(path)) if path.is_symlink() else path
    if place.is_dir():
        raise InputError(f"{path} is a folder; name a file, or another folder for it")
    if place.exists() and not place.is_file():
        raise InputError(f"{path} is no file (a device, a pipe or a socket), and would be replaced by one; name a file")
    return place
