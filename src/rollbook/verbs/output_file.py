"""Where a file goes that is to appear whole, looked at before it is made.

Rules:
* An earlier file stays, unless the caller knows that it may be replaced: it was told so, or wrote that file itself.
* A file may take the place of a file and of nothing else: a device, a pipe, a socket or a folder stays what it is.
* What a link leads to is replaced, and the link stays.
"""

import os
from pathlib import Path

from rollbook.errors import InputError, OutputExistsError


def output_file(path: Path, *, replaces: bool) -> Path:
    """Return the place to which a file goes that is called `path`; `replaces` lets it take the place of another.

    Raises:
        InputError: something is there that is no file.
        OutputExistsError: a file is there, and is not to be replaced.

    """
    place = Path(os.path.realpath(path)) if path.is_symlink() else path
    if place.is_dir():
        raise InputError(f"{path} is a folder; name a file, or another folder for it")
    if place.exists() and not place.is_file():
        raise InputError(f"{path} is no file (a device, a pipe or a socket), and would be replaced by one; name a file")
    if place.exists() and not replaces:
        raise OutputExistsError(f"{path} is there already. Replace it with --overwrite, or name another file")
    return place
