"""The benchmarks of one `gym eval run`: their split is the one that is run, and their data are prepared where missing.

Rules:
* `--benchmark` runs the split `benchmark` where neither a split nor rows are named.
* Data that are there are taken as they are; what is missing is prepared as `gym eval prepare` does, and told.

Source: servers.md §8.10, §10.2.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from omegaconf import DictConfig

from rollbook.cli.configuration import texts
from rollbook.cli.signals import unless_signalled
from rollbook.cli.terminal import note
from rollbook.config.instances import server_instances
from rollbook.config.roots import resolve_read_path
from rollbook.errors import ConfigError

SPLIT: Final = "benchmark"


def with_benchmark_rows(given: Mapping[str, object], cfg: DictConfig, *, serving: bool) -> DictConfig:
    """Return `cfg` with the split that `--benchmark` asks for; data of that split are there afterwards.

    Raises:
        ConfigError: data that cannot be prepared; says what to type.

    """
    names_rows = cfg.get("split") is not None or cfg.get("input_jsonl_fpath") is not None
    if serving and texts(given.get("benchmark")) and not names_rows:
        cfg = cfg.copy()
        cfg["split"] = SPLIT
    if serving and cfg.get("split") == SPLIT and _is_missing(cfg):
        _prepare(cfg, texts(given.get("benchmark")))
    return cfg


def _is_missing(cfg: DictConfig) -> bool:
    paths = [one.jsonl_fpath for instance in server_instances(cfg) for one in instance.datasets if one.type == SPLIT]
    return any(not resolve_read_path(path, Path.is_file).is_file() for path in paths)


def _prepare(cfg: DictConfig, names: tuple[str, ...]) -> None:
    from rollbook.config.benchmark_preparation import BenchmarkPreparation  # noqa: PLC0415  paid where data are missing
    from rollbook.config.settings import settings_from  # noqa: PLC0415  the same
    from rollbook.verbs.prepare_benchmarks import prepare_benchmarks  # noqa: PLC0415  the same

    asked = settings_from(BenchmarkPreparation, cfg)
    settings = asked.model_copy(update={"use_cached_prepared_benchmarks": True})
    found = unless_signalled(prepare_benchmarks([cfg], settings, note))
    problems = [f"{one.name}: {one.problem.removeprefix(f'{one.name}: ')}" for one in found if one.problem]
    if problems:
        named = "".join(f" --benchmark {name}" for name in names)
        raise ConfigError("\n".join([*problems, f"Prepare by itself what is missing: gym eval prepare{named}"]))
    for one in found:
        if not one.cached:
            note(f"{one.name} is prepared: {one.rows} rows, {one.path}")
