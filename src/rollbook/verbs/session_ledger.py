"""The ledger as one session sees it: every word of dispatch is on disk first, and in the fold then.

Rules:
* A number is taken from the fold and handed out once its line is durable.
* The session says how it ended, whatever ended it; when even that cannot be written, its files say it.

Source: collection.md §5.4.2, §17.1.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress

from rollbook.clock import Clock, timestamp
from rollbook.errors import LedgerError
from rollbook.ledger.handed import Handed
from rollbook.ledger.writer import Writer
from rollbook.plan.rollouts import numbered
from rollbook.records.ending import Ending
from rollbook.records.manifest import Closed, Cut, Opened, Refused, Stopped, flat
from rollbook.records.record import Record
from rollbook.records.standing import Standings
from rollbook.records.task import Rollout


class SessionLedger:
    """What dispatch is given to write to."""

    def __init__(self, writer: Writer, standings: Standings, run_id: str, session: int, clock: Clock) -> None:
        self._writer = writer
        self._standings = standings
        self._run_id = run_id
        self._session = session
        self._clock = clock
        self._how = "finished"

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        """Write that the session began, and, whatever the block comes to, that it ended."""
        began = Opened(self._session, self._run_id, timestamp(self._clock.now()), self._writer.sizes)
        await self._writer.note(began)
        try:
            yield
        except BaseException as error:
            self._how = f"failed: {type(error).__name__}"
            with suppress(LedgerError):
                await self._close()
            raise
        await self._close()

    async def _close(self) -> None:
        ended = timestamp(self._clock.now())
        await self._writer.note(Closed(self._how, ended, self._writer.sizes, self._writer.elapsed))

    def reserve(self, rollout: Rollout) -> Handed[Rollout]:
        """Return `rollout` with its next attempt number, which is durable once this was awaited."""
        attempt = self._standings.next_attempt(rollout.key)
        self._standings.reserved(rollout.key, attempt, self._session)
        handed = self._writer.reserve(rollout.key, attempt)
        return handed.of(rollout if attempt == 0 else self._numbered(rollout, attempt))

    def _numbered(self, rollout: Rollout, attempt: int) -> Rollout:
        return numbered(rollout, attempt, reuses_deliverable=self._standings.reuses_deliverable(rollout.key))

    def write(self, rollout: Rollout, ending: Ending, elapsed: float | None = None) -> Handed[Record]:
        """Save how an attempt ended; it counts once it is on disk."""
        return self._writer.write(rollout, ending, elapsed).followed_by(self._standings.add)

    async def refused(self, rollout: Rollout, why: str) -> None:
        """Say that a reserved attempt never ran."""
        await self._writer.note(Refused(flat([(rollout.key, rollout.attempt)]), why))
        self._standings.refused(rollout.key, rollout.attempt)

    async def cut(self, rollouts: Sequence[Rollout], why: str) -> None:
        """Say that these attempts were in flight when this process ended them."""
        attempts = [(rollout.key, rollout.attempt) for rollout in rollouts]
        await self._writer.note(Cut(flat(attempts), why))
        for key, attempt in attempts:
            self._standings.cut(key, attempt)

    async def stopped(self, why: str) -> None:
        """Say that what is owed and was not sent is never started."""
        self._how = f"interrupted: {why}"
        await self._writer.note(Stopped(why))
        self._standings.stopped(why)
