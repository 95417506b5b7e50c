"""A file that a benchmark's authors publish: where it is looked for, and where it comes from.

Rules:
* A file that is named is taken, or told not to be there; nothing is fetched in its place.
* Without one, the folders of `ROLLBOOK_BENCHMARK_FILES` are looked at, then what an earlier call fetched, then the net.
* Whoever cannot fetch it is told which file to put where.

Source: servers.md §8.10.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import msgspec

from rollbook.errors import InputError
from rollbook.inputs.download import DownloadError, Open, download, opened_address

FILES_VARIABLE: Final = "ROLLBOOK_BENCHMARK_FILES"
_FOLDER: Final = "published"


class PublishedFile(msgspec.Struct, frozen=True):
    """A file at `address` of at most `most_bytes` bytes; `also` names other forms that the same data have.

    `benchmark` is its benchmark's name on the shelf: a folder of that name is looked into.
    """

    benchmark: str
    address: str
    most_bytes: int
    also: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The file's own name, the last part of its address."""
        return urlsplit(self.address).path.rpartition("/")[2]

    def found(
        self, source: str | os.PathLike[str] | None, beside: str | os.PathLike[str], open_address: Open = opened_address
    ) -> Path:
        """Return the file: `source`, or where else it is; it is fetched into a folder beside `beside` at last.

        `source` is the file, or a folder that it lies in, by itself or below the benchmark's name.

        Raises:
            InputError: it is not where it was said to be, or cannot be fetched; says which file to put where.

        """
        if source is not None:
            return self._named(self._path_of(source))
        place = Path(beside).absolute().parent / _FOLDER / self.name
        for folder in (*_folders(), place.parent):
            for path in self._in(folder):
                return path
        try:
            return download(self.address, place, self.most_bytes, open_address)
        except DownloadError as error:
            raise InputError(
                f"{self.benchmark}: {self.name} is not here and cannot be fetched: {error}. Fetch {self.address} where "
                f"there is a network, and put it at {place}, or name it: +prepare_script_args.source=FILE"
            ) from error

    def _path_of(self, source: object) -> Path:
        if isinstance(source, str | os.PathLike):
            return Path(source).expanduser()
        raise InputError(
            f"{self.benchmark}: source is {source!r:.60}, which is no path; write ./{source!s:.60} of a file"
        )

    def _named(self, source: Path) -> Path:
        if source.is_file():
            return source
        for path in self._in(source):
            return path
        names = " or ".join((self.name, *self.also))
        what = f"the folder {source} holds no {names}" if source.is_dir() else f"there is no {source}"
        raise InputError(f"{self.benchmark}: {what}; its file is that of {self.address}, or a folder that holds it")

    def _in(self, folder: Path) -> Iterator[Path]:
        for name in (self.name, *self.also):
            yield from (path for path in (folder / self.benchmark / name, folder / name) if path.exists())


def _folders() -> Iterator[Path]:
    """Yield the folders that the variable names.

    Raises:
        InputError: one of them is not there.

    """
    for text in filter(None, os.environ.get(FILES_VARIABLE, "").split(os.pathsep)):
        folder = Path(text).expanduser()
        if not folder.is_dir():
            raise InputError(f"{FILES_VARIABLE} names {folder}, which is no folder; mend the variable")
        yield folder
