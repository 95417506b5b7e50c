"""Whether a component's example data are whole: rows, what they amount to, and what came of them once.

Rules:
* At least five example rows and as many saved rollouts, and metrics that speak of all the rows.
* Everything that is wrong is told at once, with its file and line.

Source: servers.md §10.2.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from rollbook.config.catalog import Shelf

_FEWEST: Final = 5
_METRICS_COUNT: Final = "Number of examples"


def example_problems(folder: Path) -> tuple[str, ...]:
    """Return what is wrong with the example data of the component in `folder`."""
    data = folder / "data"
    return (
        *_rows(data / "example.jsonl"),
        *_rows(data / "example_rollouts.jsonl"),
        *_metrics(data / "example_metrics.json", data / "example.jsonl", _cure(folder)),
    )


def _cure(folder: Path) -> str:
    named = f"--config {folder}/configs/{folder.name}.yaml"
    if folder.parent.name == Shelf.RESOURCES_SERVER:
        named = f"{Shelf.RESOURCES_SERVER.flag} {folder.name}"
    flags = f"--mode example_validation {named} --output-dir DIR --overwrite-metrics-conflicts"
    return f"gym dataset collate {flags} writes it"


def _rows(path: Path) -> Iterator[str]:
    if not path.is_file():
        yield f"{path} is missing"
        return
    lines = _lines(path)
    if len(lines) < _FEWEST:
        yield f"{path} has {len(lines)} rows; it is to have {_FEWEST} or more"
    for number, line in enumerate(lines, start=1):
        if not _is_object(line):
            yield f"{path}:{number}: no JSON object"


def _lines(path: Path) -> list[bytes]:
    return [line for line in path.read_bytes().splitlines() if line.strip()]


def _is_object(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except ValueError:
        return False


def _metrics(path: Path, rows: Path, cure: str) -> Iterator[str]:
    try:
        found = json.loads(path.read_bytes())
    except FileNotFoundError:
        yield f"{path} is missing; {cure}"
    except ValueError:
        yield f"{path}: no JSON; {cure}"
    else:
        count = found.get(_METRICS_COUNT) if isinstance(found, dict) else None
        wanted = len(_lines(rows)) if rows.is_file() else None
        if wanted is not None and count != wanted:
            yield f"{path}: {_METRICS_COUNT!r} is {count}, and {rows.name} has {wanted} rows; {cure}"
