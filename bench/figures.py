"""How a figure is taken and shown: medians, wall clock beside CPU time, one line a case.

Rules:
* A limit is measured in the same run as what it limits; on a shared machine CPU time is what can be compared.
* Commands run as installed ones do: with byte code at hand, whatever the surroundings say of writing it.
* A case's line: name, figure, named limit, ratio, ok or OVER. Over every table stand the load average and the
  interpreter with its speed: one that was built without optimisation takes half as long again.
"""

import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

RUNS = 5
_BYTE_CODE = tempfile.TemporaryDirectory(prefix="rollbook-byte-code-")
_ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"} | {
    "PYTHONPYCACHEPREFIX": _BYTE_CODE.name
}
GYM = Path(sys.executable).with_name("gym")
LONG = 20.0
CALLS = 21_891


@dataclass(frozen=True, slots=True)
class Cost:
    """Seconds on the clock, and seconds of CPU."""

    wall: float
    cpu: float

    def __str__(self) -> str:
        return f"{self.wall:7.3f} s ({self.cpu:7.3f} s CPU)"


@dataclass(frozen=True, slots=True)
class Process:
    """What one process came to."""

    cost: Cost
    peak_mb: float
    code: int
    error: str


def cost_of(work: Callable[[], object]) -> Cost:
    """Return what a call costs in this process."""
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return Cost(time.perf_counter() - wall, time.process_time() - cpu)


def run(*command: str, folder: Path | None = None, output: Path | None = None) -> Process:
    """Return what one process costs from start to exit; what it prints goes to the file `output`."""
    started = time.perf_counter()
    with (
        (output or Path(os.devnull)).open("wb") as printed,
        subprocess.Popen(
            command, cwd=folder, env=_ENVIRONMENT, stdout=printed, stderr=subprocess.PIPE, text=True
        ) as process,
    ):
        error = process.stderr.read() if process.stderr else ""
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    wall = time.perf_counter() - started
    return Process(Cost(wall, used.ru_utime + used.ru_stime), used.ru_maxrss / 1024, process.returncode, error)


def median(costs: Iterable[Cost]) -> Cost:
    """Return the medians of wall clock and of CPU time."""
    taken = list(costs)
    return Cost(statistics.median(one.wall for one in taken), statistics.median(one.cpu for one in taken))


def alternately(*works: Callable[[], Cost], runs: int = RUNS) -> list[Cost]:
    """Return the median of each of `works`, taken in turn so that what else runs meets all alike."""
    taken: list[list[Cost]] = [[] for _ in works]
    for turn in range(runs):
        for costs, work in zip(taken, works, strict=True):
            costs.append(work())
        if turn == RUNS // 2 and any(cost.wall > LONG for costs in taken for cost in costs):
            break
    return [median(costs) for costs in taken]


def peak_mb() -> float:
    """Return the most memory that this process ever held."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def say_load(title: str) -> None:
    """Head a table with how busy the machine is, and with what runs."""
    one, five, _ = os.getloadavg()
    busy = f"load average {one:.1f} (1 min), {five:.1f} (5 min) on {os.cpu_count()} CPUs"
    print(f"{title}: {busy}, {interpreter()}", flush=True)


def interpreter() -> str:
    """Return the name of the interpreter, and how long it takes for one of a tower of calls."""
    best = min(cost_of(lambda: tower(20)).cpu for _ in range(10))
    return f"{platform.python_implementation()} {platform.python_version()} at {best / CALLS * 1e9:.0f} ns a call"


def tower(height: int) -> int:
    """Return a Fibonacci number, the slow way."""
    return tower(height - 1) + tower(height - 2) if height > 1 else height


def say_ratio(name: str, cost: Cost, limit_name: str, limit: Cost, factor: float) -> None:
    """Print a case that may cost `factor` times what its limit does."""
    ratio, ratio_cpu = cost.wall / limit.wall, cost.cpu / limit.cpu
    said = "ok" if ratio <= factor else "OVER"
    print(
        f"{name:34} {cost}  limit {factor:g} x {limit_name} {limit}  ratio {ratio:.2f} (CPU {ratio_cpu:.2f})  {said}",
        flush=True,
    )


def say_figure(name: str, figure: float, unit: str, limit: float | None = None, beside: str = "") -> None:
    """Print a case whose limit is a number; without one, it is there to be compared with."""
    said = ""
    if limit is not None:
        said = f"limit {limit:g} {unit}  ratio {figure / limit:.2f}  {'ok' if figure <= limit else 'OVER'}"
    print(f"{name:34} {figure:9.2f} {unit:4} {said}  {beside}".rstrip(), flush=True)
