"""`gym eval profile` and `status` of a whole run and of ten shards, a process each: 50,000 results of 2 KB.

Rules:
* A profile may take 2 s, a status 1 s, of a run that goes on too: its lock is held and its log grows meanwhile, the
  last lines are not whole, and some rollouts are in flight.
* Rewards and tokens differ from row to row, so that no statistic is a repetition of another one.
"""

import argparse
import os
import random
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import islice
from pathlib import Path
from threading import Event, Thread
from typing import BinaryIO

from figures import GYM, RUNS, median, run, say_figure, say_load
from folder import REPEATS, RESULT_BYTES, RUN_ID, make

from rollbook.ledger.digests import sha256_of
from rollbook.ledger.lock import RunLock
from rollbook.ledger.manifest_store import write_manifest
from rollbook.ledger.paths import RunPaths
from rollbook.ledger.shard import begin_log, shard_paths
from rollbook.records.identity import RolloutKey
from rollbook.records.manifest import Opened, PlanDigest, Reserved, RunManifest, log_line, read_log_event
from rollbook.records.run_status import DONE, RESUMABLE

SECONDS = 2.0
STATUS_SECONDS = 1.0
IN_FLIGHT = 512
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


@contextmanager
def running(outputs: Iterable[Path]) -> Iterator[None]:
    """Let the finished runs at `outputs` go on: hold their locks, and write to their logs until this ends."""
    with ExitStack() as holding:
        logs = []
        for paths in map(RunPaths, outputs):
            _interrupt(paths)
            lock = RunLock(paths.lock, now=time.time)
            lock.acquire()
            holding.callback(lock.release)
            logs.append(holding.enter_context(paths.manifest_log.open("ab", buffering=0)))
        over = Event()
        writer = Thread(target=_write_on, args=(logs, over))
        holding.callback(writer.join)
        holding.callback(over.set)
        writer.start()
        yield


def _interrupt(paths: RunPaths) -> None:
    """Take the last results of a run away, but for half a line, and the end of its log, with an attempt a line."""
    left = paths.output.stat().st_size - IN_FLIGHT * RESULT_BYTES
    os.truncate(paths.output, left - left % RESULT_BYTES + RESULT_BYTES // 2)
    events = [read_log_event(line) for line in paths.manifest_log.read_bytes().splitlines()]
    with paths.manifest_log.open("wb") as log:
        for event in events:
            if isinstance(event, Opened):
                log.write(log_line(event))
            elif isinstance(event, Reserved):
                log.writelines(
                    log_line(Reserved(event.a[at : at + 3], (0, 0), 1.0)) for at in range(0, len(event.a), 3)
                )


def _write_on(logs: Sequence[BinaryIO], over: Event) -> None:
    """Hand out no attempt, but say the time again and again, in lines that are now and then not whole."""
    while not over.wait(0.05):
        for log in logs:
            line = log_line(Reserved([], (0, 0), 1.0))
            log.write(line[:9])
            log.write(line[9:])


def measure(verb: str, name: str, *words: str, limit: float, code: int = DONE) -> None:
    """Print what `verb` costs, from start to exit with `code`."""
    taken = [run(str(GYM), "eval", verb, *words) for _ in range(RUNS + 1)][1:]
    if failed := [process for process in taken if process.code != code]:
        sys.exit(f"{name} ended with {failed[0].code}:\n{failed[0].error[-2000:]}")
    took = median(process.cost for process in taken)
    say_figure(name, took.wall, "s", limit, f"{took.cpu:.2f} s CPU")
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
        output, keep = str(paths.output), ("--keep", KEEP, "--export", f"{name}/kept.jsonl", "--overwrite")
        measure("profile", "one run", output, limit=SECONDS)
        measure("profile", "one run, tasks kept", output, *keep, limit=SECONDS)
        measure("profile", "ten shards", str(shards), "--output", f"{name}/all.jsonl", limit=SECONDS)
        measure("status", "status", output, limit=STATUS_SECONDS)
        measure("status", "status of ten shards", str(shards), limit=STATUS_SECONDS)
        outputs = [shard_paths(shards, f"s{number}").output for number in range(SHARDS)]
        with running([paths.output, *outputs]):
            measure("status", "status while it runs", output, limit=STATUS_SECONDS, code=RESUMABLE)
            measure("status", "status while ten shards run", str(shards), limit=STATUS_SECONDS, code=RESUMABLE)


if __name__ == "__main__":
    main()
