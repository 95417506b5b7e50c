"""A shard that was opened: the rollouts of its call on their way to the disk, one by one, and the shard's end.

Rules:
* A rollout is handed over once its record is on disk, and the status file tells of it; of a shard of very many rows
  the status follows within a second, because counting them takes its time. The event loop writes nothing.
* Rollouts are saved as a run saves them, and a result with how long it took; only a try that left no result is an
  omitted row, or nothing.
* The files are open before the first rollout is sent, and none is sent once one could not be written.
* What was reserved and never sent is told when the call ends. Nothing is written once somebody else opened the shard.

Source: collection.md §11, §21.2 (16).
"""

import asyncio
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from rollbook.api.batch import StatusFile
from rollbook.api.direct_completed import CompletedRollout
from rollbook.api.direct_rows import DirectRow
from rollbook.clock import Clock, timestamp
from rollbook.dispatch.waiting import to_the_end
from rollbook.errors import LedgerError
from rollbook.ledger.paths import RunPaths
from rollbook.ledger.reader import plain_blocks
from rollbook.ledger.shard import ShardLock, ShardWriter
from rollbook.outcomes.verdict import as_evidence, ends_the_run
from rollbook.records.blocks import fold_plan_blocks
from rollbook.records.codec import RunStamp, encode
from rollbook.records.disposition import Rules
from rollbook.records.ending import Ending
from rollbook.records.identity import RolloutKey
from rollbook.records.json_values import JsonObject
from rollbook.records.manifest import Closed, Cut, Refused, RunManifest, Stopped, flat
from rollbook.records.outcome import Interrupted, NeverStarted, Result
from rollbook.records.run_status import RunState
from rollbook.records.standing import Standings
from rollbook.records.task import Rollout
from rollbook.verbs.batch_status import IncompleteReason

_LOG = logging.getLogger(__name__)
_TOLD_EACH: Final = 2000
"""Of so many rows at most, the status is written with each rollout."""
_SOON_S: Final = 1.0
_CLOSED: Final = "the iterator was closed before it was sent"


@dataclass(frozen=True, slots=True)
class ShardJournal:
    """What a shard is written with. `record_omitted`: tries that left no result are written, too."""

    paths: RunPaths
    manifest: RunManifest
    lock: ShardLock
    clock: Clock
    record_omitted: bool = False

    def writer(self) -> ShardWriter:
        """Return the writer of the shard."""
        stamp = RunStamp(self.manifest.run_id, self.manifest.attempt_cap)
        return ShardWriter(self.paths, stamp, self.clock, self.lock, record_omitted=self.record_omitted)

    def planned(self) -> Standings:
        """Return the fold of the shard's rows, of which nothing is known yet."""
        standings = Standings()
        blocks = plain_blocks(self.paths.materialized_inputs, self.manifest.plan.bytes)
        fold_plan_blocks(blocks, standings, lambda _number, _fault: None)
        return standings

    def status(self, standings: Standings) -> StatusFile:
        """Return the status file of the shard."""
        rules = Rules(cap=self.manifest.attempt_cap)
        return StatusFile(self.paths, self.manifest, standings, rules, self.clock)


