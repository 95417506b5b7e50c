"""Benchmarks' data sets, written by their prepare scripts: checked all, then run, each in a process of its own.

Rules:
* Every script, its arguments and its packages are looked at before the first of them runs.
* What a script returns is where a run will read, and what is there can be run; anything else is an error.
* One that fails keeps none of the others from being prepared.
* Whoever is cancelled ends the scripts under way; they are given a moment to take away what they began.

Source: servers.md §8.10.
"""

import asyncio
import json
import signal
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec
from omegaconf import DictConfig

from rollbook.config.benchmark_preparation import BenchmarkPreparation
from rollbook.config.datasets import BenchmarkDatasetConfig
from rollbook.config.declared_datasets import datasets_of
from rollbook.config.roots import require_read_path, resolve_read_path
from rollbook.errors import ConfigError, RollbookError
from rollbook.inputs.jsonl import read_source_rows
from rollbook.records.json_values import JsonObject
from rollbook.servers.serving.child_process import signal_group
from rollbook.servers.serving.deployment import Tell
from rollbook.servers.serving.isolated_pythons import pythons_for
from rollbook.servers.serving.isolation import Component, component_with, is_isolated, isolation_of, refuse_unmet
from rollbook.servers.serving.requirements import needs_listed
from rollbook.verbs.benchmark_script import OUTPUT, BenchmarkScript, read_script
from rollbook.verbs.component_suites import suite_environment

_PROGRAM: Final = "rollbook.verbs.run_prepare_script"
_GRACE_SECONDS: Final = 5.0


class PreparedBenchmark(msgspec.Struct, frozen=True):
    """What became of a benchmark's data set: where it is, with how many rows; or else what is wrong.

    `cached` says that it was there before, and taken as it is.
    """

    name: str
    path: Path
    rows: int = 0
    cached: bool = False
    problem: str = ""


class _Benchmark(msgspec.Struct, frozen=True):
    """A data set that is to be prepared, with its script."""

    name: str
    jsonl_fpath: str
    script: BenchmarkScript
    dependencies: tuple[str, ...]

    @property
    def path(self) -> Path:
        """Where a run reads the data set."""
        return resolve_read_path(self.jsonl_fpath, Path.is_file)

    @property
    def target(self) -> str:
        """Where a script is to write the data set."""
        return str(Path(self.jsonl_fpath).absolute())

    def component(self) -> Component:
        """Return the script as a component, with the packages that it asks for."""
        needs = needs_listed(self.script.path.parent, self.dependencies)
        return component_with(msgspec.structs.replace(needs, field_names=self.script.field_names or needs.field_names))


async def prepare_benchmarks(
    configs: Sequence[DictConfig], settings: BenchmarkPreparation, tell: Tell
) -> tuple[PreparedBenchmark, ...]:
    """Prepare the benchmark data sets that the configurations declare, in their order.

    Raises:
        ConfigError: none is declared, or a script, its arguments or a prompt is at fault; no script has run.
        MissingPackageError: packages that scripts ask for are missing, and isolation was not asked for.
        ServingError: an environment cannot be made.

    """
    benchmarks = list(_declared(configs))
    kept = {one.jsonl_fpath for one in benchmarks if settings.use_cached_prepared_benchmarks and one.path.is_file()}
    wanted = [one for one in benchmarks if one.jsonl_fpath not in kept]
    _refuse_arguments(wanted, settings.prepare_script_args)
    pythons = await _pythons(configs[0], wanted, tell)
    places = asyncio.Semaphore(settings.num_prepare_benchmark_processes)
    async with asyncio.TaskGroup() as group:
        running = {
            one.jsonl_fpath: group.create_task(_prepared(one, settings.prepare_script_args, pythons, places, tell))
            for one in wanted
        }
    return tuple(running[one.jsonl_fpath].result() if one in wanted else _cached(one) for one in benchmarks)


def _declared(configs: Sequence[DictConfig]) -> Iterator[_Benchmark]:
    """Yield every declared benchmark data set once, with its script read; all that is at fault is told at once."""
    seen: dict[str, _Benchmark] = {}
    problems: list[str] = []
    for cfg in configs:
        for declared in datasets_of(cfg, ("benchmark",)):
            entry = declared.entry
            if not isinstance(entry, BenchmarkDatasetConfig) or entry.jsonl_fpath in seen:
                continue
            try:
                if entry.prompt_config is not None:
                    require_read_path(entry.prompt_config, f"prompt template of {entry.name}")
                script = read_script(str(entry.prepare_script))
                found = _Benchmark(entry.name, entry.jsonl_fpath, script, tuple(entry.prepare_dependencies))
                seen[entry.jsonl_fpath] = found
            except ConfigError as error:
                problems.append(f"{entry.name}: {error}")
    if problems:
        raise ConfigError("\n".join(problems))
    yield from seen.values()


