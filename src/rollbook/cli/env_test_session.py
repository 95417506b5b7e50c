"""One `gym env test`, from its flags to what it prints.

Rules:
* Suites are told as they end, one line each, the end of its output below one that failed; a sum comes last.
* What may be missing is told before anything runs: it is an error for a component that was named, and of `--all` it
  leaves one out.
* A verifier that needs an environment of its own is checked in it, by the same command.

Source: servers.md §10.2, §8.12.
"""

import os
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import click
import msgspec
from omegaconf import DictConfig

from rollbook.cli.configuration import resolved_configuration, texts
from rollbook.cli.event_loop import in_event_loop
from rollbook.cli.terminal import note, say, say_json
from rollbook.config.catalog import Shelf, named_folder, shelf_entries
from rollbook.config.names import IGNORE_REQUIREMENTS_KEY
from rollbook.errors import ConfigError, MissingPackageError
from rollbook.records.json_values import JsonObject
from rollbook.report.shapes import VERSION
from rollbook.servers.serving.isolated_pythons import pythons_for
from rollbook.servers.serving.isolation import Component, component_in, is_isolated, isolation_of, refuse_unmet
from rollbook.verbs.component_suites import SuiteRun, run_suites
from rollbook.verbs.example_data import example_problems
from rollbook.verbs.verifier_check import VerifierCheck, verifier_check, verifier_named

_SHELVES: Final = {
    "suites_of_resources_servers": Shelf.RESOURCES_SERVER,
    "suites_of_agents": Shelf.AGENT,
    "suites_of_models": Shelf.MODEL,
    "suites_of_benchmarks": Shelf.BENCHMARK,
}
_SERVERS: Final = (Shelf.RESOURCES_SERVER, Shelf.AGENT, Shelf.MODEL, Shelf.ENVIRONMENT_SERVER)
_MISMATCH_KEY: Final = "fail_on_total_and_test_mismatch"
_WITHOUT_EFFECT: Final = "delete_venvs_after_each_test"


def run_tests(given: Mapping[str, Any], *, as_json: bool) -> int:
    """Run the tests that the flags in `given` name, print what they came to, and return the command's exit code."""
    words = texts(given["words"])
    names = [word for word in words if "=" not in word and not word.startswith(("~", "+"))]
    cfg = resolved_configuration(
        {key: given[key] for key in ("search_dir", "isolate")}
        | {"overrides": tuple(w for w in words if w not in names)},
        settings={},
    )
    if cfg.get(_WITHOUT_EFFECT):
        note(f"`{_WITHOUT_EFFECT}` has no effect: environments are shared and kept; gym env prefetch says where.")
    named = tuple(_named(given))
    if len(names) > 1 or bool(names) == bool(named or given["all_servers"]):
        raise click.UsageError(
            "name one environment to have its verifier checked, or --resources-server NAME, --agent-type NAME, "
            "--model-type NAME, --benchmark NAME or --all to have test suites run."
        )
    if names:
        return _check(names[0], given, cfg, as_json=as_json)
    others = [folder for folder in _all_servers(given, cfg) if folder not in named] if given["all_servers"] else []
    return _run(named, others, cfg, as_json=as_json)


def _named(given: Mapping[str, Any]) -> Iterator[Path]:
    """Yield the folders that flags name."""
    for parameter, shelf in _SHELVES.items():
        yield from (named_folder(shelf, name) for name in texts(given[parameter]))


def _all_servers(given: Mapping[str, Any], cfg: DictConfig) -> list[Path]:
    """Return every server's folder, of `--search-dir` alone where it is given: this part, where they are divided."""
    shards, index = int(cfg.get("num_shards") or 1), int(cfg.get("shard_index") or 0)
    if not 0 <= index < shards:
        raise ConfigError(f"`shard_index` is {index}; of {shards} parts it is 0 to {shards - 1}")
    roots = [Path(root).absolute() for root in texts(given["search_dir"])] or None
    entries = [entry for shelf in _SERVERS for entry in shelf_entries(shelf, roots)]
    return [entry.path for entry in entries if (entry.path / "app.py").is_file()][index::shards]


def _run(named: Sequence[Path], others: Sequence[Path], cfg: DictConfig, *, as_json: bool) -> int:
    """Run suites and tell what they came to; of those not named, what cannot be tested is told and fails nothing."""
    told: Callable[[SuiteRun], None] = _silent if as_json else _say_suite
    runs = in_event_loop(_runs(named, others, cfg, told))
    lenient = others and not cfg.get(_MISMATCH_KEY)
    counted = [one for one in runs if not (lenient and (one.untested or one.lacking))]
    whole = all(one.whole for one in counted)
    if as_json:
        say_json(VERSION | {"whole": whole, **_sums(runs), "suites": [one.as_json() for one in runs]})
    else:
        say(_in_sum(runs))
    return 0 if whole else 1


