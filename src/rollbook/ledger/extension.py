"""A plan that grows: new rollouts behind the ones that were planned before.

Rules:
* Lines are appended and made durable; they are in force once the manifest covers them.
* What lies behind the plan in force was never agreed on: it is moved to `<name>.torn` first.
* A plan in force that ends within a line is not added to: that line would not be the one that was planned.

Source: collection.md §1.5; docs/record-format.md.
"""

import os
from collections.abc import Iterable

from rollbook.errors import LedgerError
from rollbook.ledger.digests import sha256_of
from rollbook.ledger.paths import RunPaths
from rollbook.ledger.tail import keep_torn
from rollbook.records.identity import RolloutKey
from rollbook.records.manifest import PlanDigest


def extend_plan(paths: RunPaths, plan: PlanDigest, lines: Iterable[tuple[RolloutKey, bytes]]) -> PlanDigest:
    """Append `lines` to the plan in force, and return the digest of the longer plan.

    Raises:
        LedgerError: the plan in force ends within a line.

    """
    path = paths.materialized_inputs
    _refuse_part_of_a_line(paths, plan.bytes)
    keep_torn(path, plan.bytes)
    added = 0
    with path.open("ab", buffering=1 << 20) as file:
        for _, line in lines:
            file.write(line + b"\n")
            added += 1
        file.flush()
        os.fsync(file.fileno())
    return PlanDigest(sha256=sha256_of(path), bytes=path.stat().st_size, rollouts=plan.rollouts + added)


def _refuse_part_of_a_line(paths: RunPaths, size: int) -> None:
    path = paths.materialized_inputs
    with path.open("rb") as file:
        file.seek(max(0, size - 1))
        last = file.read(1)
    if size and last != b"\n":
        raise LedgerError(
            f"{path}: the plan in force ends within a line, and cannot grow. To have that line mended, move "
            f"{paths.manifest} away: the run is then taken up by its rows and its log"
        )
