"""One `gym dataset …` that works on a configuration's data sets or on the hub, from its flags to what it prints.

Rules:
* Paths and counts go to standard output, notes to standard error; a token to neither.

Source: servers.md §8.9, §10.2.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import click
from msgspec import to_builtins

from rollbook.cli.configuration import given_values, resolved_configuration
from rollbook.cli.dataset_gitlab import refuse_gitlab
from rollbook.cli.terminal import note, say, say_json
from rollbook.config.dataset_commands import CollateConfig, DownloadConfig, UploadConfig
from rollbook.config.hub_token import get_hf_token
from rollbook.config.parser import GlobalConfigDictParserConfig
from rollbook.config.roots import require_read_path
from rollbook.config.settings import settings_from
from rollbook.errors import ConfigError
from rollbook.inputs.jsonl import read_source_rows
from rollbook.verbs.collate import TYPES_OF_MODE, CollateRequest, collate
from rollbook.verbs.hub import Fetched, Hub, Publication

_COLLATE: Final = (
    *("mode", "output_dirpath", "overwrite", "overwrite_metrics_conflicts", "should_download"),
    "task_data_validation",
)
_DOWNLOAD: Final = ("artifact_fpath", "output_dirpath", "output_fpath", "overwrite", "repo_id", "revision", "split")
_UPLOAD: Final = (
    *("commit_description", "commit_message", "create_pr", "dataset_name", "input_jsonl_fpath", "private"),
    *("revision", "split"),
)


def collate_datasets(given: Mapping[str, Any], *, as_json: bool) -> None:
    """Make the data sets of a configuration ready, and say what was written; no model is asked, not even a judge."""
    settings = {**GlobalConfigDictParserConfig.NO_MODEL_GLOBAL_CONFIG_DICT, **given_values(given, _COLLATE)}
    cfg = resolved_configuration(given, settings=settings, with_agents=False)
    config = settings_from(CollateConfig, cfg)
    token = _token(cfg.get("hf_token"))
    collated = collate(
        cfg,
        CollateRequest(
            TYPES_OF_MODE[config.mode],
            Path(config.output_dirpath),
            config.task_data_validation,
            overwrite=config.overwrite,
            overwrite_conflicts=config.overwrite_metrics_conflicts,
            fetch=(lambda *asked: Hub(token).fetch_source(*asked)) if config.should_download else None,
        ),
    )
    for text in collated.notes:
        note(text)
    if as_json:
        say_json(to_builtins(collated, enc_hook=str))
        return
    for made in collated.types:
        sets = ", ".join(f"{one.name}: {one.rows}" + _times(one.num_repeats) for one in made.datasets)
        say(f"{made.path}: {made.rows} rows ({sets}); metrics in {made.metrics}")


def download_dataset(given: Mapping[str, Any], *, as_json: bool) -> None:
    """Fetch a file, a split or every file of rows of a data set from the hub, and say where it is."""
    if given.get("storage") == "gitlab":
        refuse_gitlab("fetch the file from GitLab, or use --storage hf with --repo-id OWNER/NAME.")
    if given.get("dataset_name") is not None:
        raise click.UsageError(
            "--name is about GitLab registries; name a data set of the hub with --repo-id OWNER/NAME."
        )
    cfg = resolved_configuration(given, settings=given_values(given, _DOWNLOAD))
    config = settings_from(DownloadConfig, cfg)
    fetched = _fetch(Hub(_token(config.hf_token)), config)
    if as_json:
        say_json(to_builtins(fetched, enc_hook=str))
        return
    for one in fetched:
        say(f"{one.output}: {', '.join(one.files)} of {config.repo_id} at {one.commit}")


def upload_dataset(given: Mapping[str, Any], *, as_json: bool) -> None:
    """Publish rows on the hub, and say where they are to be seen."""
    if given.get("storage") == "gitlab":
        refuse_gitlab("publish on the Hugging Face hub (--storage hf), or upload the file in GitLab.")
    cfg = resolved_configuration(given, settings=given_values(given, _UPLOAD))
    config = settings_from(UploadConfig, cfg)
    rows = require_read_path(config.input_jsonl_fpath, "file of rows")
    count = sum(1 for _ in read_source_rows(rows))
    published = Hub(_token(config.hf_token)).publish(
        rows,
        Publication(
            _repo_of(config),
            f"{config.split}.jsonl" if config.split else rows.name,
            config.revision,
            private=config.private,
            create_pr=config.create_pr,
            message=config.commit_message,
            description=config.commit_description,
            collection=config.hf_collection_slug,
        ),
    )
    if as_json:
        say_json(to_builtins(published) | {"rows": count})
    else:
        say(f"{published.repo_id}: {published.name}, {count} row{'s'[: count != 1]}: {published.url}")


def _fetch(hub: Hub, config: DownloadConfig) -> list[Fetched]:
    output, overwrite = _output_of(config), config.overwrite
    if config.artifact_fpath is not None:
        return [hub.fetch_artifact(config.repo_id, config.artifact_fpath, output, config.revision, overwrite=overwrite)]
    if config.split is not None:
        return [hub.fetch_split(config.repo_id, config.split, output, config.revision, overwrite=overwrite)]
    if config.output_fpath is not None:
        raise click.UsageError("--output is one file: say which with --artifact FILE or --split SPLIT.")
    return hub.fetch_all(config.repo_id, output, config.revision, overwrite=overwrite)


def _output_of(config: DownloadConfig) -> Path:
    """Return the file to write, or the folder where neither a file nor a split is named."""
    if (config.output_fpath is None) == (config.output_dirpath is None):
        raise click.UsageError("say where it goes: --output FILE or --output-dir DIR.")
    if config.artifact_fpath is not None and config.split is not None:
        raise click.UsageError("--artifact and --split exclude each other.")
    if config.output_fpath is not None:
        return Path(config.output_fpath)
    folder = Path(str(config.output_dirpath))
    if config.artifact_fpath is not None:
        return folder / Path(config.artifact_fpath).name
    return folder if config.split is None else folder / f"{config.split}.jsonl"


def _repo_of(config: UploadConfig) -> str:
    """Return OWNER/NAME: as it was given, or made of the organization, the prefix and the name."""
    if "/" in config.dataset_name:
        return config.dataset_name
    if config.hf_organization is None:
        raise ConfigError(
            f"whose data set is `{config.dataset_name}`? Give --name OWNER/NAME, or set hf_organization in env.yaml"
        )
    prefix = f"{config.hf_dataset_prefix}-" if config.hf_dataset_prefix else ""
    return f"{config.hf_organization}/{prefix}{config.dataset_name}"


def _token(configured: object) -> str | None:
    return str(configured) if configured else get_hf_token()


def _times(repeats: int) -> str:
    return f", {repeats} times each" if repeats > 1 else ""
