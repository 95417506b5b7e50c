"""How many two-turn rollouts with a tool call the whole stack carries: collector, servers, and a quick model.

Rules:
* The rate is the session's own, from its first send to its last commit; starting servers does not count.
* What is shown are medians of five runs of each kind, taken in turn.
* Two cores carry everything, the model included. `--profile` says where the time goes, by room: of the one process, and
  of each server's where every server has one, its start included.
* Memory with processes is that of the collector; each server beside it is a process of its own.
"""

import argparse
import cProfile
import json
import os
import pstats
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from figures import GYM, RUNS, run, say_figure, say_load

WANTED = {"embedded": 400.0, "processes": 200.0}
MEGABYTES = 250
AGENT = "example_single_tool_call_simple_agent"
FLAGS = "--resources-server example_single_tool_call --model-type openai_model --disable-aggregation --json"

SERVER = "NEMO_GYM_CONFIG_PATH"
ROOMS = 20
STARTED = """
import atexit, cProfile, os, time
if "{server}" in os.environ:
    profile = cProfile.Profile(time.process_time)
    atexit.register(lambda: profile.dump_stats("{folder}/" + os.environ["{server}"] + ".profile"))
    profile.enable()
"""


@contextmanager
def model() -> Iterator[str]:
    """Give the address of a model that answers while the block lasts."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    mock = [sys.executable, str(Path(__file__).with_name("mock_model.py")), str(port)]
    with subprocess.Popen(mock, stdout=subprocess.PIPE, text=True) as process:
        try:
            if process.stdout is None or process.stdout.readline() != "ready\n":
                sys.exit("the model did not start")
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            process.kill()


def write_rows(path: Path, count: int) -> None:
    """Write tasks of 0.5 KB each, with one tool."""
    city = {"type": "object", "properties": {"city": {"type": "string", "description": ""}}, "required": ["city"]}
    tool = {"type": "function", "name": "get_weather", "description": "", "parameters": city, "strict": True}
    system = {"role": "developer", "content": "You are a helpful personal assistant that aims to be helpful. " * 2}
    with path.open("w") as file:
        for number in range(count):
            asked = {"role": "user", "content": f"what's the weather in city number {number}?"}
            row = {"responses_create_params": {"input": [system, asked], "tools": [tool]}}
            row["agent_ref"] = {"type": "responses_api_agents", "name": AGENT}
            file.write(json.dumps(row) + "\n")


def arguments(folder: Path, url: str, how: str) -> list[str]:
    """Return the command's arguments for one run."""
    (folder / how).mkdir()
    files = ["--input", str(folder / "rows.jsonl"), "--output", str(folder / how / "rollouts.jsonl")]
    endpoint = ["--model", "mock-model", "--model-url", url, "--model-api-key", "none"]
    return ["eval", "run", *FLAGS.split(), "--serve", how, *files, *endpoint, "--log-dir", str(folder / f"{how}-logs")]


@dataclass(frozen=True, slots=True)
class Carried:
    """What one run came to: rollouts a second, seconds of CPU with the start, and the most memory."""

    rate: float
    cpu: float
    peak_mb: float


def carried(folder: Path, url: str, how: str) -> Carried:
    """Return what one run comes to."""
    shutil.rmtree(folder / how, ignore_errors=True)
    done = run(str(GYM), *arguments(folder, url, how), output=folder / f"{how}.json")
    if done.code:
        sys.exit(f"the run ended with {done.code}:\n{done.error[-2000:]}")
    return Carried(rate_of(json.loads((folder / f"{how}.json").read_bytes())), done.cost.cpu, done.peak_mb)


def say(how: str, runs: list[Carried], wanted: float) -> None:
    """Print the median rate, CPU time and memory of some runs."""
    rate, cpu, peak = (statistics.median(getattr(run, name) for run in runs) for name in ("rate", "cpu", "peak_mb"))
    verdict = f"at least {wanted:g}/s  {'ok' if rate >= wanted else 'UNDER'}"
    say_figure(f"whole stack, {how}", rate, "/s", None, f"{verdict}  {cpu:.2f} s CPU with the start")
    say_figure(f"whole stack, {how}: memory", peak, "MB", MEGABYTES)


def rate_of(summary: dict[str, dict[str, float]]) -> float:
    """Return the rollouts per second that a session says of itself."""
    dispatch = summary["dispatch"]
    return float(dispatch["rollouts_per_second"])


def main(given: list[str] | None = None) -> None:
    """Print the whole stack's figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rollouts", type=int, default=2_000)
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--profile", action="store_true")
    asked = parser.parse_args(given)
    say_load("whole stack")
    with tempfile.TemporaryDirectory(prefix="rollbook-whole-stack-") as name, model() as url:
        folder = Path(name)
        write_rows(folder / "rows.jsonl", asked.rollouts)
        if asked.profile:
            profiled_servers(folder, arguments(folder, url, "processes"))
            profiled(arguments(folder, url, "embedded"))
            return
        taken: dict[str, list[Carried]] = {how: [] for how in WANTED}
        for _ in range(asked.runs):
            for how, runs in taken.items():
                runs.append(carried(folder, url, how))
        for how, runs in taken.items():
            say(how, runs, WANTED[how])


def profiled(command: list[str]) -> None:
    """Print what share of a run's CPU time each package and each of our rooms takes."""
    from rollbook.cli import main as gym  # noqa: PLC0415  not loaded to measure other processes

    profile = cProfile.Profile(time.process_time)
    sys.argv = ["gym", *command]
    with suppress(SystemExit):
        profile.runcall(gym)
    tell("embedded", pstats.Stats(profile))


def profiled_servers(folder: Path, command: list[str]) -> None:
    """Print the same of each server's process, into which Python's own hook for starts brings the profiler."""
    (folder / "sitecustomize.py").write_text(STARTED.format(folder=str(folder), server=SERVER))
    paths = [str(folder), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    subprocess.run([GYM, *command], env=environment, stdout=subprocess.DEVNULL, check=True)
    for found in sorted(folder.glob("*.profile")):
        tell(found.stem, pstats.Stats(str(found)))


def tell(name: str, stats: pstats.Stats) -> None:
    """Print what share of a profile's time each package and each of our rooms takes."""
    taken: Counter[str] = Counter()
    for (file, _, _), (_, _, own, _, callers) in stats.stats.items():
        if file == "~":
            for (caller, _, _), (_, _, seconds, _) in callers.items():
                taken[place(caller)] += seconds
        else:
            taken[place(file)] += own
    whole = sum(taken.values())
    print(name, flush=True)
    for room, seconds in taken.most_common(ROOMS):
        print(f"  {room:34} {seconds:7.2f} s  {seconds / whole:5.1%}", flush=True)


def place(file: str) -> str:
    """Return the room or the package that a source file belongs to."""
    for mark, parts in (("/src/rollbook/", 2), ("/site-packages/", 1)):
        if mark in file:
            return "/".join(file.partition(mark)[2].split("/")[:parts]).removesuffix(".py")
    return "standard library"


if __name__ == "__main__":
    main()
