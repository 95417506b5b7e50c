"""What durable results cost: the writer with every row synced, against plain buffered appends of the same rows.

Both are handed their rows by as many asyncio tasks, each waiting for its row before it hands over the next. The limit
encodes the same row and writes it into a buffered file.
"""

import argparse
import asyncio
import tempfile
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path

import uvloop
from figures import Cost, alternately, cost_of, say_load, say_ratio
from folder import RESULT_BYTES, RUN_ID, reply

from rollbook.clock import SystemClock
from rollbook.ledger.paths import RunPaths
from rollbook.ledger.writer import Durability, Writer, WriterOptions
from rollbook.records.codec import RunStamp, encode, saved_row
from rollbook.records.ending import Ending
from rollbook.records.identity import RolloutKey
from rollbook.records.outcome import Scored
from rollbook.records.task import Rollout

TIMES = 2
CONCURRENCY = 256
STAMP = RunStamp(RUN_ID, 3)
ENDING = Ending(Scored(1.0), reply(RESULT_BYTES - 160))
Save = Callable[[Rollout], Awaitable[object]]
Work = Callable[[Path], Coroutine[None, None, None]]


def rollout(number: int) -> Rollout:
    """Return one rollout with the stamps of its row."""
    stamps = {"_ng_task_index": number, "_ng_rollout_index": 0}
    return Rollout(RolloutKey(number, 0), b"", "stub_environment", "stub_agent", stamps=stamps)


async def handed_over(rows: int, save: Save) -> None:
    """Hand `rows` rows to `save`, with so many in flight."""
    numbers = iter(range(rows))

    async def lane() -> None:
        for number in numbers:
            await save(rollout(number))

    await asyncio.gather(*(lane() for _ in range(CONCURRENCY)))


async def buffered(folder: Path, rows: int) -> None:
    """Append the rows to a buffered file."""
    with (folder / "plain.jsonl").open("ab", buffering=1 << 20) as file:

        async def save(one: Rollout) -> None:
            file.write(encode(saved_row(ENDING, one.stamps, STAMP)[1]) + b"\n")
            await asyncio.sleep(0)

        await handed_over(rows, save)


async def written(folder: Path, rows: int, durability: Durability) -> None:
    """Give the rows to the writer of a run."""
    paths = RunPaths(folder / "rollouts.jsonl")
    async with Writer(paths, STAMP, SystemClock(), WriterOptions(durability)) as writer:
        await handed_over(rows, lambda one: writer.write(one, ENDING))


def taken(work: Work) -> Cost:
    """Return what `work` costs in a folder of its own."""
    with tempfile.TemporaryDirectory(prefix="rollbook-append-") as folder:
        return cost_of(lambda: uvloop.run(work(Path(folder))))


def main(arguments: list[str] | None = None) -> None:
    """Print the cases of the writer."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000)
    rows = parser.parse_args(arguments).rows
    say_load("append")
    sync, flush, plain = alternately(
        lambda: taken(lambda folder: written(folder, rows, Durability.SYNC)),
        lambda: taken(lambda folder: written(folder, rows, Durability.FLUSH)),
        lambda: taken(lambda folder: buffered(folder, rows)),
    )
    say_ratio(f"{rows:,} results, durability sync", sync, "buffered appends", plain, TIMES)
    say_ratio(f"{rows:,} results, durability flush", flush, "buffered appends", plain, TIMES)


if __name__ == "__main__":
    main()
