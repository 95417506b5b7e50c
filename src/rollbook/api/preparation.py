"""The rows of a split, made ready beside a run's output before anything is served.

Rules:
* An earlier run at the output is as it was, and its prepared rows are, where this command may not go on with it.
* What rows were made of is written down beside them; rows that are used again are held against it, and what changed
  since is told.
* Whoever asks to stop is heard while rows are made ready; no half file is left.

Source: collection.md §1.2, §10.2; servers.md §8.9, §10.2.
"""

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Final

import msgspec
from omegaconf import DictConfig

from rollbook.api.earlier_files import put_back_left, put_back_unless_settled
from rollbook.config.collection import E2ERolloutCollectionConfig, RolloutCollectionConfig
from rollbook.config.dataset_preparation import DatasetPreparationConfig
from rollbook.config.datasets import HuggingFaceSource
from rollbook.config.hub_token import get_hf_token
from rollbook.config.key_names import HF_TOKEN_KEY_NAME
from rollbook.config.missing import resolved
from rollbook.config.roots import resolve_read_path
from rollbook.config.settings import settings_from
from rollbook.dispatch.stop import Stop
from rollbook.errors import ConfigError, LedgerError, RunStoppedError
from rollbook.ledger.digests import sha256_of
from rollbook.ledger.manifest_store import read_manifest
from rollbook.ledger.run import Run
from rollbook.ledger.whole_file import remove_left, whole_file
from rollbook.verbs.collated import CollatedDataset, collated_files

_FOLDER: Final = "preprocessed_datasets"
_CURE: Final = "to prepare them anew, leave out reuse_existing_data_preparation"
Fetch = Callable[[HuggingFaceSource, str, Path], None]


class SplitPreparation(msgspec.Struct, frozen=True):
    """Which split is made ready, into which file, how, and whether rows that are there already are used again.

    `prompt_config` takes the place of the data sets' own prompts.
    """

    split: str
    path: Path
    config: DatasetPreparationConfig
    reuse: bool = False
    token: str | None = None
    prompt_config: str | None = None

    @property
    def record(self) -> Path:
        """The file that says what the rows were made of."""
        return self.path.with_name(f"{self.split}_preparation.json")

    @property
    def written(self) -> tuple[Path, ...]:
        """The files that are written; none where rows that are there are used again."""
        return () if self.reuse and self.path.is_file() else self.files

    @property
    def files(self) -> tuple[Path, ...]:
        """The rows, what they amount to, and what they were made of."""
        return *collated_files(self.path), self.record


class _MadeOf(msgspec.Struct, frozen=True):
    name: str
    instance: str
    path: str
    num_repeats: int
    rows: int
    sha256: str
    prompt: str | None = None
    prompt_sha256: str | None = None


class _Made(msgspec.Struct, frozen=True):
    """What is written down of rows that were made ready: their digest, and what they were made of."""

    split: str
    sha256: str
    rows: int
    datasets: tuple[_MadeOf, ...]


def end_to_end(
    cfg: DictConfig, e2e: E2ERolloutCollectionConfig | None = None
) -> tuple[RolloutCollectionConfig, SplitPreparation]:
    """Return the settings of the collection that `e2e`, else the configuration, asks for, and how its rows are made.

    Raises:
        ConfigError: a split that is not prepared, rows that are named as well, or settings that do not validate.

    """
    known = dict(resolved(cfg))
    asked = e2e or settings_from(E2ERolloutCollectionConfig, known)
    path = prepared_path(asked.output_jsonl_fpath, asked.split)
    given = asked.model_dump(exclude_unset=True, exclude={"split", "reuse_existing_data_preparation"})
    prompt = known.pop("prompt_config", None)
    settings = settings_from(RolloutCollectionConfig, {**known, **given, "input_jsonl_fpath": str(path)})
    how = settings_from(DatasetPreparationConfig, known)
    reuse = asked.reuse_existing_data_preparation
    token = known.get(HF_TOKEN_KEY_NAME) or get_hf_token()
    return settings, SplitPreparation(
        asked.split, path, how, reuse, None if token is None else str(token), None if prompt is None else str(prompt)
    )


def prepared_path(output: str, split: str) -> Path:
    """Return where the rows of a split lie that a run with `output` collects.

    Raises:
        ConfigError: the output's name has no suffix, so that no folder can have its name without.

    """
    stem = Path(output).with_suffix("")
    if stem == Path(output):
        raise ConfigError(f"the rows of a split go to the folder {stem}; give the output a suffix: {output}.jsonl")
    return stem / _FOLDER / f"{split}.jsonl"


def earlier_rows(
    settings: RolloutCollectionConfig, preparation: SplitPreparation | None, run: Run
) -> AbstractContextManager[Callable[[], None]]:
    """Keep the rows that a run at the output was made of until this command's own plan takes the place of its plan.

    What a command kept that was killed is put back first, where this one may go on with that run or replace it.
    """
    if preparation is None or not run.paths.existing() or not _may_touch(settings, run):
        return put_back_unless_settled(())
    put_back_left(preparation.files, _rows_of(run))
    return put_back_unless_settled(preparation.written)


