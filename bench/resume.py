"""What it costs to resume a run that is finished but for its last ten rows, as a whole command.

Rules:
* The run is a real one, collected from a loopback server; then its last rows are cut as a dead process would leave it.
* This process stays small: what Linux reports of a child's peak memory is no less than its parent's.
"""

import argparse
import json
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from figures import GYM, RUNS, Process, median, run, say_figure, say_load
from folder import RESULT_BYTES

SECONDS = 1.5
MEGABYTES = 120
OWED = 10
REPEATS = 4
LONGEST_ROW = 4096


@contextmanager
def served(reply_bytes: int = RESULT_BYTES) -> Iterator[int]:
    """Give the port of a stub that answers while the block lasts, with replies of so many bytes."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    stub = [sys.executable, str(Path(__file__).with_name("stub.py")), str(port), str(reply_bytes)]
    with subprocess.Popen(stub, stdout=subprocess.PIPE, text=True) as process:
        try:
            if process.stdout is None or process.stdout.readline() != "ready\n":
                sys.exit("the stub did not start")
            yield port
        finally:
            process.kill()


class Run:
    """A run in `folder`, whose servers are behind `port`."""

    def __init__(self, folder: Path, port: int, rollouts: int) -> None:
        self.output = folder / "rollouts.jsonl"
        self.manifest = folder / "rollouts_manifest.json"
        self.log = folder / "rollouts_manifest.log"
        self._folder = folder
        rows = folder / "rows.jsonl"
        write_rows(rows, rollouts // REPEATS)
        flags = f"--no-serve --disable-aggregation --concurrency 256 --num-repeats {REPEATS}"
        head = ("++head_server.host=127.0.0.1", f"++head_server.port={port}")
        self._command = (
            str(GYM),
            "eval",
            "run",
            *flags.split(),
            "--input",
            str(rows),
            "--output",
            str(self.output),
            *head,
        )

    def command(self, *more: str, code: int = 0) -> Process:
        """Run the command to its end."""
        done = run(*self._command, *more, folder=self._folder)
        if done.code != code:
            sys.exit(f"{' '.join(self._command)} ended with {done.code}:\n{done.error[-2000:]}")
        return done

    def cut(self, owed: int) -> "Cut":
        """Return the run as it was before its last `owed` rows were written."""
        with self.output.open("rb") as file:
            whole = file.seek(-owed * LONGEST_ROW, os.SEEK_END) + owed * LONGEST_ROW
            size = whole - sum(map(len, file.readlines()[-owed:]))
        events = [event for event in map(json.loads, self.log.read_bytes().splitlines()) if event["t"] != "close"]
        for event in events:
            if "sizes" in event:
                event["sizes"][0] = min(event["sizes"][0], size)
        log = b"".join(json.dumps(event, separators=(",", ":")).encode() + b"\n" for event in events)
        return Cut(self, size, log, self.manifest.read_bytes())


class Cut:
    """A run that lacks its last rows, as often as it is asked for."""

    def __init__(self, of: Run, size: int, log: bytes, manifest: bytes) -> None:
        self._run, self._size, self._log, self._manifest = of, size, log, manifest

    def resumed(self) -> Process:
        """Cut, and return what the resume costs."""
        with self._run.output.open("r+b") as file:
            file.truncate(self._size)
        self._run.log.write_bytes(self._log)
        self._run.manifest.write_bytes(self._manifest)
        done = self._run.command("--resume")
        with self._run.output.open("rb") as file:
            file.seek(self._size)
            rows = len(file.readlines())
        if rows != OWED:
            sys.exit(f"{rows} rows were resumed, and {OWED} were owed:\n{done.error}")
        return done


def write_rows(path: Path, count: int) -> None:
    """Write the tasks of a run, 0.5 KB each."""
    content = {"content": "What is the weather like? " * 14, "role": "user"}
    row = {"responses_create_params": {"input": [content]}, "agent_ref": {"name": "stub_agent"}}
    row["agent_ref"]["type"] = "responses_api_agents"
    with path.open("w") as file:
        file.writelines(json.dumps(row | {"number": number}) + "\n" for number in range(count))


def say(name: str, done: list[Process], *, limited: bool) -> None:
    """Print time and memory of one command."""
    cost = median(one.cost for one in done)
    say_figure(name, cost.wall, "s", SECONDS if limited else None, f"{cost.cpu:.2f} s CPU")
    peak = max(one.peak_mb for one in done)
    say_figure(f"{name}: memory", peak, "MB", MEGABYTES if limited else None)


def main(arguments: list[str] | None = None) -> None:
    """Print the cases of a resume."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rollouts", type=int, default=50_000)
    rollouts = parser.parse_args(arguments).rollouts
    say_load("resume")
    with tempfile.TemporaryDirectory(prefix="rollbook-resume-") as folder, served() as port:
        of = Run(Path(folder), port, rollouts)
        collected = of.command()
        say(f"collect {rollouts:,} rollouts", [collected], limited=False)
        say("gym --version", [run(str(GYM), "--version") for _ in range(RUNS)], limited=False)
        say("nothing to resume", [of.command("--resume") for _ in range(RUNS)], limited=False)
        cut = of.cut(OWED)
        say(f"resume {OWED} of {rollouts:,}", [cut.resumed() for _ in range(RUNS)], limited=True)


if __name__ == "__main__":
    main()
