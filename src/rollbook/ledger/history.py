"""Everything that a run's files say, folded: the plan, the log of attempts, and the records.

Rules:
* Readers and writers read the same way; a reader of a run that is being written takes prefixes of the results and
  failures first, so that an outcome is never seen without its reservation.
* What cannot be right is named, file and line, and handed to the caller: a reader reports it, a writer stops at it.

Source: collection.md §5.4, §5.4.1; cases RC-13, RC-20, RC-21.
"""

from collections import Counter
from collections.abc import Iterable, Iterator

import msgspec

from rollbook.errors import LedgerError
from rollbook.ledger.contradictions import contradictions
from rollbook.ledger.digests import sha256_of
from rollbook.ledger.manifest_store import LogSummary, fold_log, read_manifest, shortened
from rollbook.ledger.paths import RunPaths
from rollbook.ledger.reader import Line, OnDamage, not_a_record, plain_blocks, raise_damage, records_in, scan_whole
from rollbook.records.blocks import fold_plan_blocks, fold_result_blocks
from rollbook.records.bulk import OnFault, Planned, Tokens
from rollbook.records.manifest import RunManifest
from rollbook.records.place import File
from rollbook.records.standing import Standings


class History(msgspec.Struct):
    """What the files say."""

    manifest: RunManifest | None
    standings: Standings = msgspec.field(default_factory=Standings)
    log: LogSummary = msgspec.field(default_factory=LogSummary)
    plan: Planned = msgspec.field(default_factory=Planned)
    tokens: Tokens = msgspec.field(default_factory=Tokens)

    @property
    def run_ids(self) -> Counter[str | None]:
        """How many records name which run."""
        return self.standings.table.run_ids()


def prefixes(paths: RunPaths) -> dict[File, int]:
    """Return how long results and failures are now."""
    named = {File.RESULTS: paths.output, File.FAILURES: paths.failures}
    return {file: path.stat().st_size if path.exists() else 0 for file, path in named.items()}


def read_history(
    paths: RunPaths,
    limits: dict[File, int] | None = None,
    on_damage: OnDamage = raise_damage,
    lost: Iterable[LedgerError] | None = None,
    *,
    with_tokens: bool = True,
) -> History:
    """Fold everything that is on disk, of results and failures the bytes that `limits` say; then tokens are added up.

    Without `with_tokens` they are not: who needs none of them is done sooner.

    `lost` is what was found missing before the ends of files were mended; without it, they are looked at now.

    Raises:
        LedgerError: a file is damaged, and `on_damage` raises it.

    """
    history = History(_manifest_at(paths, on_damage))
    standings = history.standings
    in_force = history.manifest.plan.bytes if history.manifest else None
    plan = plain_blocks(paths.materialized_inputs, in_force)
    history.plan = fold_plan_blocks(plan, standings, _planned_faults(paths, on_damage))
    history.log = fold_log(paths.manifest_log, standings, on_damage)
    for record in records_in(paths.failures, File.FAILURES, limits[File.FAILURES] if limits else None, on_damage):
        standings.add(record)
    results = plain_blocks(paths.output, limits[File.RESULTS] if limits else None)
    fold_result_blocks(
        results, standings, _result_faults(paths, on_damage), history.tokens if limits and with_tokens else None
    )
    missing = shortened(paths, history.log.sizes) if lost is None else lost
    for error in (*missing, *contradictions(paths, history.manifest, history.log, standings)):
        on_damage(error)
    return history


def planned_lines(paths: RunPaths, manifest: RunManifest | None) -> Iterator[Line]:
    """Yield the lines of the plan that is in force, each whole."""
    return scan_whole(paths.materialized_inputs, manifest.plan.bytes if manifest else None)


def check_plan(paths: RunPaths, manifest: RunManifest) -> None:
    """Refuse a plan that is not the one of the manifest.

    Raises:
        LedgerError: the plan was changed, or is missing.

    """
    plan = paths.materialized_inputs
    if not plan.exists():
        raise LedgerError(f"{plan}: the run's plan is missing; restore it, or start anew with --overwrite")
    if sha256_of(plan, manifest.plan.bytes) != manifest.plan.sha256:
        raise LedgerError(
            f"{plan}: not the plan that this run was started with (its digest differs); restore the file, or start a "
            "new run with another --output"
        )


def _manifest_at(paths: RunPaths, on_damage: OnDamage) -> RunManifest | None:
    try:
        return read_manifest(paths.manifest)
    except LedgerError as error:
        on_damage(error)
        return None


def _planned_faults(paths: RunPaths, on_damage: OnDamage) -> OnFault:
    plan = paths.materialized_inputs
    return lambda number, error: on_damage(LedgerError(f"{plan}:{number}: not a line of a plan: {error}"))


def _result_faults(paths: RunPaths, on_damage: OnDamage) -> OnFault:
    return lambda number, error: on_damage(not_a_record(paths.output, number, error))
