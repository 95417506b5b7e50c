"""Start-up times against their limits: medians of five, wall clock of a whole process."""

import sys

from figures import GYM, RUNS, Cost, median, run, say_figure, say_load

CASES = (
    ("python -c pass", (sys.executable, "-c", "pass"), None),
    ("import rollbook", (sys.executable, "-c", "import rollbook"), 50),
    ("gym --help", (str(GYM), "--help"), 150),
    ("gym eval run --help", (str(GYM), "eval", "run", "--help"), 150),
    ("gym --version", (str(GYM), "--version"), 150),
    ("gym list environments", (str(GYM), "list", "environments"), None),
)


def cost(*command: str) -> Cost:
    """Return the median cost of a process; the first one only leaves its byte code."""
    run(*command)
    return median(run(*command).cost for _ in range(RUNS))


def main() -> None:
    """Print one line per case. A limit on an import is over the interpreter's own start-up."""
    say_load("start-up")
    empty = cost(*CASES[0][1])
    for name, command, limit in CASES:
        took = cost(*command)
        wall = took.wall - empty.wall if name.startswith("import") else took.wall
        say_figure(name, wall * 1000, "ms", limit, f"{took.cpu * 1000:.0f} ms CPU")


if __name__ == "__main__":
    main()