class ShardRecording:
    """Records what the rollouts of one call come to."""

    def __init__(self, journal: ShardJournal, rows: Sequence[DirectRow], *, route_failures: bool) -> None:
        self._journal = journal
        self._route_failures = route_failures
        self._left: dict[RolloutKey, Rollout] = {row.rollout.key: row.rollout for row in rows}
        self._standings = journal.planned()
        for row in rows:
            self._standings.reserved(row.rollout.key, row.attempt, journal.manifest.session)
        self._status = journal.status(self._standings)
        self._writer = journal.writer()
        self._is_open = self._is_closed = self._was_cut = False
        self._broken: LedgerError | None = None
        self._opening = asyncio.Lock()
        self._flushing = asyncio.Lock()
        self._untold = True
        self._is_large = len(rows) > _TOLD_EACH
        self._telling: asyncio.Task[None] | None = None
        if not rows:
            self._is_closed = True
            self._tell(RunState.FINISHED)
            journal.lock.give_up()

    async def ready(self) -> None:
        """Have the files open, so that what is sent now can be recorded.

        Raises:
            ShardTakenOverError: a write found that somebody else opened the shard since.
            LedgerError: a write failed, or the files cannot be opened.

        """
        if self._broken is not None:
            raise self._broken.with_traceback(None)
        if not self._is_open:
            with self._noticed():
                await to_the_end(self._opened())

    async def write(self, completed: CompletedRollout) -> Path | None:
        """Record a rollout; return the file that holds it, or None for a try without a result that is not kept.

        Raises:
            ShardTakenOverError: somebody else opened the shard since.
            LedgerError: it is not on disk.

        """
        self._left.pop(completed.row.rollout.key, None)
        with self._noticed():
            path = await self._written(completed)
        self._untold = True
        if self._is_large:
            self._telling = self._telling or asyncio.create_task(self._tell_soon())
        elif path is not None:
            await self.flush_status()
        return path

    @contextmanager
    def _noticed(self) -> Iterator[None]:
        try:
            yield
        except LedgerError as error:
            self._broken = self._broken or error
            raise

    async def flush_status(self) -> None:
        """Write the status of the shard as it stands, unless the status file tells it already."""
        async with self._flushing:
            if self._untold:
                self._untold = False
                await asyncio.to_thread(self._tell, RunState.RUNNING)

    async def close(self) -> None:
        """Say what was never sent, and give the shard up. What goes wrong is logged: no rollout depends on it."""
        if self._is_closed:
            return
        self._is_closed = True
        try:
            await self._end()
        except LedgerError as error:
            _LOG.warning("the end of a shard is not on disk: %s", error)
        finally:
            await asyncio.to_thread(self._journal.lock.give_up)

    async def _written(self, completed: CompletedRollout) -> Path | None:
        rollout, paths = completed.row.rollout, self._journal.paths
        writer = await self._opened()
        record = await writer.write(rollout, self._saved(completed), self._elapsed(completed))
        outcome = record.outcome
        is_kept = self._journal.record_omitted or not isinstance(outcome, Interrupted | NeverStarted)
        if is_kept:
            self._standings.add(record)
        if isinstance(outcome, NeverStarted):
            await self._refuse([rollout], outcome.reason)
        elif isinstance(outcome, Interrupted) and completed.reply is None:
            await self._cut(rollout, outcome.message or _CLOSED)
        if not is_kept:
            return None
        return paths.output if isinstance(outcome, Result) else paths.failures

    async def _opened(self) -> ShardWriter:
        async with self._opening:
            if not self._is_open:
                await self._writer.__aenter__()
                self._is_open = True
        return self._writer

    def _saved(self, completed: CompletedRollout) -> Ending:
        """Return what is saved of a rollout, as a run saves it.

        A result says how long it took; a failure lists its sends where there were several.
        """
        ending, sends = completed.ending, completed.sends.fields()
        if isinstance(ending.outcome, Result):
            return _measured(ending, completed.performance)
        if ends_the_run(ending, route_failures=self._route_failures):
            ending = as_evidence(ending)
        if not sends:
            return ending
        return msgspec.structs.replace(ending, payload={**ending.payload, **sends})

    def _elapsed(self, completed: CompletedRollout) -> float | None:
        """Return the seconds since a rollout was sent first."""
        if not completed.sends.exchanges:
            return None
        first = completed.sends.exchanges[0]
        return self._journal.clock.monotonic() - (first.since if first.sent_at is None else first.sent_at)

    async def _cut(self, rollout: Rollout, why: str) -> None:
        self._was_cut = True
        await self._writer.note(Cut(flat([(rollout.key, rollout.attempt)]), why))
        self._standings.cut(rollout.key, rollout.attempt)

    async def _refuse(self, rollouts: Sequence[Rollout], why: str) -> None:
        attempts = [(rollout.key, rollout.attempt) for rollout in rollouts]
        await self._writer.note(Refused(flat(attempts), why))
        for key, attempt in attempts:
            self._standings.refused(key, attempt)

    async def _tell_soon(self) -> None:
        await self._journal.clock.sleep(_SOON_S)
        self._telling = None
        await self.flush_status()

    async def _end(self) -> None:
        if self._telling is not None:
            self._telling.cancel()
        writer = await self._opened()
        unsent, self._left = list(self._left.values()), {}
        try:
            if unsent:
                await self._never_sent(writer, unsent)
            how = "interrupted: the iterator was closed" if unsent or self._was_cut else "finished"
            at = timestamp(self._journal.clock.now())
            await writer.note(Closed(how, at, writer.sizes, writer.elapsed))
        finally:
            await writer.__aexit__(None)
        reason = IncompleteReason.STOPPED if unsent or self._was_cut else None
        state = RunState.FINISHED if reason is None else RunState.INTERRUPTED
        async with self._flushing:
            self._untold = False
            await asyncio.to_thread(self._tell, state, reason)

    async def _never_sent(self, writer: ShardWriter, unsent: Sequence[Rollout]) -> None:
        """Say that these rollouts were not sent; a resume sends them."""
        if self._journal.record_omitted:
            for rollout in unsent:
                self._standings.add(await writer.write(rollout, Ending(NeverStarted(_CLOSED))))
        await self._refuse(unsent, _CLOSED)
        await writer.note(Stopped(_CLOSED))
        self._standings.stopped(_CLOSED)

    def _tell(self, state: RunState, reason: IncompleteReason | None = None) -> None:
        """Write the status file, unless it is another one's by now."""
        try:
            with self._journal.lock.writing():
                self._status.write(state, reason=reason)
        except LedgerError as error:
            _LOG.warning("the status file of a shard is not written: %s", error)


def _measured(ending: Ending, performance: JsonObject) -> Ending:
    """Return `ending` with what was measured; a reply that is kept as it came is an object with a key at least."""
    if not performance:
        return ending
    if ending.kept is None:
        return msgspec.structs.replace(ending, payload={**ending.payload, **performance})
    kept = b"".join((memoryview(ending.kept)[:-1], b",", encode(performance)[1:]))
    return msgspec.structs.replace(ending, kept=kept)
