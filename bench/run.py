"""Start-up times against their limits: medians of five, wall clock of a whole process."""

import statistics
import subprocess
import sys
import time
from pathlib import Path

RUNS = 5
GYM = Path(sys.executable).with_name("gym")
CASES = (
    ("python -c pass", [sys.executable, "-c", "pass"], None),
    ("import rollbook", [sys.executable, "-c", "import rollbook"], 50),
    ("gym --help", [str(GYM), "--help"], 150),
    ("gym eval run --help", [str(GYM), "eval", "run", "--help"], 150),
    ("gym --version", [str(GYM), "--version"], 150),
    ("gym list environments", [str(GYM), "list", "environments"], None),
)


def milliseconds(command: list[str]) -> float:
    """Return how long one process takes from start to exit."""
    started = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return (time.perf_counter() - started) * 1000


def main() -> None:
    """Print one line per case. A limit on an import is over the interpreter's own start-up."""
    empty = statistics.median(milliseconds(CASES[0][1]) for _ in range(RUNS))
    for name, command, limit in CASES:
        median = statistics.median(milliseconds(command) for _ in range(RUNS))
        cost = median - empty if name.startswith("import") else median
        said = "" if limit is None else f"limit {limit} ms  {'ok' if cost <= limit else 'OVER'}"
        print(f"{name:24} {cost:8.1f} ms  {said}")


if __name__ == "__main__":
    main()
