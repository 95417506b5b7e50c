"""Data sets that a configuration declares → one file of rows a type, ready to be collected or trained on.

Rules:
* Everything is checked before anything is in place: files appear whole and together, or nothing changes.
* Rows stream from the data sets to the file; memory does not follow their number.
* What is missing is downloaded only where that was asked for, and told with what to type otherwise.
* The file of a data set is never written to.
* What an earlier collation wrote is written anew; another file of that name stays, unless it is to be replaced.

Source: servers.md §8.9.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Final, Literal

import msgspec
from omegaconf import DictConfig

from rollbook.config.datasets import BenchmarkDatasetConfig, DatasetConfig, HuggingFaceSource
from rollbook.config.declared_datasets import DeclaredDataset, datasets_of
from rollbook.config.roots import resolve_read_path
from rollbook.errors import ConfigError, ConfigPathNotFoundError, InputError
from rollbook.ledger.digests import HashedFile
from rollbook.ledger.whole_file import WholeFile, made_aside
from rollbook.records.codec import encode
from rollbook.records.json_values import JsonObject
from rollbook.verbs.collate_dataset import DatasetRows, Validation
from rollbook.verbs.collate_metrics import (
    conflict,
    conflict_path,
    headed,
    is_collated,
    save_metrics,
    told_conflict,
    told_digest,
    told_metrics,
)
from rollbook.verbs.collated import (
    Collated,
    CollatedDataset,
    CollatedType,
    collated_files,
    digest_path,
    metrics_path,
)
from rollbook.verbs.dataset_metrics import DatasetMetrics
from rollbook.verbs.output_file import output_file

Mode = Literal["train_preparation", "example_validation"]
TYPES_OF_MODE: Final = {
    "train_preparation": ("train", "validation", "benchmark"),
    "example_validation": ("example",),
}
Fetch = Callable[[HuggingFaceSource, str, Path], None]
"""(where from, the type of the data set, where to) → the file is there, whole."""
_ROWS_AT_ONCE: Final = 1000


def _go_on() -> None:
    """Nobody wants to stop."""


class CollateRequest(msgspec.Struct, frozen=True):
    """What to collate: data sets of these types, into files of `folder` that bear the types' names.

    `fetch` downloads what is missing; None leaves that to people. `beside` writes the metrics of each data set beside
    it as well. `overwrite` replaces files of `folder` that no collation wrote. `prompt_config` takes the place of the
    data sets' own prompts. `go_on` is called every now and then, and raises to stop.
    """

    types: tuple[str, ...]
    folder: Path
    validation: Validation = "auto"
    overwrite_conflicts: bool = False
    beside: bool = True
    prompt_config: str | None = None
    fetch: Fetch | None = None
    overwrite: bool = False
    go_on: Callable[[], None] = _go_on


def collate(cfg: DictConfig, request: CollateRequest) -> Collated:
    """Write the rows of the declared data sets, checked and stamped, and what they amount to.

    Raises:
        ConfigError: no such data set, or metrics that contradict the ones beside a data set (they are left beside it).
        ConfigPathNotFoundError: data that are not there, all of them.
        InputError: rows at fault, of all data sets, or a place that is taken by no file; nothing was written.
        OutputExistsError: a file that no collation wrote is where one would be written.

    """
    declared = tuple(one.with_prompt(request.prompt_config) for one in datasets_of(cfg, request.types))
    files = _files(declared, request)
    for kind in dict.fromkeys(one.entry.type for one in declared):
        _refuse_foreign(request.folder / f"{kind}.jsonl", replaces=request.overwrite)
    with ExitStack() as stack:
        work = _Collation(cfg, request, files, stack)
        made = [work.made(kind) for kind in request.types if any(one.entry.type == kind for one in declared)]
        work.refuse_faults()
        work.add_beside()
        for making in work.making:
            making.seal()
        for making in work.making:
            making.place()
        work.forget_conflicts()
    return Collated(tuple(made), tuple(work.notes))


class _Collation:
    """One collation under way: files in the making, and what was found so far."""

    def __init__(
        self, cfg: DictConfig, request: CollateRequest, files: list[tuple[DeclaredDataset, Path]], stack: ExitStack
    ) -> None:
        self._cfg, self._request, self._files, self._stack = cfg, request, files, stack
        self.making: list[WholeFile] = []
        self.notes: list[str] = []
        self._problems: list[str] = []
        self._found: list[tuple[Path, JsonObject]] = []

    def made(self, kind: str) -> CollatedType:
        """Make the file of a type and its metrics, aside."""
        path = self._request.folder / f"{kind}.jsonl"
        files = [(declared, file) for declared, file in self._files if declared.entry.type == kind]
        making = HashedFile(self._aside(path).file)
        totals = self._stack.enter_context(closing(DatasetMetrics())) if len(files) > 1 else None
        datasets: list[CollatedDataset] = []
        metrics: JsonObject = {}
        for declared, file in files:
            first = sum(one.rows for one in datasets)
            rows, metrics = self._written(
                DatasetRows(self._cfg, declared, file, self._request.validation), making, first, totals
            )
            datasets.append(
                CollatedDataset(
                    declared.entry.name,
                    declared.instance,
                    file,
                    rows,
                    declared.entry.num_repeats,
                    declared.entry.prompt_config,
                )
            )
        self._aside(metrics_path(path)).file.write(told_metrics(metrics if totals is None else totals.told()))
        self._aside(digest_path(path)).file.write(told_digest(path, making.sha256))
        written = sum(one.rows * one.num_repeats for one in datasets)
        return CollatedType(kind, path, metrics_path(path), written, tuple(datasets))

    def _written(
        self, dataset: DatasetRows, making: HashedFile, first: int, totals: DatasetMetrics | None
    ) -> tuple[int, JsonObject]:
        entry, count = dataset.declared.entry, 0
        with closing(dataset.metrics):
            try:
                for count, row in enumerate(dataset.rows(first, totals), start=1):
                    making.write((encode(row) + b"\n") * entry.num_repeats)
                    if count % _ROWS_AT_ONCE == 0:
                        self._request.go_on()
            except InputError as error:
                self._problems.append(str(error))
            metrics = dataset.metrics.told()
        self._problems += dataset.problems
        self.notes += dataset.notes
        self._found.append((dataset.path, headed(entry, metrics)))
        return count, metrics

    def refuse_faults(self) -> None:
        """Refuse rows at fault, and then rows that are not what their metrics say."""
        if self._problems:
            raise InputError("\n".join(["rows that cannot be collated:", *self._problems]))
        of_own_prompts = self._request.prompt_config is None
        told = list(self._conflicts()) if of_own_prompts and not self._request.overwrite_conflicts else []
        if told:
            raise ConfigError("\n".join(told))

    def _conflicts(self) -> Iterator[str]:
        for rows, metrics in self._found:
            names = conflict(rows, metrics)
            if names:
                kept = conflict_path(rows if self._request.beside else self._request.folder / rows.name)
                save_metrics(kept, metrics)
                yield told_conflict(rows, kept, names)

    def add_beside(self) -> None:
        """Make the metrics of every data set beside it, aside, where they are not there or are to be replaced."""
        for rows, metrics in self._beside().items():
            path = metrics_path(rows)
            output_file(conflict_path(rows), replaces=True)
            if self._request.overwrite_conflicts or not path.exists():
                self._aside(path).file.write(told_metrics(metrics))

    def forget_conflicts(self) -> None:
        """Remove what was found earlier to contradict the metrics of data sets."""
        for rows in self._beside():
            conflict_path(rows).unlink(missing_ok=True)

    def _beside(self) -> dict[Path, JsonObject]:
        """Return what is told beside data sets: of one that stands there twice, as it is declared first."""
        return dict(reversed(self._found)) if self._request.beside else {}

    def _aside(self, path: Path) -> WholeFile:
        """Return a file in the making that is put in place with the others.

        Raises:
            InputError: its place is taken by something that is no file.

        """
        making = self._stack.enter_context(made_aside(output_file(path, replaces=True)))
        self.making.append(making)
        return making


def _refuse_foreign(rows: Path, *, replaces: bool) -> None:
    """Refuse to write over rows, or metrics, that no collation wrote.

    Raises:
        InputError, OutputExistsError: they are there.

    """
    replaces = replaces or is_collated(rows)
    for path in collated_files(rows):
        output_file(path, replaces=replaces)


def _files(declared: tuple[DeclaredDataset, ...], request: CollateRequest) -> list[tuple[DeclaredDataset, Path]]:
    """Return the file of every data set, downloaded where it is not there and that was asked for.

    Raises:
        ConfigPathNotFoundError: files that are not there; tells of each how it comes to be there.
        InputError: a file that the collation would write.

    """
    files, missing = [], []
    written = {
        request.folder / f"{kind}{end}"
        for kind in request.types
        for end in (".jsonl", "_metrics.json", ".jsonl.sha256")
    }
    for one in declared:
        path = resolve_read_path(one.entry.jsonl_fpath, Path.is_file)
        if not path.is_file():
            path = Path.cwd() / one.entry.jsonl_fpath
            missing += _got(one.entry, path, request.fetch)
        if {path.resolve(), metrics_path(path).resolve()} & {file.resolve() for file in written}:
            raise InputError(f"{path} of {one} would be written to; collate into another folder (--output-dir)")
        files.append((one, path))
    if missing:
        raise ConfigPathNotFoundError("\n".join(missing))
    return files


def _got(entry: DatasetConfig | BenchmarkDatasetConfig, path: Path, fetch: Fetch | None) -> list[str]:
    """Download a file that is not there; return what to do about it where that cannot be done."""
    what = f"the {entry.type} data set `{entry.name}` is not at {entry.jsonl_fpath}"
    if isinstance(entry, BenchmarkDatasetConfig) or (entry.source is None and entry.prepare_script is not None):
        return [f"{what}; {entry.prepare_script} writes it: gym eval prepare"]
    if entry.source is None:
        return [f"{what}, and nothing says where it comes from; put the file there or name its `source`"]
    if not isinstance(entry.source, HuggingFaceSource):
        named = f"{entry.source.artifact_fpath} of `{entry.source.dataset_name}` {entry.source.version}"
        cure = "put the file there, or give it a `source` of type huggingface"
        return [f"{what}; it is {named} in a GitLab registry, which is not read here: {cure}"]
    if fetch is None:
        return [f"{what}; it is on the Hugging Face hub, {entry.source.repo_id}: add --download (should_download=true)"]
    fetch(entry.source, entry.type, path)
    return []
