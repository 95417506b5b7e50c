"""What it costs to aggregate finished runs, as a whole command: time against reading the same bytes, and memory.

Rules:
* No server is up: metrics are computed here, the entries of tasks go to the file; merge and health check are off.
* The limit is a loop over the lines of the same results with a decoder of three fields, in the same run.
* Rewards and token counts differ from row to row; rows are made as they are written, and deleted at the end.
"""

import argparse
import random
import shutil
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

import msgspec
from figures import GYM, Process, cost_of, median, run, say_figure, say_load, say_ratio
from fold import ThreeFields
from folder import PLAN_BYTES, REPEATS, RESULT_BYTES, make

TIMES = 8
MEGABYTES = 400
SHARDS = 10
FEW = 50_000
SECONDS = 2.0
_DISK_A_ROLLOUT = RESULT_BYTES + PLAN_BYTES + 1024
_NOBODY = ("++head_server.host=127.0.0.1", "++head_server.port=9")


def read_all(outputs: Iterable[Path]) -> None:
    """Decode three fields of every line of results."""
    decode = msgspec.json.Decoder(ThreeFields).decode
    for path in outputs:
        with path.open("rb", buffering=1 << 20) as file:
            for line in file:
                decode(line)


def varied(folder: Path, rollouts: int, seed: int) -> Path:
    """Make a run whose rows have rewards and token counts of their own; runs number their tasks apart."""
    folder.mkdir(parents=True)
    paths = make(folder / "rollouts.jsonl", rollouts)
    paths.manifest.unlink()
    paths.manifest_log.unlink()
    choose = random.Random(seed).randint
    for path in (paths.output, paths.materialized_inputs):
        made = path.with_suffix(".made")
        with path.open("rb", buffering=1 << 20) as file, made.open("wb", 1 << 20) as rows:
            for number, line in enumerate(file):
                task = number // REPEATS
                row = line.replace(b'"_ng_task_index":%d' % task, b'"_ng_task_index":%d' % (task + seed * 10_000_000))
                row = row.replace(b'"reward":1.0', b'"reward":0.%03d' % choose(0, 999))
                rows.write(row.replace(b'"input_tokens":120', b'"input_tokens":%d' % choose(100, 999)))
        made.replace(path)
    return paths.output


def aggregate(folder: Path, outputs: str, *flags: str) -> Process:
    """Run the command over the shards that `outputs` names."""
    target = folder / "out" / "all.jsonl"
    done = run(str(GYM), "eval", "aggregate", "-i", outputs, "-o", str(target), *flags, *_NOBODY, folder=folder)
    if done.code:
        sys.exit(done.error[-2000:])
    return done


def of_one(folder: Path, rollouts: int) -> None:
    """Print time and memory of one large run."""
    output = varied(folder, rollouts, 0)
    limits, done = [cost_of(lambda: read_all([output]))], []
    for _ in range(3 if rollouts <= FEW * 4 else 1):
        done.append(aggregate(folder, str(output), "--no-merge", "--no-health-check"))
        limits.append(cost_of(lambda: read_all([output])))
    cost = median(one.cost for one in done)
    say_ratio(f"aggregate {rollouts:,} rollouts", cost, "three fields of every line", median(limits), TIMES)
    say_figure("aggregate: memory", max(one.peak_mb for one in done), "MB", MEGABYTES)


def of_shards(folder: Path) -> None:
    """Print the time of the whole command over ten shards."""
    for shard in range(SHARDS):
        varied(folder / f"shard-{shard}", FEW // SHARDS, shard)
    done = [aggregate(folder, f"{folder}/shard-*/rollouts.jsonl", "--no-merge", "--no-health-check") for _ in range(3)]
    cost = median(one.cost for one in done)
    say_figure(f"aggregate {FEW:,} in {SHARDS} shards", cost.wall, "s", SECONDS, f"{cost.cpu:.2f} s CPU")
    merged = aggregate(folder, f"{folder}/shard-*/rollouts.jsonl", "--no-health-check")
    say_figure("the same, merged", merged.cost.wall, "s", beside=f"{merged.cost.cpu:.2f} s CPU")
    checked = aggregate(folder, f"{folder}/shard-*/rollouts.jsonl")
    say_figure("the same, merged and checked", checked.cost.wall, "s", beside=f"{checked.cost.cpu:.2f} s CPU")


def main(arguments: list[str] | None = None) -> None:
    """Print the cases of aggregation."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=int, default=1_000_000, metavar="ROLLOUTS")
    rollouts = parser.parse_args(arguments).scale
    say_load("aggregate")
    with tempfile.TemporaryDirectory(prefix="rollbook-aggregate-") as folder:
        if shutil.disk_usage(folder).free < 2 * rollouts * _DISK_A_ROLLOUT:
            sys.exit(f"{folder}: no room for {rollouts} rollouts; give a smaller --scale")
        of_shards(Path(folder) / "shards")
        of_one(Path(folder) / "one", rollouts)


if __name__ == "__main__":
    main()
