"""A component's own tests, run where the component runs: its interpreter, its folder, the roots on the import path.

Rules:
* A suite is a process of its own, so that suites whose modules have the same names do not meet.
* The folder is left as it was: no cache of pytest, no compiled files.
* What a suite came to is counted from pytest's own report; a suite that leaves none is an error, and no zero.
* A suite that pytest did not run to its end is not whole, whatever passed until then.

Source: servers.md §10.2, §13.1.
"""

import asyncio
import os
import signal
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final
from xml.etree import ElementTree as ET

import msgspec

from rollbook.config.roots import search_roots
from rollbook.records.json_values import JsonObject
from rollbook.servers.serving.child_process import entered, log_tail, signal_group

_TESTS: Final = "tests"
_NO_MODULE: Final = "No module named pytest"
_SOME_FAILED: Final = 1
_ATTRIBUTES: Final = ("tests", "failures", "errors", "skipped")


class SuiteRun(msgspec.Struct, frozen=True):
    """What a component's tests came to.

    `problem` says why they could not be run, or not to their end; `untested` that there are none, `lacking` that
    packages which the component needs are missing here. `data` says what is wrong with its example data, where that
    was asked for.
    """

    component: str
    passed: int = 0
    failed: int = 0
    errors: int = 0
    skipped: int = 0
    problem: str = ""
    tail: str = ""
    untested: bool = False
    lacking: bool = False
    data: tuple[str, ...] = ()

    @property
    def whole(self) -> bool:
        """Whether there were tests and all of them passed or were skipped."""
        return not (self.problem or self.failed or self.errors or self.data)

    @property
    def counts(self) -> str:
        """The numbers, in words."""
        told = {
            "passed": self.passed,
            "failed": self.failed,
            "errors": self.errors,
            "skipped": self.skipped,
        }
        return ", ".join(f"{count} {word}" for word, count in told.items() if count or word == "passed")

    def as_json(self) -> JsonObject:
        """Return it as a report holds it."""
        return {**msgspec.to_builtins(self), "whole": self.whole}


async def run_suites(
    folders: Sequence[Path],
    pythons: Mapping[Path, Path],
    tell: Callable[[SuiteRun], None],
    check: Callable[[Path], tuple[str, ...]],
) -> tuple[SuiteRun, ...]:
    """Run the tests of each component, one after the other; `tell` is told each as it ends.

    `pythons` has the interpreters of those that have one of their own; `check` returns what is wrong with its data.
    """
    runs: list[SuiteRun] = []
    for folder in folders:
        run = await run_suite(folder, pythons.get(folder))
        runs.append(msgspec.structs.replace(run, data=check(folder)))
        tell(runs[-1])
    return tuple(runs)


async def run_suite(folder: Path, python: Path | None = None) -> SuiteRun:
    """Run the tests of the component in `folder` under `python`, or else the interpreter that runs us."""
    component = f"{folder.parent.name}/{folder.name}"
    if not _has_tests(folder):
        return SuiteRun(component, problem=f"there are no tests: no {folder / _TESTS}/test_*.py", untested=True)
    with tempfile.TemporaryDirectory(prefix="rollbook-suite-") as scratch:
        report, log = Path(scratch, "report.xml"), Path(scratch, "output.log")
        code = await _run(_command(python, folder, report), folder, python, log)
        return _counted(component, report, log_tail(log), code)


def _has_tests(folder: Path) -> bool:
    return any((folder / _TESTS).rglob("test_*.py")) or any((folder / _TESTS).rglob("*_test.py"))


def _command(python: Path | None, folder: Path, report: Path) -> list[str]:
    options = ["-q", "--tb=short", "-p", "no:cacheprovider", "--rootdir", str(folder), "--import-mode=prepend"]
    settings = ["-o", "asyncio_mode=auto", "-o", "addopts="]
    return [str(python or sys.executable), "-m", "pytest", _TESTS, *options, *settings, f"--junitxml={report}"]


async def _run(command: Sequence[str], folder: Path, python: Path | None, log: Path) -> int:
    """Run a command to its end; who is cancelled meanwhile ends it."""
    with log.open("wb") as output:
        process = await asyncio.create_subprocess_exec(
            *command,
            cwd=folder,
            env=suite_environment(python),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=output,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        return await process.wait()
    except asyncio.CancelledError:
        signal_group(process.pid, signal.SIGKILL)
        await process.wait()
        raise


def suite_environment(python: Path | None) -> dict[str, str]:
    """Return the environment of a suite: the roots on the import path, and no compiled files in its folder."""
    inherited = [entry for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry]
    path = os.pathsep.join(dict.fromkeys([*map(str, search_roots()), *inherited]))
    return {**os.environ, **entered(python), "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}


def _counted(component: str, report: Path, tail: str, code: int) -> SuiteRun:
    """Return what pytest's report says, and whether it speaks of the whole suite."""
    totals = _totals(report)
    if totals is None:
        problem = f"pytest ended with exit code {code} and left no report"
        if _NO_MODULE in tail:
            problem = "pytest is not installed where the component runs; run: pip install pytest pytest-asyncio"
        return SuiteRun(component, problem=problem, tail=tail)
    passed = totals["tests"] - totals["failures"] - totals["errors"] - totals["skipped"]
    shown = tail if code else ""
    run = SuiteRun(component, passed, totals["failures"], totals["errors"], totals["skipped"], tail=shown)
    return msgspec.structs.replace(run, problem=_unfinished(run, totals["tests"], code))


def _totals(report: Path) -> dict[str, int] | None:
    """Return the sums of pytest's report; None where there is none, or not all of one."""
    try:
        suites = list(ET.parse(report).getroot().iter("testsuite"))  # noqa: S314  pytest wrote it just now
    except (FileNotFoundError, ET.ParseError):
        return None
    return {name: sum(int(suite.get(name, 0)) for suite in suites) for name in _ATTRIBUTES}


def _unfinished(run: SuiteRun, tests: int, code: int) -> str:
    """Return why a suite is not told by its counts; empty when it is."""
    if not tests:
        return f"pytest found no test (exit code {code})"
    failing = bool(run.failed or run.errors)
    if code == 0 or (code == _SOME_FAILED and failing):
        return ""
    return f"pytest ended with exit code {code} before its end; until then: {run.counts}"
