"""What an outer scheduler is told of a run, and what it said that the run would hold.

Rules:
* A plan that is not what the batch manifest says is refused before anything is sent.
* Writing a status never fails a run: what goes wrong is logged once, and no status is written any more.
* What a session writes after its block is the last word: a write that has begun ends before the block is left.

Source: collection.md §1.9, §17.3.
"""

import asyncio
import hashlib
import logging
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import msgspec

from rollbook.clock import Clock, timestamp
from rollbook.config.roots import resolve_read_path
from rollbook.dispatch.waiting import to_the_end
from rollbook.errors import RollbookError
from rollbook.ledger.paths import RunPaths
from rollbook.ledger.reader import Line
from rollbook.records.disposition import Rules
from rollbook.records.group_count import coverage_of
from rollbook.records.json_values import JsonObject
from rollbook.records.manifest import RunManifest
from rollbook.records.run_status import RunState, RunStatus, not_owed_by, owed_by
from rollbook.records.standing import Standings
from rollbook.verbs.batch_status import (
    Aggregation,
    AggregationState,
    IncompleteReason,
    batch_state,
    batch_status,
    faults_of,
    write_batch_status,
)
from rollbook.verbs.status import group_status

_LOG = logging.getLogger(__name__)
_EVERY_S: Final = 5.0
_REST: Final = 20.0
"""Writing may cost one part in so many of a run's time."""
_FAULTS: Final = (
    ArithmeticError,
    AttributeError,
    LookupError,
    MemoryError,
    OSError,
    RollbookError,
    RuntimeError,
    TypeError,
    ValueError,
)


def check_batch(manifest: str | None, plan: Iterable[Line]) -> None:
    """Refuse a plan that is not what the batch manifest at `manifest` says; without one, anything goes.

    Raises:
        ConfigError: the manifest cannot be read, or the plan is another one.

    """
    if manifest is not None:
        from rollbook.config.batch_manifest import load_batch_manifest, refuse_mismatch  # noqa: PLC0415  few have one
        from rollbook.plan.batch_facts import observed_members  # noqa: PLC0415  the same

        loaded = load_batch_manifest(resolve_read_path(manifest))
        refuse_mismatch(loaded, observed_members(msgspec.json.decode(line.text) for line in plan))


def aggregation_of(entries: Sequence[JsonObject]) -> Aggregation:
    """Return what became of the servers' own metrics, of which `entries` came."""
    faults = faults_of(entries)
    if not entries:
        return Aggregation(AggregationState.SKIPPED)
    return Aggregation(AggregationState.FAILED if faults else AggregationState.SUCCEEDED, faults)


class StatusFile(msgspec.Struct):
    """The status file of one session."""

    paths: RunPaths
    manifest: RunManifest
    standings: Standings
    rules: Rules
    clock: Clock
    batch_manifest: str | None = None
    _failed: bool = False

    @asynccontextmanager
    async def kept(self) -> AsyncIterator[None]:
        """Write that the run goes on, now and every few seconds, while the block runs."""
        self.write(RunState.RUNNING)
        beating = asyncio.create_task(self._beat())
        try:
            yield
        finally:
            beating.cancel()
            await to_the_end(asyncio.wait([beating]))

    async def _beat(self) -> None:
        pause = _EVERY_S
        while True:
            await self.clock.sleep(pause)
            began = self.clock.monotonic()
            await to_the_end(asyncio.to_thread(self.write, RunState.RUNNING))
            pause = max(_EVERY_S, _REST * (self.clock.monotonic() - began))

    def write(
        self, state: RunState, aggregation: Aggregation | None = None, reason: IncompleteReason | None = None
    ) -> None:
        """Write the counts as the fold stands."""
        if self._failed:
            return
        try:
            self._write(state, aggregation or Aggregation(AggregationState.PENDING), reason)
        except _FAULTS as error:
            self._failed = True
            told = "the status file of %s cannot be written and is not written any more: %s"
            _LOG.warning(told, self.paths.output, error, exc_info=not isinstance(error, OSError | RollbookError))

    def _write(self, state: RunState, aggregation: Aggregation, reason: IncompleteReason | None) -> None:
        status = self._status(state)
        document = batch_status(
            status,
            batch_state(status),
            aggregation,
            updated_at=timestamp(self.clock.now()),
            batch_manifest_sha256=_sha256(self.batch_manifest),
            reason=reason,
        )
        write_batch_status(self.paths.output, document)

    def _status(self, state: RunState) -> RunStatus:
        groups, unplanned = self.standings.counted(self.rules)
        coverage = coverage_of(groups, unplanned=unplanned)
        return RunStatus(
            output=self.paths.output,
            state=state,
            run_id=self.manifest.run_id,
            managed=True,
            coverage=coverage,
            groups=tuple(map(group_status, groups)),
            sessions=(),
            attempts=0,
            refused=self.standings.refused_attempts,
            cap=self.rules.cap,
            owed_by=owed_by(coverage),
            not_owed_by=not_owed_by(coverage),
            damage=(),
            started_at=self.manifest.created_at,
            elapsed_s=None,
            tokens=None,
            notes=(),
        )


def _sha256(manifest: str | None) -> str | None:
    if manifest is None:
        return None
    return hashlib.sha256(Path(resolve_read_path(manifest)).read_bytes()).hexdigest()
