"""Which result files a pattern names: the shards of an aggregation.

Rules:
* One sorted list, each file once. Companions are no shards; one whose results are gone stands for its run all the same.
* The output of the aggregation is never its own input.
* What was named and is left out is told, with the reason; a name under which no run is found is an error, whatever
  else was named: without a lost shard a score would speak for all.

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
_TO_DO: Final = (
    "mend it in --input-glob, or leave it out; what is lost counts as missing where --materialized-inputs names a plan "
    "of all shards"
)


@dataclass(frozen=True, slots=True)
class ShardFiles:
    """The outputs of the runs to aggregate, and what is to be told of what was named besides."""

    outputs: tuple[Path, ...]
    notes: tuple[str, ...]


def shard_files(patterns: str, output: Path, *, merging: bool) -> ShardFiles:
    """Return the shards that `patterns`, separated by commas, name; folders stand for the result files in them.

    With `merging`, `output` is about to be written.

    Raises:
        ConfigPathNotFoundError: nothing is there by one of the patterns, or nothing but companions.
        InputError: the only shard is the file that is to be written.

    """
    found = {pattern: sorted(_matches(pattern)) for pattern in map(str.strip, patterns.split(",")) if pattern}
    runs = _runs_of(sorted({path for matches in found.values() for path in matches}))
    known = {run.resolve() for run in runs}
    for pattern, matches in found.items():
        if not _is_heeded(matches, known):
            raise ConfigPathNotFoundError(_lost(pattern, matches, alone=len(found) == 1))
    kept = [path for path in runs if not (merging and _is_same(path, output))]
    if runs and not kept:
        raise InputError(
            f"{output}: the only input is the file that would be written; give another --output, or --no-merge to "
            "write the metrics beside it"
        )
    if not kept:
        raise ConfigPathNotFoundError(f"{patterns}: no result file is there; name shards with --input-glob")
    return ShardFiles(tuple(kept), tuple(_notes(runs, kept)))


def _is_heeded(matches: list[Path], known: set[Path]) -> bool:
    """Whether what a pattern matches leads to a run, or lies beside none but the `known`."""
    if not (matches and known):
        return False
    return bool(_runs_of(matches)) or all(_is_beside(path, known) for path in matches)


def _lost(pattern: str, matches: list[Path], *, alone: bool) -> str:
    """Return what is wrong with a pattern that leads to no run, and what to do; `alone`: there is no other."""
    other = f" (what matches is of no run: {matches[0]}, …)" if matches else ""
    do = "name shards with --input-glob" if alone else _TO_DO
    return f"{pattern}: no result file is there{other}; {do}"


def _matches(pattern: str) -> Iterator[Path]:
    path = Path(pattern)
    if path.is_dir():
        yield from path.glob(f"*{_SUFFIX}")
    elif path.is_file() or _is_gone(path):
        yield path
    else:
        yield from map(Path, glob.glob(pattern, recursive=True))  # noqa: PTH207  a pattern may be absolute


def _is_gone(path: Path) -> bool:
    """Whether a run's results are gone, and what lies beside them is there."""
    paths = RunPaths(path)
    return path.suffix == _SUFFIX and any(one.is_file() for one in (paths.materialized_inputs, paths.failures))


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
    stem = _stem_of_run(path)
    if stem == path.stem:
        return path
    output = path.with_name(stem + _SUFFIX)
    return None if output.exists() or output.stem == "" else output


def _stem_of_run(path: Path) -> str:
    """Return the stem of the output that `path` lies beside, if its name says so; else its own."""
    ending = next((ending for ending in _COMPANIONS if path.stem.endswith(ending)), "")
    return path.stem.removesuffix(ending)


def _is_beside(path: Path, known: set[Path]) -> bool:
    """Whether a file that is no shard belongs to one of the `known` runs, or is no companion."""
    output = path.with_name(_stem_of_run(path) + _SUFFIX)
    return output == path or not output.is_file() or output.resolve() in known


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
