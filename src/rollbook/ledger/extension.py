"""A plan that grows: new rollouts behind the ones that were planned before.

Rules:
* Lines are appended and made durable; they are in force once the manifest covers them. What keeps one of them from
  being written leaves the plan as it was.
* What lies behind the plan in force was never agreed on: it is moved to `<name>.torn` first.
* A plan in force that ends within a line is not added to: that line would not be the one that was planned.

Source: collection.md §1.5; docs/record-format.md.
"""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from rollbook.errors import LedgerError
from rollbook.ledger.digests import sha256_of
from rollbook.ledger.paths import RunPaths
from rollbook.ledger.reader import Line
from rollbook.ledger.tail import keep_torn
from rollbook.records.manifest import PlanDigest


def extend_plan(paths: RunPaths, plan: PlanDigest, lines: Iterable[Line], added: int) -> PlanDigest:
    """Append `lines`, which are to be `added` ones, to the plan in force, and return the digest of the longer plan.

    Raises:
        LedgerError: the plan in force ends within a line, or there are more or fewer lines; the plan is as it was.

    """
    path = paths.materialized_inputs
    _refuse_part_of_a_line(paths, plan.bytes)
    keep_torn(path, plan.bytes)
    with _cut_unless_done(path, plan.bytes):
        found = _append(path, lines)
        if found != added:
            raise LedgerError(
                f"{path}: it was to grow by {added} rollouts, and now by {found}: the dataset was changed meanwhile. "
                "Resume again"
            )
        return PlanDigest(sha256=sha256_of(path), bytes=path.stat().st_size, rollouts=plan.rollouts + added)


def _append(path: Path, lines: Iterable[Line]) -> int:
    found = 0
    with path.open("ab", buffering=1 << 20) as file:
        for line in lines:
            file.write(line.text + b"\n")
            found += 1
        file.flush()
        os.fsync(file.fileno())
    return found


@contextmanager
def _cut_unless_done(path: Path, size: int) -> Iterator[None]:
    done = False
    try:
        yield
        done = True
    finally:
        if not done:
            os.truncate(path, size)


def _refuse_part_of_a_line(paths: RunPaths, size: int) -> None:
    path = paths.materialized_inputs
    with path.open("rb") as file:
        file.seek(max(0, size - 1))
        last = file.read(1)
    if size and last != b"\n":
        raise LedgerError(
            f"{path}: the plan in force ends within a line, and cannot grow. To have that line mended, move "
            f"{paths.manifest} away, and resume with +allow_unsafe_resume=true"
        )
