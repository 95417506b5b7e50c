"""Which result files a pattern names: the shards of an aggregation.

Rules:
* One sorted list, each file once. Companions are no shards; one whose results are gone stands for its run all the same.
* The output of the aggregation is never its own input.
* What was named and is left out is told, with the reason.

Source: collection.md §6.2, §1.2, §21.4.29; case RC-82.
"""

import glob
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rollbook.errors import ConfigPathNotFoundError, InputError
from rollbook.ledger.paths import RunPaths
from rollbook.verbs.merged_run import is_merged

_COMPANIONS: Final = ("_failures", "_materialized_inputs", "_attempts")
_OTHER_REPORTS: Final = ("rollout_verdicts", "_reward_profiling", "_rollout_verdicts")
_SUFFIX: Final = ".jsonl"


@dataclass(frozen=True, slots=True)
class ShardFiles:
    """The outputs of the runs to aggregate, and what is to be told of what was named besides."""

    outputs: tuple[Path, ...]
    notes: tuple[str, ...]


def shard_files(patterns: str, output: Path, *, merging: bool) -> ShardFiles:
    """Return the shards that `patterns`, separated by commas, name; folders stand for the result files in them.

    With `merging`, `output` is about to be written.

    Raises:
        ConfigPathNotFoundError: nothing is there, or nothing but companions.
        InputError: the only shard is the file that is to be written.

    """
    named = sorted({path for pattern in patterns.split(",") for path in _matches(pattern.strip())})
    runs = _runs_of(named)
    kept = [path for path in runs if not (merging and _is_same(path, output))]
    if runs and not kept:
        raise InputError(
            f"{output}: the only input is the file that would be written; give another --output, or --no-merge to "
            "write the metrics beside it"
        )
    if not kept:
        other = f" (what matches is of no run: {named[0]}, …)" if named else ""
        raise ConfigPathNotFoundError(f"{patterns}: no result file is there{other}; name shards with --input-glob")
    return ShardFiles(tuple(kept), tuple(_notes(runs, kept)))


def _matches(pattern: str) -> Iterator[Path]:
    path = Path(pattern)
    if pattern and path.is_dir():
        yield from path.glob(f"*{_SUFFIX}")
    elif path.is_file():
        yield path
    elif pattern:
        yield from map(Path, glob.glob(pattern, recursive=True))  # noqa: PTH207  a pattern may be absolute


def _runs_of(named: list[Path]) -> list[Path]:
    """Return the outputs of what was named, each once: links and other spellings lead to the same file."""
    found: dict[Path, Path] = {}
    for path in named:
        owner = _owner(path)
        if owner is not None and not owner.is_dir():
            found.setdefault(owner.resolve(), owner)
    return sorted(found.values())


def _owner(path: Path) -> Path | None:
    """Return the output that `path` is, or whose companion it is where that output is gone."""
    if path.suffix != _SUFFIX or path.stem.endswith(_OTHER_REPORTS):
        return None
    ending = next((ending for ending in _COMPANIONS if path.stem.endswith(ending)), None)
    if ending is None:
        return path
    output = path.with_name(path.stem.removesuffix(ending) + _SUFFIX)
    return None if output.exists() or output.stem == "" else output


def _is_same(path: Path, output: Path) -> bool:
    return path.resolve() == output.resolve()


def _notes(runs: list[Path], kept: list[Path]) -> Iterator[str]:
    for path in runs:
        if path not in kept:
            yield f"{path} is the file to be written, and is not read"
    for path in kept:
        if not path.exists():
            yield f"{path}: its results are gone; its rollouts count as missing"


def refuse_over_run(output: Path) -> None:
    """Refuse to write merged rows over the results of a run.

    Raises:
        InputError: `output` belongs to a run of its own, and not to what was merged before.

    """
    paths = RunPaths(output)
    if is_merged(paths):
        return
    own = next(
        (path for path in (paths.manifest, paths.manifest_log, paths.materialized_inputs) if path.exists()), None
    )
    if own is None and paths.failures.exists() and paths.failures.stat().st_size:
        own = paths.failures
    if own is not None:
        raise InputError(
            f"{output}: a run has its results there ({own.name} is beside it); give another --output, or --no-merge to "
            "write the metrics beside it"
        )