def _refuse_arguments(benchmarks: Sequence[_Benchmark], arguments: Mapping[str, object]) -> None:
    problems = [f"{one.name}: {words}" for one in benchmarks if (words := one.script.refused([*arguments]))]
    if problems:
        raise ConfigError("\n".join(problems))


async def _pythons(cfg: DictConfig, benchmarks: Sequence[_Benchmark], tell: Tell) -> dict[Path, Path]:
    """Return the interpreters of the scripts that have one of their own, by folder."""
    components = [one.component() for one in benchmarks]
    refuse_unmet(cfg, components)
    isolation = isolation_of(cfg)
    return await pythons_for(cfg, [one.needs for one in components if is_isolated(one, isolation)], tell)


def _cached(benchmark: _Benchmark) -> PreparedBenchmark:
    return _told(benchmark, benchmark.path, cached=True)


async def _prepared(
    benchmark: _Benchmark,
    arguments: JsonObject,
    pythons: Mapping[Path, Path],
    places: asyncio.Semaphore,
    tell: Tell,
) -> PreparedBenchmark:
    async with places:
        tell(f"preparing {benchmark.name}: {benchmark.script.path}")
        with tempfile.TemporaryDirectory(prefix="rollbook-prepare-") as scratch:
            result = Path(scratch, "result.json")
            code = await _run(benchmark, arguments, pythons.get(benchmark.script.path.parent), result)
            return await asyncio.to_thread(_ended, benchmark, result, code)


def _ended(benchmark: _Benchmark, result: Path, code: int) -> PreparedBenchmark:
    told = json.loads(result.read_bytes()) if result.is_file() else {}
    if "path" in told:
        return _told(benchmark, Path(told["path"]))
    ended = f"{benchmark.script.path} ended with exit code {code}; what it said is above"
    return PreparedBenchmark(benchmark.name, benchmark.path, problem=told.get("error", ended))


async def _run(benchmark: _Benchmark, arguments: JsonObject, python: Path | None, result: Path) -> int:
    """Run the script to its end; who is cancelled meanwhile ends it."""
    process = await asyncio.create_subprocess_exec(
        *(str(python or sys.executable), "-m", _PROGRAM, str(result)),
        env=suite_environment(python),
        stdin=asyncio.subprocess.PIPE,
        stdout=sys.stderr.fileno() if _has_descriptor() else asyncio.subprocess.DEVNULL,
        start_new_session=True,
    )
    asked = {"script": str(benchmark.script.path), OUTPUT: benchmark.target, "arguments": arguments}
    try:
        await process.communicate(json.dumps(asked).encode())
    except asyncio.CancelledError:
        await _end(process)
        raise
    return process.returncode or 0


async def _end(process: asyncio.subprocess.Process) -> None:
    """Interrupt a script and what it started, and kill what goes on after a moment, or when nobody waits any longer."""
    signal_group(process.pid, signal.SIGINT)
    try:
        await asyncio.wait_for(process.wait(), _GRACE_SECONDS)
    except TimeoutError:
        pass
    finally:
        if process.returncode is None:
            signal_group(process.pid, signal.SIGKILL)
    await process.wait()


def _has_descriptor() -> bool:
    try:
        return sys.stderr.fileno() >= 0
    except (OSError, ValueError):
        return False


def _told(benchmark: _Benchmark, returned: Path, *, cached: bool = False) -> PreparedBenchmark:
    """Return what a data set came to, once a run that reads it would read what was returned, and could."""
    path = benchmark.path
    problem, rows = "", 0
    if path.resolve() != returned.resolve():
        problem = (
            f"{benchmark.script.path} returns {returned}, and a run reads {path}; make jsonl_fpath of the data set and "
            "what the script returns the same"
        )
    elif not path.is_file():
        problem = f"{benchmark.script.path} returns {returned}, which is not there"
    else:
        try:
            rows = sum(1 for _ in read_source_rows(path))
        except RollbookError as error:
            problem = str(error)
    return PreparedBenchmark(benchmark.name, path, rows, cached, problem)