async def _runs(
    named: Sequence[Path], others: Sequence[Path], cfg: DictConfig, told: Callable[[SuiteRun], None]
) -> tuple[SuiteRun, ...]:
    components = [component_in(folder) for folder in named]
    refuse_unmet(cfg, components)
    more, lacking = _with_packages([component_in(folder) for folder in others], cfg)
    components += more
    for one in lacking:
        told(one)
    isolation = isolation_of(cfg)
    needs = [one.needs for one in components if is_isolated(one, isolation)]
    pythons = await pythons_for(cfg, needs, note, for_tests=True)
    if cfg.get("setup_only"):
        return tuple(lacking)
    check = example_problems if cfg.get("should_validate_data") else _unchecked
    ran = await run_suites([one.needs.folder for one in components], pythons, told, check)
    return (*lacking, *ran)


def _with_packages(components: Sequence[Component], cfg: DictConfig) -> tuple[list[Component], list[SuiteRun]]:
    """Return those of `components` that can run as they are to be run, and what is told of the others."""
    able: list[Component] = []
    lacking: list[SuiteRun] = []
    for one in components:
        try:
            refuse_unmet(cfg, [one])
        except MissingPackageError as error:
            lacking.append(SuiteRun(one.needs.component, problem=str(error), lacking=True))
        else:
            able.append(one)
    return able, lacking


def _unchecked(_folder: Path) -> tuple[str, ...]:
    return ()


def _silent(_run: SuiteRun) -> None:
    return


def _say_suite(run: SuiteRun) -> None:
    mark = "✓" if run.whole else "-" if run.untested or run.lacking else "✗"
    say(f"{mark} {run.component}  {run.problem or run.counts}")
    for line in (*run.data, *(run.tail.splitlines() if not run.whole else ())):
        say(f"    {line}")


def _sums(runs: Sequence[SuiteRun]) -> JsonObject:
    return {word: sum(getattr(one, word) for one in runs) for word in ("passed", "failed", "errors", "skipped")}


def _in_sum(runs: Sequence[SuiteRun]) -> str:
    whole, untested = sum(one.whole for one in runs), sum(one.untested for one in runs)
    lacking = sum(one.lacking for one in runs)
    left = len(runs) - whole - untested - lacking
    apart = f", {lacking} without their packages" if lacking else ""
    return f"{len(runs)} suites: {whole} whole, {left} not, {untested} without tests{apart}; " + ", ".join(
        f"{count} {word}" for word, count in _sums(runs).items()
    )


def _check(name: str, given: Mapping[str, Any], cfg: DictConfig, *, as_json: bool) -> int:
    """Check a verifier here, or in the environment of its resources server."""
    verifier = verifier_named(name, given["kind"])
    component = component_in(verifier.folder)
    refuse_unmet(cfg, [component])
    if is_isolated(component, isolation_of(cfg)):
        pythons = in_event_loop(pythons_for(cfg, [component.needs], note))
        return _again(pythons[verifier.folder], name, given, as_json=as_json)
    checked = in_event_loop(verifier_check(verifier, update_expected=given["update_expected"]))
    if as_json:
        say_json(VERSION | checked.as_json())
    else:
        _say_check(checked)
    return 1 if checked.problem else 0


def _again(python: Path, name: str, given: Mapping[str, Any], *, as_json: bool) -> int:
    """Have the same command check the verifier under `python`; what it says goes where this one's words go."""
    flags = ["--json"] * as_json + ["--update-expected"] * given["update_expected"]
    flags += ["--kind", given["kind"]] if given["kind"] else []
    command = [str(python), "-m", "rollbook.cli", "env", "test", name, *flags, f"++{IGNORE_REQUIREMENTS_KEY}=true"]
    return subprocess.run(command, env=dict(os.environ), check=False).returncode  # noqa: S603  our own command


def _say_check(checked: VerifierCheck) -> None:
    for case in checked.cases:
        seen = str(case["error"] or "").partition("\n")[0] or ", ".join(
            f"{reward:g}" for reward in msgspec.convert(case["rewards"], list[float])
        )
        say(f"✓ {case['name']} ({case['kind']}): {seen}")
    if checked.problem:
        say(f"✗ {checked.problem}")
    say(f"{checked.verifier.name}: {'the verifier does what its cases say' if not checked.problem else 'not whole'}")
