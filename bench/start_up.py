"""Start-up times against their limits: medians of five, wall clock of a whole process.

The last case is a whole evaluation of one rollout, sent to a loopback server: its time and its peak of memory.
"""

import sys
import tempfile
from pathlib import Path

from figures import GYM, RUNS, Cost, Process, median, run, say_figure, say_load
from resume import served, write_rows

CASES = (
    ("python -c pass", (sys.executable, "-c", "pass"), None),
    ("import rollbook", (sys.executable, "-c", "import rollbook"), 50),
    ("import nemo_gym", (sys.executable, "-c", "import nemo_gym"), 100),
    ("gym --help", (str(GYM), "--help"), 150),
    ("gym eval run --help", (str(GYM), "eval", "run", "--help"), 150),
    ("gym --version", (str(GYM), "--version"), 150),
    ("gym list environments", (str(GYM), "list", "environments"), None),
)
ONE_MS = 700
ONE_MB = 90


def cost(*command: str) -> Cost:
    """Return the median cost of a process; the first one only leaves its byte code."""
    run(*command)
    return median(run(*command).cost for _ in range(RUNS))


def one_rollout(folder: Path, port: int) -> list[Process]:
    """Return what evaluations of one rollout cost; the first one only leaves its byte code."""
    rows, head = folder / "rows.jsonl", ("++head_server.host=127.0.0.1", f"++head_server.port={port}")
    write_rows(rows, 1)
    files = ("--input", str(rows), "--output", str(folder / "rollouts.jsonl"))
    command = (str(GYM), "eval", "run", "--no-serve", "--overwrite", *files, *head)
    taken = [run(*command, folder=folder) for _ in range(RUNS + 1)][1:]
    if failed := [process for process in taken if process.code]:
        sys.exit(f"{' '.join(command)} ended with {failed[0].code}:\n{failed[0].error[-2000:]}")
    return taken


def say_one_rollout() -> None:
    """Print the time and the memory that an evaluation of one rollout takes."""
    with tempfile.TemporaryDirectory(prefix="rollbook-start-") as name, served() as port:
        taken = one_rollout(Path(name), port)
    took = median(process.cost for process in taken)
    say_figure("one rollout, --no-serve", took.wall * 1000, "ms", ONE_MS, f"{took.cpu * 1000:.0f} ms CPU")
    say_figure("one rollout, peak memory", max(process.peak_mb for process in taken), "MB", ONE_MB)


def main() -> None:
    """Print one line per case. A limit on an import is over the interpreter's own start-up."""
    say_load("start-up")
    empty = cost(*CASES[0][1])
    for name, command, limit in CASES:
        took = cost(*command)
        wall = took.wall - empty.wall if name.startswith("import") else took.wall
        say_figure(name, wall * 1000, "ms", limit, f"{took.cpu * 1000:.0f} ms CPU")
    say_one_rollout()


if __name__ == "__main__":
    main()
