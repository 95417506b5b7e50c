"""Files of an earlier run that are replaced before it is known whether this command may go on with that run.

Rules:
* Until what replaces them is settled, whatever goes wrong puts them back as they were, all of them.
* What a command that was killed kept is put back by the next one: whoever calls holds the run, and nobody else does.
* They are kept in their own folder, by a second name where the file system has such, and no longer than that.
* The folder's name says how far it is: a folder that is not whole yet, or was let go, puts nothing back.
"""

import logging
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

_LOG = logging.getLogger(__name__)
_KEPT: Final = ".earlier-"
_NOT_WHOLE: Final = ".keeping-"
_LET_GO: Final = ".let-go-"


@contextmanager
def put_back_unless_settled(files: Sequence[Path]) -> Iterator[Callable[[], None]]:
    """Give what settles that files, all of one folder, may be others than they were before the block.

    Where none of them was there, what the block writes stays.
    """
    if files:
        _put_back_left(files)
    earlier = [path for path in files if path.is_file()]
    if not earlier:
        yield lambda: None
        return
    folder = _kept(earlier)
    try:
        yield lambda: _let_go(folder)
    except BaseException:
        if folder.is_dir():
            _put_back(files, folder)
        raise
    finally:
        _let_go(folder)


def _put_back_left(files: Sequence[Path]) -> None:
    """Put back what commands kept that were killed, and remove what they left."""
    place = files[0].parent
    left = sorted(place.glob(".*-*")) if place.is_dir() else []
    for folder in left:
        if folder.name.startswith(_KEPT):
            _put_back(files, folder)
            _LOG.warning(
                "%s: a command was killed while it made these rows anew; they are put back as they were", place
            )
        if folder.name.startswith((_KEPT, _NOT_WHOLE, _LET_GO)):
            shutil.rmtree(folder, ignore_errors=True)


def _kept(earlier: Sequence[Path]) -> Path:
    """Keep files, and return the folder that holds them, which has its name once it holds them all."""
    making = Path(tempfile.mkdtemp(prefix=_NOT_WHOLE, dir=earlier[0].parent))
    try:
        for path in earlier:
            _keep(path, making / path.name)
    except BaseException:
        shutil.rmtree(making, ignore_errors=True)
        raise
    return making.rename(making.with_name(_KEPT + making.name.removeprefix(_NOT_WHOLE)))


def _let_go(folder: Path) -> None:
    if folder.is_dir():
        gone = folder.rename(folder.with_name(_LET_GO + folder.name.removeprefix(_KEPT)))
        shutil.rmtree(gone, ignore_errors=True)


def _keep(path: Path, place: Path) -> None:
    try:
        os.link(path, place)
    except OSError:
        shutil.copy2(path, place)


def _put_back(files: Sequence[Path], kept: Path) -> None:
    """Put files back as they were; the folder stays whole, so that this may be begun anew."""
    for path in files:
        if (kept / path.name).exists():
            aside = kept / f"{path.name}.back"
            aside.unlink(missing_ok=True)
            _keep(kept / path.name, aside)
            aside.replace(path)
        else:
            path.unlink(missing_ok=True)
