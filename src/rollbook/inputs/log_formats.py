"""Which form a log has, told by its content: the register of the forms that can be imported.

Rules:
* One module a form; what it takes to read another one is its module and a line in `FORMATS`.
* A file's name tells nothing, apart from which files of a folder are looked at.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rollbook.inputs import inspect_log
from rollbook.inputs.logged import ForeignLog, LogError

_HEAD_BYTES: Final = 1 << 16
_ENDINGS: Final = (".eval", ".json")


@dataclass(frozen=True, slots=True)
class LogFormat:
    """A form of logs: whether a file that begins with some bytes has it, and how it is opened."""

    name: str
    is_log: Callable[[Path, bytes], bool]
    opened: Callable[[Path], ForeignLog]


FORMATS: Final = (LogFormat(inspect_log.FORM, inspect_log.is_log, inspect_log.opened),)


def opened_logs(paths: Iterable[Path]) -> tuple[ForeignLog, ...]:
    """Return the logs at `paths`, opened, in the order given; of a folder, every log in it by name.

    Raises:
        LogError: a path is no log of a known form, or a folder holds none.

    """
    return tuple(_opened(path) for path in _files(paths))


def _files(paths: Iterable[Path]) -> Iterator[Path]:
    for path in paths:
        if not path.is_dir():
            yield path
            continue
        found = [file for file in sorted(path.iterdir()) if file.suffix in _ENDINGS and _format_of(file) is not None]
        if not found:
            raise LogError(f"{path}: no log of a known form ({_known()}) is in this folder")
        yield from found


def _opened(path: Path) -> ForeignLog:
    form = _format_of(path)
    if form is None:
        raise LogError(f"{path}: no log of a known form ({_known()})")
    return form.opened(path)


def _format_of(path: Path) -> LogFormat | None:
    if not path.is_file():
        raise LogError(f"{path}: no such file")
    with path.open("rb") as file:
        head = file.read(_HEAD_BYTES)
    return next((form for form in FORMATS if form.is_log(path, head)), None)


def _known() -> str:
    return ", ".join(form.name for form in FORMATS)
