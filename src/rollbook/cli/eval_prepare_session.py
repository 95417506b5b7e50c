"""One `gym eval prepare`: the benchmarks that flags name, prepared and told.

Rules:
* Every benchmark's configuration is read by itself, so that two that use one server's name do not meet.
* Which data set is where goes to standard output; what is being done, and what scripts say, to standard error.

Source: servers.md §8.10, §10.2.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import click
from omegaconf import DictConfig

from rollbook.cli.configuration import notes_on_strays, resolved_configuration, texts
from rollbook.cli.signals import unless_signalled
from rollbook.cli.terminal import note, say, say_json
from rollbook.config.benchmark_preparation import BenchmarkPreparation
from rollbook.config.missing import resolved
from rollbook.config.parser import GlobalConfigDictParserConfig
from rollbook.config.settings import settings_from
from rollbook.report.shapes import VERSION
from rollbook.verbs.prepare_benchmarks import PreparedBenchmark, prepare_benchmarks


def prepare(given: Mapping[str, Any], *, as_json: bool) -> int:
    """Prepare the benchmarks that the flags in `given` name, print what became of each, and return the exit code."""
    names = texts(given["benchmark"])
    if not names and not given["config"]:
        raise click.UsageError("name what to prepare: --benchmark NAME, or --config with a benchmark data set.")
    configs = [_configuration(given, (name,)) for name in names] or [_configuration(given, ())]
    settings = settings_from(BenchmarkPreparation, resolved(configs[0]))
    for text in notes_on_strays(given, configs[0], {*BenchmarkPreparation.model_fields}):
        note(text)
    found = unless_signalled(prepare_benchmarks(configs, settings, note))
    _show(found, as_json=as_json)
    return 1 if any(one.problem for one in found) else 0


def _configuration(given: Mapping[str, Any], names: tuple[str, ...]) -> DictConfig:
    model = GlobalConfigDictParserConfig.NO_MODEL_GLOBAL_CONFIG_DICT
    return resolved_configuration({**given, "benchmark": names}, settings=model, with_agents=False)


def _show(found: Sequence[PreparedBenchmark], *, as_json: bool) -> None:
    if as_json:
        told = [
            {
                "name": one.name,
                "jsonl_fpath": str(one.path),
                "rows": one.rows,
                "cached": one.cached,
                "problem": one.problem or None,
            }
            for one in found
        ]
        say_json(VERSION | {"benchmarks": told})
        return
    for one in found:
        say(f"{'✗' if one.problem else '✓'} {one.name}  {_in_words(one)}")


def _in_words(one: PreparedBenchmark) -> str:
    if one.problem:
        return one.problem.removeprefix(f"{one.name}: ")
    return f"{one.rows} rows, {one.path}" + (", as it was" if one.cached else "")
