"""Opens a label over an earlier shard and dies at each of its calls that change the disk, one process a death.

Prints what a resume would find after each: the run in force, its plan, its damage, and whether the opener before is
kept out.
"""

import asyncio
import json
import os
import shutil
import sys
from pathlib import Path

from rollbook.clock import SystemClock
from rollbook.errors import LedgerError
from rollbook.ledger.run import Run
from rollbook.verbs.status import run_status
from unit.api.shard_calls import ShardFolder, planned
from unit.api.test_shards_opening import answered

CALLS = ("replace", "unlink", "pwrite", "ftruncate")


def main(folder):
    os.fsync = lambda _descriptor: None  # a process that dies loses nothing that the system was handed
    template = ShardFolder(folder / "template")
    first, rows = template.opened(planned(2), "old")
    asyncio.run(first.write(answered(rows[0])))
    found, number = [], 0
    while True:
        number += 1
        shard = ShardFolder(folder / f"death-{number}")
        shutil.copytree(template.folder, shard.folder)
        if not dies_at(number, shard):
            break
        found.append(left(shard, template))
    json.dump(found, sys.stdout)


def dies_at(number, shard):
    """Open the label in another process that ends with its call `number`; False when it made fewer."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
    for name in CALLS:
        setattr(os, name, counted(getattr(os, name), number))
    shard.opened(planned(3), "new")
    os._exit(0)


seen = []


def counted(call, number):
    def counting(*args, **options):
        seen.append(call)
        if len(seen) == number:
            os._exit(9)
        return call(*args, **options)

    return counting


def left(shard, template):
    """Return what a resume finds, and whether whoever wrote the earlier shard still may."""
    fenced = shard.paths.lock.read_bytes().splitlines()[0] != template.paths.lock.read_bytes().splitlines()[0]
    shard.paths.lock.unlink()
    with Run(shard.paths, SystemClock()).claimed():
        pass
    try:
        status = run_status(shard.paths.output)
    except LedgerError as error:
        return {"run": str(error)}
    damage = [str(one) for one in status.damage]
    counts = {"planned": status.coverage.planned, "scored": status.coverage.scored, "law": status.coverage.law_holds}
    return {"run": status.run_id, "damage": damage, "fenced": fenced} | counts


if __name__ == "__main__":
    main(Path(sys.argv[1]))
