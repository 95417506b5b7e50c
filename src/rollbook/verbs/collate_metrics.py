"""The metrics file beside a data set: what its rows came to, held against what the file says already.

Rules:
* The head of the file repeats the data set's entry; only what the rows came to is compared.
* A file that says otherwise stays, and what was found goes beside it; it is replaced where that was asked for.
* A collation's rows have their digest beside them: rows that are others are not for a collation to replace.
* A file that tells of no rows, and a `Median` that earlier versions wrote, say nothing to compare.

Source: servers.md §8.9.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import msgspec

from rollbook.config.datasets import BenchmarkDatasetConfig, DatasetConfig
from rollbook.errors import ConfigError
from rollbook.ledger.digests import sha256_of
from rollbook.ledger.whole_file import whole_file
from rollbook.records.json_values import JsonMapping, JsonObject
from rollbook.verbs.collated import digest_path, metrics_path
from rollbook.verbs.dataset_metrics import COUNT
from rollbook.verbs.output_file import output_file

_HEAD: Final = ("name", "type", "jsonl_fpath", "num_repeats", "source", "gitlab_identifier", "huggingface_identifier")
_HEAD_OF_DATA: Final = (*_HEAD, "license")
_HEAD_OF_BENCHMARK: Final = ("name", "type", "jsonl_fpath", "prepare_script", "prompt_config", "num_repeats")
_NOT_COMPARED: Final = frozenset({*_HEAD_OF_DATA, *_HEAD_OF_BENCHMARK})
_DIGITS: Final = 64
_EARLIER: Final = "Median"
_LISTED: Final = 8


def conflict_path(rows: Path) -> Path:
    """Return where metrics go that contradict those of a file of rows."""
    return rows.with_name(f"{rows.stem}_metrics_conflict.json")


def headed(entry: DatasetConfig | BenchmarkDatasetConfig, metrics: JsonObject) -> JsonObject:
    """Return the metrics below what the data set's entry says of it."""
    names = _HEAD_OF_BENCHMARK if isinstance(entry, BenchmarkDatasetConfig) else _HEAD_OF_DATA
    said = entry.model_dump(mode="json")
    return {name: said.get(name) for name in names} | {k: v for k, v in metrics.items() if k not in names}


def metric_differences(saved: JsonMapping, found: JsonMapping) -> tuple[str, ...]:
    """Return the names of metrics that differ."""
    if saved.get(COUNT) == 0:
        return ()
    old, new = dict(_compared(saved)), dict(_compared(found))
    return tuple(name for name in dict.fromkeys([*old, *new]) if old.get(name) != new.get(name))


def save_metrics(path: Path, metrics: JsonObject) -> None:
    """Write metrics, whole or not at all."""
    with whole_file(output_file(path, replaces=True)) as file:
        file.write(told_metrics(metrics))


def told_digest(rows: Path, sha256: str) -> bytes:
    """Return the digest of a file of rows as its file holds it, which is as `sha256sum` writes and checks it."""
    return f"{sha256}  {rows.name}\n".encode()


def is_collated(rows: Path) -> bool:
    """Whether a file of rows is as a collation wrote it, or was written by one and is gone."""
    try:
        digest = digest_path(rows).read_text().partition(" ")[0]
        written = len(digest) == _DIGITS and digest_path(rows).read_bytes() == told_digest(rows, digest)
        return written and (not rows.exists() or (rows.is_file() and sha256_of(rows) == digest))
    except (OSError, UnicodeDecodeError):
        return False


def told_metrics(metrics: JsonObject) -> bytes:
    """Return metrics as their file holds them."""
    return json.dumps(metrics, indent=4, ensure_ascii=False, allow_nan=False).encode() + b"\n"


def conflict(rows: Path, found: JsonObject) -> tuple[str, ...]:
    """Return the names in which what was found differs from the metrics beside `rows`; without such a file, none.

    Raises:
        ConfigError: the file holds no metrics.

    """
    path = metrics_path(rows)
    try:
        saved = msgspec.json.decode(path.read_bytes(), type=JsonObject)
    except FileNotFoundError:
        return ()
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} holds no metrics ({error}); remove it to have it made anew") from error
    return metric_differences(saved, found)


def told_conflict(rows: Path, kept: Path, names: tuple[str, ...]) -> str:
    """Say that rows are not what their metrics file says, and what to do about it."""
    more = f", and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    where = f"{rows} is not what {metrics_path(rows)} says of it, in: {', '.join(names[:_LISTED])}{more}"
    cure = "Put the right rows back, or replace the metrics with ++overwrite_metrics_conflicts=true"
    return f"{where}. What was found is in {kept}. {cure}"


def _compared(metrics: JsonMapping) -> Iterator[tuple[str, object]]:
    for name, value in metrics.items():
        if name not in _NOT_COMPARED:
            yield name, {k: v for k, v in value.items() if k != _EARLIER} if isinstance(value, Mapping) else value
