"""Which runs a word on the command line names: an output, one of its companions, a folder, or a pattern.

Rules:
* A run is known by its plan or its manifest, so that one that wrote no result yet is found as well; in a folder that
  holds neither, results are a run.
* A companion stands for its run, unless it has a history of its own; each run is named once.
* Nothing is read but names.

Source: collection.md §1.2, §5.4.6, §9.3.
"""

import glob
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import click

from rollbook.ledger.paths import (
    aggregate_metrics_path_for,
    failures_path_for,
    manifest_path_for,
    materialized_path_for,
)

_PLAN: Final = "_materialized_inputs"
_MANIFEST: Final = "_manifest"
_RESULTS: Final = "rollouts"
_LISTED: Final = 3
_COMPANIONS: Final = (
    _PLAN,
    _MANIFEST,
    "_failures",
    "_aggregate_metrics",
    "_batch_status",
    "_coverage",
    "_attempts",
    "_reward_profiling",
    "_agent_metrics",
    "_repeat_level_metrics",
)


def runs_named(words: Iterable[str]) -> tuple[Path, ...]:
    """Return the outputs of the runs that `words` name, each once.

    Raises:
        click.UsageError: a word that names no run.

    """
    found: dict[Path, None] = {}
    for word in words:
        outputs = list(_named(word))
        if not outputs:
            raise click.UsageError(f"{word}: no run is there; give a run's output, its folder, or a pattern in quotes.")
        found.update(dict.fromkeys(outputs))
    return tuple(found)


def run_named(word: str) -> Path:
    """Return the output of the one run that `word` names.

    Raises:
        click.UsageError: it names none, or several.

    """
    outputs = runs_named([word])
    if len(outputs) > 1:
        listed = ", ".join(map(str, outputs[:_LISTED])) + (", …" if len(outputs) > _LISTED else "")
        raise click.UsageError(f"{word}: {len(outputs)} runs are there ({listed}); name one of them.")
    return outputs[0]


def _named(word: str) -> Iterator[Path]:
    path = Path(word)
    if path.is_dir():
        yield from _runs_in(path)
    elif path.exists() or _has_history(path) or failures_path_for(path).exists():
        yield _owner_of(path)
    else:
        for match in sorted(glob.glob(word, recursive=True)):  # noqa: PTH207  a pattern may be absolute
            yield from _runs_in(Path(match)) if Path(match).is_dir() else _known(Path(match))


def _runs_in(folder: Path) -> Iterator[Path]:
    plans = folder.rglob(f"*{_PLAN}.jsonl")
    manifests = folder.rglob(f"*{_MANIFEST}.json")
    return iter(sorted({_without_ending(path) for path in (*plans, *manifests)} or _results_alone(folder)))


def _results_alone(folder: Path) -> set[Path]:
    """Return the results in a folder that came without a plan: their name says so, or a companion beside them."""
    return {
        path
        for path in folder.glob("*.jsonl")
        if _without_ending(path) == path and (path.stem.startswith(_RESULTS) or _has_companion(path))
    }


def _has_companion(output: Path) -> bool:
    return failures_path_for(output).exists() or aggregate_metrics_path_for(output).exists()


def _known(path: Path) -> Iterator[Path]:
    """Yield the run that a match of a pattern belongs to; other files match by chance."""
    owner = _owner_of(path)
    if owner != path or _has_history(path):
        yield owner


def _owner_of(path: Path) -> Path:
    parent = _without_ending(path)
    return parent if parent != path and _has_history(parent) and not _has_history(path) else path


def _without_ending(path: Path) -> Path:
    ending = next((ending for ending in _COMPANIONS if path.stem.endswith(ending)), "")
    stem = path.stem.removesuffix(ending)
    return path.with_name(f"{stem}.jsonl") if ending and stem else path


def _has_history(output: Path) -> bool:
    return materialized_path_for(output).exists() or manifest_path_for(output).exists()
