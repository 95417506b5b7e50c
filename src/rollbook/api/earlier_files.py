"""Files of an earlier run that are replaced before it is known whether this command may go on with that run.

Rules:
* Until what replaces them is settled, whatever goes wrong puts them back as they were, all of them.
* What a command that was killed kept is put back by the next one about the same files, where it is proven to be what
  the run was made of; where it is not, it stays, and it is said where. Whoever calls holds the run, and nobody else.
* What lies in the place of a file that is put back for another command goes aside, and is not removed; rows that are as
  a collation wrote them, which the next collation would write over, are replaced like that here.
* They are kept in their own folder, by a second name where the file system has such, and no longer than that.
* The folder's name says which files they are, by the first of them, and how far it is: a folder that is not whole yet,
  or was let go, puts nothing back.
"""

import logging
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from shlex import quote
from typing import Final

from rollbook.ledger.digests import sha256_of
from rollbook.verbs.collate_metrics import is_collated

_LOG = logging.getLogger(__name__)
_KEPT: Final = ".earlier-"
_NOT_WHOLE: Final = ".keeping-"
_LET_GO: Final = ".let-go-"
_REPLACED: Final = ".replaced-"


@contextmanager
def put_back_unless_settled(files: Sequence[Path]) -> Iterator[Callable[[], None]]:
    """Give what settles that files, all of one folder, may be others than they were before the block.

    Where none of them was there, what the block writes stays.
    """
    earlier = [path for path in files if path.is_file()]
    if not earlier:
        yield lambda: None
        return
    folder = _kept(files[0].stem, earlier)
    try:
        yield lambda: _let_go(folder)
    except BaseException:
        if folder.is_dir():
            _put_back(files, folder)
            _let_go(folder)
        raise
    _let_go(folder)


def put_back_left(files: Sequence[Path], of_run: str | None) -> None:
    """Put back what commands kept of `files` that were killed, or say where it lies; remove what they were done with.

    `of_run` is the digest of what the first of `files` held when the run was made of it, where that is known.
    """
    place, name = files[0].parent, files[0].stem
    for folder in (*place.glob(f"{_NOT_WHOLE}{name}-*"), *place.glob(f"{_LET_GO}{name}-*")):
        shutil.rmtree(folder, ignore_errors=True)
    for folder in sorted(place.glob(f"{_KEPT}{name}-*")):
        first = folder / files[0].name
        if first.is_file() and sha256_of(first) == of_run:
            replaced = None if is_collated(files[0]) else _move_others(files, folder)
            _put_back(files, folder)
            _let_go(folder)
            where = "" if replaced is None else _where(replaced)
            _LOG.warning(
                "%s: a command was killed while it made these rows anew; they are put back as they were%s", place, where
            )
        else:
            _LOG.warning(
                "%s: a command that was killed kept these files, and nothing proves that they are of the run at the "
                "output; they stay there. To have them back: mv -i %s/* %s; if nobody needs them: rm -r %s",
                *(folder, quote(str(folder)), quote(str(place)), quote(str(folder))),
            )


def _move_others(files: Sequence[Path], kept: Path) -> Path | None:
    """Move aside what is to be put back and is not as it was; return where to, or None where all is as it was."""
    others = [path for path in files if path.exists() and not _is_same(path, kept / path.name)]
    if not others:
        return None
    aside = Path(tempfile.mkdtemp(prefix=f"{_REPLACED}{files[0].stem}-", dir=files[0].parent))
    for path in others:
        path.rename(aside / path.name)
    return aside


def _where(replaced: Path) -> str:
    return f"; what lay there is in {replaced}; if nobody needs it: rm -r {quote(str(replaced))}"


def _is_same(path: Path, other: Path) -> bool:
    return path.is_file() and other.is_file() and sha256_of(path) == sha256_of(other)


def _kept(name: str, earlier: Sequence[Path]) -> Path:
    """Keep files, and return the folder that holds them, which has its name once it holds them all."""
    making = Path(tempfile.mkdtemp(prefix=f"{_NOT_WHOLE}{name}-", dir=earlier[0].parent))
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
    """Give what `path` leads to a second name."""
    try:
        os.link(os.path.realpath(path), place)
    except OSError:
        shutil.copy2(path, place)


def _put_back(files: Sequence[Path], kept: Path) -> None:
    """Put files back as they were; the folder stays whole, so that this may be begun anew."""
    for path in files:
        if (kept / path.name).exists():
            aside = kept / f"{path.name}.back"
            aside.unlink(missing_ok=True)
            _keep(kept / path.name, aside)
            aside.replace(os.path.realpath(path))
        else:
            path.unlink(missing_ok=True)
