"""Files of an earlier run that are replaced before it is known whether this command may go on with that run.

Rules:
* Until what replaces them is settled, whatever goes wrong puts them back as they were, all of them.
* They are kept in their own folder, by a second name where the file system has such, and no longer than that.
"""

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def put_back_unless_settled(files: Sequence[Path]) -> Iterator[Callable[[], None]]:
    """Give what settles that files, all of one folder, may be others than they were before the block.

    Where none of them was there, what the block writes stays.
    """
    earlier = [path for path in files if path.is_file()]
    if not earlier:
        yield lambda: None
        return
    kept = tempfile.TemporaryDirectory(prefix=".earlier-", dir=earlier[0].parent)
    folder = Path(kept.name)
    with kept:
        for path in earlier:
            _keep(path, folder / path.name)
        try:
            yield kept.cleanup
        except BaseException:
            if folder.is_dir():
                _put_back(files, folder)
            raise


def _keep(path: Path, place: Path) -> None:
    try:
        os.link(path, place)
    except OSError:
        shutil.copy2(path, place)


def _put_back(files: Sequence[Path], kept: Path) -> None:
    for path in files:
        if (kept / path.name).exists():
            (kept / path.name).replace(path)
        else:
            path.unlink(missing_ok=True)
