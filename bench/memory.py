"""What a collection holds in memory: at 50,000 rollouts, and for each one more.

Rules:
* Each run is a whole command, aggregation included; what is taken is its peak.
"""

import argparse
import sys
import tempfile
from pathlib import Path

from figures import GYM, run, say_figure, say_load
from resume import served, write_rows

FEW = 50_000
MANY = 500_000
MEGABYTES = 120.0
BYTES_A_ROLLOUT = 200.0
_MB = 1024 * 1024


def peak(port: int, rollouts: int, folder: Path) -> float:
    """Return the peak of one run in MB."""
    rows = folder / f"{rollouts}.jsonl"
    write_rows(rows, rollouts)
    flags = ["--no-serve", "--overwrite", "--concurrency", "256", "--durability", "flush"]
    head = ("++head_server.host=127.0.0.1", f"++head_server.port={port}")
    where = ("--input", str(rows), "--output", str(folder / "run" / "rollouts.jsonl"))
    done = run(str(GYM), "eval", "run", *flags, *where, *head)
    if done.code:
        sys.exit(done.error[-2000:])
    return done.peak_mb


def main(many: int) -> None:
    """Print the peak of the shorter run, and what a rollout more costs."""
    say_load("memory")
    with tempfile.TemporaryDirectory() as name, served() as port:
        few = peak(port, FEW, Path(name))
        say_figure(f"collect {FEW:,}", few, "MB", MEGABYTES)
        more = peak(port, many, Path(name))
        say_figure(f"collect {many:,}", more, "MB")
        say_figure("each rollout more", (more - few) * _MB / (many - FEW), "B", BYTES_A_ROLLOUT)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rollouts", type=int, default=MANY)
    main(parser.parse_args().rollouts)
