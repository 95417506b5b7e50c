"""What the status of a large run costs: time against reading the same bytes, memory a rollout.

The limit is a loop over the lines of the same files with a decoder of three fields.
"""

import argparse
import gc
import shutil
import subprocess
import sys
import tempfile
import tracemalloc
from pathlib import Path

import msgspec
from figures import alternately, cost_of, say_figure, say_load, say_ratio
from folder import PLAN_BYTES, RESULT_BYTES, make

from rollbook.ledger.history import prefixes, read_history
from rollbook.ledger.paths import RunPaths
from rollbook.verbs.status import run_status

TIMES = 4
BYTES_A_ROLLOUT = 200
_DISK_A_ROLLOUT = RESULT_BYTES + PLAN_BYTES + 200


class ThreeFields(msgspec.Struct, gc=False):
    """What the limit decodes of a line."""

    task: int = msgspec.field(name="_ng_task_index", default=0)
    rollout: int = msgspec.field(name="_ng_rollout_index", default=0)
    reward: float | None = None


def read_all(paths: RunPaths) -> None:
    """Decode three fields of every line of a run's files."""
    decode = msgspec.json.Decoder(ThreeFields).decode
    for path in (paths.materialized_inputs, paths.output, paths.failures, paths.manifest_log):
        with path.open("rb", buffering=1 << 20) as file:
            for line in file:
                decode(line)


def check(paths: RunPaths, rollouts: int) -> None:
    """Refuse to measure a fold that is wrong."""
    status = run_status(paths.output)
    if status.coverage.scored != rollouts or status.damage:
        sys.exit(f"the folder is not read as it was made: {status}")


def memory_of(paths: RunPaths) -> tuple[float, float]:
    """Return how many bytes the interpreter holds after a fold, and held at most."""
    gc.collect()
    tracemalloc.start()
    history = read_history(paths, prefixes(paths))
    held, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    del history
    return held, peak


def measure(folder: Path, rollouts: int) -> None:
    """Make a run, and print what its fold costs."""
    paths = make(folder / "rollouts.jsonl", rollouts)
    check(paths, rollouts)
    status, limit = alternately(
        lambda: cost_of(lambda: run_status(paths.output)), lambda: cost_of(lambda: read_all(paths))
    )
    say_ratio(f"status of {rollouts:,} rollouts", status, "three fields of every line", limit, TIMES)
    held, peak = memory_of(paths)
    say_figure("memory of the fold, a rollout", held / rollouts, "B", BYTES_A_ROLLOUT, f"peak {peak / rollouts:.0f} B")
    before, after = resident(paths, "pass"), resident(paths, "h = read_history(paths, prefixes(paths))")
    grown = (after - before) * (1 << 20) / rollouts
    say_figure(
        "peak of the process, a rollout", grown, "B", beside=f"{after:.0f} MB in all, {before:.0f} MB without it"
    )


def resident(paths: RunPaths, statement: str) -> float:
    """Return the peak memory, in MB, of a process that does `statement` with the run at `paths`."""
    lines = (
        "from pathlib import Path",
        "from rollbook.verbs.status import *",
        f"paths = RunPaths(Path({str(paths.output)!r}))",
        statement,
        "print(Path('/proc/self/status').read_text().partition('VmHWM:')[2].split()[0])",
    )
    told = subprocess.run([sys.executable, "-c", "\n".join(lines)], check=True, capture_output=True, text=True)
    return int(told.stdout) / 1024


def main(arguments: list[str] | None = None) -> None:
    """Print the cases of the fold."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rollouts", type=int, default=1_000_000)
    rollouts = parser.parse_args(arguments).rollouts
    say_load("fold")
    with tempfile.TemporaryDirectory(prefix="rollbook-fold-") as folder:
        if shutil.disk_usage(folder).free < 2 * rollouts * _DISK_A_ROLLOUT:
            sys.exit(f"{folder}: no room for {rollouts} rollouts; give a smaller --rollouts")
        measure(Path(folder), rollouts)


if __name__ == "__main__":
    main()