def _may_touch(settings: RolloutCollectionConfig, run: Run) -> bool:
    """Whether this command may go on with a run at the output, or replace it."""
    return settings.overwrite or (settings.resume_from_cache and run.can_continue)


def _rows_of(run: Run) -> str | None:
    """Return the digest of the rows that the run at the output was made of; None where nothing says it."""
    try:
        manifest = read_manifest(run.paths.manifest)
    except (LedgerError, OSError):
        return None  # told where the run is opened
    return None if manifest is None else manifest.input_sha256


async def prepared(
    cfg: DictConfig, settings: RolloutCollectionConfig, preparation: SplitPreparation, run: Run, stop: Stop
) -> tuple[str, ...]:
    """Make the rows of a split ready, and return what is to be told about them.

    Raises:
        ConfigError: no such data set, or rows that cannot be collected.
        OutputExistsError: the output holds an earlier run that this command may not touch.
        RunStoppedError: somebody asked to stop.

    """
    if not _may_touch(settings, run):
        run.refuse_existing(resuming=settings.resume_from_cache)
    left = threading.Event()

    def go_on() -> None:
        if left.is_set() or stop.asked.is_set():
            raise RunStoppedError(f"stopped before anything was sent: {stop.why}")

    try:
        return await asyncio.to_thread(_prepared, cfg, preparation, go_on)
    finally:
        left.set()


def _prepared(cfg: DictConfig, preparation: SplitPreparation, go_on: Callable[[], None]) -> tuple[str, ...]:
    before = _read(preparation.record)
    path = preparation.path
    if path.parent.is_dir():
        for one in preparation.files:
            remove_left(one)
    if preparation.reuse and path.is_file():
        return (f"Rows: {path}\n  prepared before, and used again", *_changes(preparation, before))
    from rollbook.verbs.collate import CollateRequest, collate  # noqa: PLC0415  a run without a split starts sooner

    config = preparation.config
    request = CollateRequest(
        (preparation.split,),
        path.parent,
        config.task_data_validation,
        overwrite=True,
        overwrite_conflicts=config.overwrite_metrics_conflicts,
        beside=False,
        prompt_config=preparation.prompt_config,
        fetch=_fetching(preparation.token) if config.should_download else None,
        go_on=go_on,
    )
    collated = collate(cfg, request)
    (made,) = collated.types
    parts = tuple(map(_made_of, made.datasets))
    now = _Made(made.type, sha256_of(made.path), made.rows, parts)
    with whole_file(preparation.record) as file:
        file.write(msgspec.json.format(msgspec.json.encode(now)) + b"\n")
    differs = before is not None and before.sha256 != now.sha256
    changed = [f"{path} holds other rows than when it was prepared before"] if differs else []
    return (f"Rows: {path}\n  {made.rows} of {', '.join(one.name for one in parts)}", *collated.notes, *changed)


def _fetching(token: str | None) -> Fetch:
    from rollbook.verbs.hub import Hub  # noqa: PLC0415  asked for where something is missing

    return lambda *asked: Hub(token).fetch_source(*asked)


def _read(record: Path) -> _Made | None:
    """Return what was written down when rows were made ready, or None where nothing can be read."""
    try:
        return msgspec.json.decode(record.read_bytes(), type=_Made)
    except (FileNotFoundError, msgspec.DecodeError, UnicodeDecodeError):
        return None


def _changes(preparation: SplitPreparation, made: _Made | None) -> Iterator[str]:
    """Yield what changed since rows that are used again were made ready."""
    if made is None:
        yield f"nothing says what {preparation.path} was made of ({preparation.record.name} is missing or damaged)"
        return
    if sha256_of(preparation.path) != made.sha256:
        yield f"{preparation.path} was changed since it was prepared; it is used as it is"
    for one in made.datasets:
        if preparation.prompt_config is not None and preparation.prompt_config != one.prompt:
            yield f"the rows of {one.name} were prepared with another prompt than {preparation.prompt_config}; {_CURE}"
        for name, digest in ((one.path, one.sha256), (one.prompt, one.prompt_sha256)):
            if name is not None and _digest_of(name) != digest:
                yield f"{name} changed since rows were prepared of it, or is gone; {_CURE}"


def _made_of(one: CollatedDataset) -> _MadeOf:
    digest = None if one.prompt is None else _digest_of(one.prompt)
    return _MadeOf(
        one.name, one.instance, str(one.path), one.num_repeats, one.rows, sha256_of(one.path), one.prompt, digest
    )


def _digest_of(name: str) -> str | None:
    """Return the digest of a file that is read; None where it is not there."""
    path = resolve_read_path(name, Path.is_file)
    return sha256_of(path) if path.is_file() else None
