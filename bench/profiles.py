"""`gym eval profile` of a whole run and of ten shards, a process each: 50,000 results of 2 KB in at most 2 s.

Rewards and tokens differ from row to row, so that no statistic is a repetition of another one.
"""

import argparse
import random
import sys
import tempfile
from itertools import islice
from pathlib import Path

from figures import GYM, RUNS, median, run, say_figure, say_load
from folder import REPEATS, RUN_ID, make

from rollbook.ledger.digests import sha256_of
from rollbook.ledger.manifest_store import write_manifest
from rollbook.ledger.paths import RunPaths
from rollbook.ledger.shard import begin_log, shard_paths
from rollbook.records.identity import RolloutKey
from rollbook.records.manifest import Opened, PlanDigest, RunManifest

SECONDS = 2.0
MOST_MB = 150
SHARDS = 10
KEEP = "pass@4>=0.5 and mean<0.9"
_NOW = "2026-01-01T00:00:00+00:00"


def vary(path: Path) -> None:
    """Give every row of the results at `path` a reward and a number of tokens of its own, in as many bytes."""
    chance = random.Random(1)
    varied = path.with_suffix(".varied")
    with path.open("rb") as file, varied.open("wb") as out:
        for line in file:
            reward = b'"reward":%d.0,"accuracy":0.%d' % (chance.randrange(2), chance.randrange(10))
            tokens = b'"output_tokens":%d' % chance.randrange(10, 99)
            out.write(line.replace(b'"reward":1.0,"accuracy":1.0', reward).replace(b'"output_tokens":45', tokens))
    varied.replace(path)


def cut(whole: RunPaths, folder: Path, rollouts: int) -> None:
    """Write the run `whole` once more, as shards of equal size."""
    size = rollouts // SHARDS // REPEATS * REPEATS
    with whole.materialized_inputs.open("rb") as plan, whole.output.open("rb") as results:
        for shard in range(SHARDS):
            paths, first = shard_paths(folder, f"s{shard}"), shard * size
            paths.materialized_inputs.write_bytes(b"".join(islice(plan, size)))
            paths.output.write_bytes(b"".join(islice(results, size)))
            paths.failures.touch()
            keys = (RolloutKey(*divmod(number, REPEATS)) for number in range(first, first + size))
            begin_log(paths, Opened(1, RUN_ID, _NOW, (0, 0)), ((key, 0) for key in keys))
            inputs = paths.materialized_inputs
            digest = PlanDigest(sha256=sha256_of(inputs), bytes=inputs.stat().st_size, rollouts=size)
            write_manifest(paths.manifest, RunManifest(run_id=RUN_ID, created_at=_NOW, plan=digest))


def measure(name: str, *words: str) -> None:
    """Print what a profile costs, from start to exit."""
    taken = [run(str(GYM), "eval", "profile", *words) for _ in range(RUNS + 1)][1:]
    if failed := [process for process in taken if process.code]:
        sys.exit(f"{name} ended with {failed[0].code}:\n{failed[0].error[-2000:]}")
    took = median(process.cost for process in taken)
    say_figure(name, took.wall, "s", SECONDS, f"{took.cpu:.2f} s CPU")
    say_figure(f"{name}, peak memory", max(process.peak_mb for process in taken), "MB", MOST_MB)


def main(arguments: list[str] | None = None) -> None:
    """Print the cases of a profile."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rollouts", type=int, default=50_000)
    rollouts = parser.parse_args(arguments).rollouts
    say_load("profile")
    with tempfile.TemporaryDirectory(prefix="rollbook-profile-") as name:
        whole, shards = Path(name) / "whole", Path(name) / "shards"
        whole.mkdir()
        shards.mkdir()
        paths = make(whole / "rollouts.jsonl", rollouts)
        vary(paths.output)
        cut(paths, shards, rollouts)
        measure("one run", str(paths.output))
        measure("one run, tasks kept", str(paths.output), "--keep", KEEP, "--export", f"{name}/kept.jsonl")
        measure("ten shards", str(shards), "--output", f"{name}/all.jsonl")


if __name__ == "__main__":
    main()
