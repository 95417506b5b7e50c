"""A plan that grows: new rollouts behind the ones that were planned before.

Rules:
* Lines are appended and made durable; they are in force once the manifest covers them.
* What lies behind the plan in force was never agreed on: it is moved to `<name>.torn` first.

Source: collection.md §1.5; docs/record-format.md.
"""

import os
from collections.abc import Iterable

from rollbook.ledger.digests import sha256_of
from rollbook.ledger.paths import RunPaths
from rollbook.ledger.tail import keep_torn
from rollbook.records.identity import RolloutKey
from rollbook.records.manifest import PlanDigest


def extend_plan(paths: RunPaths, plan: PlanDigest, lines: Iterable[tuple[RolloutKey, bytes]]) -> PlanDigest:
    """Append `lines` to the plan in force, and return the digest of the longer plan."""
    path = paths.materialized_inputs
    keep_torn(path, plan.bytes)
    added = 0
    with path.open("ab", buffering=1 << 20) as file:
        for _, line in lines:
            file.write(line + b"\n")
            added += 1
        file.flush()
        os.fsync(file.fileno())
    return PlanDigest(sha256=sha256_of(path), bytes=path.stat().st_size, rollouts=plan.rollouts + added)
