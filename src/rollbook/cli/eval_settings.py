"""The settings of one collection: flags and configuration → `RolloutCollectionConfig`, and which rows to run.

Rules:
* The command line's own defaults (as many in flight as pays, failures routed, no results kept in memory) yield to every
  file and override, and do not count as given (`model_fields_set`).
* A split's rows are made ready by the run itself; without it and without `--input`, a served environment's example
  rows are run, and the run says so. Nothing else is guessed.
* What is missing is named by its key and its flag.

Source: collection.md §10; servers.md §10.1.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from omegaconf import DictConfig

from rollbook.api.preparation import SplitPreparation, end_to_end
from rollbook.cli.configuration import given_values, notes_on_strays, texts
from rollbook.config.benchmark_preparation import BenchmarkPreparation
from rollbook.config.collection import RolloutCollectionConfig
from rollbook.config.dataset_preparation import DatasetPreparationConfig
from rollbook.config.instances import server_instances
from rollbook.config.settings import settings_from
from rollbook.errors import ConfigError

SETTING_KEYS: Final = (
    "agent_name",
    "count_failure_classes_as_zero",
    "count_missing_rollouts_as_zero",
    "disable_aggregation",
    "disable_health_check",
    "dispatch_budget_s",
    "drain_margin_s",
    "durability",
    "group_scored",
    "health_check_ignored_checks",
    "health_check_workers",
    "input_jsonl_fpath",
    "interleave_repeats",
    "interrupt_grace_s",
    "limit",
    "min_coverage",
    "num_repeats",
    "num_samples_in_parallel",
    "output_jsonl_fpath",
    "overwrite",
    "prompt_config",
    "require_complete",
    "resubmit",
    "resume_from_cache",
    "retry_for_s",
    "rollout_timeout_s",
    "route_failures_to_sidecar",
    "split",
    "take_over",
    "task_shard",
)
_SAMPLING_KEYS: Final = ("temperature", "top_p", "max_output_tokens")
_DEFAULTS: Final[Mapping[str, object]] = {"route_failures_to_sidecar": True, "retain_results_in_memory": False}
_OF_OTHER_VERSIONS: Final = frozenset(
    {
        "split",
        "reuse_existing_data_preparation",
        "upload_rollouts_to_wandb",
        *BenchmarkPreparation.model_fields,
        *DatasetPreparationConfig.model_fields,
        *RolloutCollectionConfig.removed_options,
    }
)
"""Options that are known here, and are translated, refused or about making rows ready."""
AUTO: Final = "auto"
_CONCURRENCY: Final = "num_samples_in_parallel"
_ADAPTIVE: Final = "adaptive_concurrency"
_CLASSES: Final = "count_failure_classes_as_zero"


def settings_given(given: Mapping[str, object]) -> dict[str, object]:
    """Return the settings that flags set, under their configuration keys."""
    sampling = given_values(given, _SAMPLING_KEYS)
    settings = given_values(given, SETTING_KEYS)
    classes = texts(settings.pop(_CLASSES, ()))
    settings |= {_CLASSES: list(classes)} if classes else {}
    if settings.get(_CONCURRENCY) == AUTO:
        settings |= {_CONCURRENCY: None, _ADAPTIVE: True}
    return settings | ({"responses_create_params": sampling} if sampling else {})


def collection_settings(
    cfg: DictConfig, *, serving: bool
) -> tuple[RolloutCollectionConfig, SplitPreparation | None, tuple[str, ...]]:
    """Return the validated settings of a collection, how a split's rows are made, and notes on what was chosen.

    Raises:
        ConfigError: a setting that is missing or does not validate, or rows that cannot be found.

    """
    merged = with_defaults(cfg)
    notes: tuple[str, ...] = ()
    preparation: SplitPreparation | None = None
    if merged.get("split") is not None:
        _refuse_unserved(str(merged["split"]), serving=serving)
        settings, preparation = end_to_end(merged)
    else:
        if merged.get("input_jsonl_fpath") is None and serving:
            merged["input_jsonl_fpath"], note = example_rows(cfg)
            notes = (note,)
        settings = settings_from(RolloutCollectionConfig, merged)
    settings.model_fields_set.difference_update(merged.keys() - cfg.keys() - {"input_jsonl_fpath"})
    return settings, preparation, notes


def notes_on_typed_keys(given: Mapping[str, object], cfg: DictConfig) -> tuple[str, ...]:
    """Return a note on each key that was typed and that a collection of this configuration does not read."""
    return notes_on_strays(given, cfg, {*RolloutCollectionConfig.model_fields, *_OF_OTHER_VERSIONS})


def with_defaults(cfg: DictConfig) -> DictConfig:
    """Return a copy of `cfg` in which the command line's defaults stand where nothing else does."""
    merged = cfg.copy()
    for key, value in _DEFAULTS.items():
        if key not in merged:
            merged[key] = value
    if merged.get(_CONCURRENCY) is None and _ADAPTIVE not in merged:
        merged[_ADAPTIVE] = True
    return merged


def _refuse_unserved(split: str, *, serving: bool) -> None:
    if not serving and split != "example":
        raise ConfigError(
            f"--split {split} makes the declared data sets ready and serves; leave out --no-serve, or name rows with "
            "--input FILE instead"
        )


def example_rows(cfg: DictConfig) -> tuple[str, str]:
    """Return the path of the only example dataset that the configuration declares, and a note that says so.

    Raises:
        ConfigError: the configuration declares none, or several.

    """
    declared = sorted(set(_example_datasets(cfg)))
    if len(declared) == 1:
        (owner, path) = declared[0]
        return path, f"Input: {path}\n  the example rows of {owner}; name others with --input"
    if not server_instances(cfg):
        raise ConfigError("nothing to run: name an environment (--environment, --resources-server or --config)")
    found = "; ".join(f"{path} ({owner})" for owner, path in declared)
    what = f"several example datasets are declared: {found}" if declared else "no example dataset is declared"
    raise ConfigError(f"{what}; name the rows to run with --input FILE")


def _example_datasets(cfg: DictConfig) -> Iterator[tuple[str, str]]:
    for instance in server_instances(cfg):
        for dataset in instance.datasets:
            if dataset.type == "example":
                yield instance.name, str(dataset.jsonl_fpath)
