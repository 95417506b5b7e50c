"""Where what is derived from runs may be written: never over a run's own file, nor over what it is derived from.

Rules:
* A run's file is known by those beside it, and by its rows: what names a task and a repeat is of a run.
* Links are followed; nothing is written or moved.

Source: collection.md §1.2, §9.4.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from rollbook.errors import LedgerError
from rollbook.ledger.ownership import journal_path_for
from rollbook.ledger.paths import RunPaths
from rollbook.ledger.reader import scan
from rollbook.records.place import File
from rollbook.records.reading import UNREADABLE, read_row

_JOURNAL: Final = "_attempts.jsonl"
_HISTORY: Final = ("_failures.jsonl", "_materialized_inputs.jsonl", "_manifest.json", "_manifest.log", _JOURNAL)


def refuse_over_runs(path: Path, sources: Iterable[Path] = ()) -> None:
    """Refuse to write at `path` what is derived from `sources`, where one of them or a run's file lies there.

    Raises:
        LedgerError: it does; says what it is.

    """
    if any(_is_same(path, source) for source in sources):
        raise LedgerError(f"{path}: this is what is read, and would be lost; give another name")
    owner = _owner(path.resolve() if path.is_symlink() else path)
    if owner is not None:
        raise LedgerError(f"{path}: this is a file of the run {owner}, and would be lost; give another name")


def _is_same(path: Path, other: Path) -> bool:
    return path.exists() and other.exists() and path.samefile(other)


def _owner(path: Path) -> Path | None:
    """Return the output of the run that `path` is a file of; None where it is of none."""
    if any(other.exists() for other in _history(path) if other != path) or _holds_rollouts(path):
        return path
    for ending in _HISTORY:
        stem = path.name.removesuffix(ending)
        if path.name.endswith(ending) and stem:
            return next(_outputs(path, stem), None)
    return None


def _history(output: Path) -> tuple[Path, ...]:
    paths = RunPaths(output)
    kept = (paths.failures, paths.materialized_inputs, paths.manifest, paths.manifest_log)
    return (*kept, journal_path_for(output))


def _outputs(path: Path, stem: str) -> Iterator[Path]:
    """Yield the outputs of that stem beside `path` which are there, or of which anything else is."""
    named = path.with_name(f"{stem}.jsonl")
    if path.parent.is_dir():
        yield from sorted(other for other in path.parent.iterdir() if other.stem == stem and other != path)
        if any(other.exists() for other in _history(named) if other != path):
            yield named


def _holds_rollouts(path: Path) -> bool:
    """Whether the first row of `path` names a task and a repeat of it."""
    try:
        first = next(scan(path), None) if path.is_file() else None
        return first is not None and bool(read_row(first.text, File.RESULTS).key)
    except UNREADABLE:
        return False
