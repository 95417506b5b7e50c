"""The attempts whose numbers are out and whose ending is not down yet.

Rules:
* A number is unsent, then in flight, then neither: written, refused, or cut.
* At the close each that is left is told to the ledger: the unsent as refused, those in flight as cut, all in one call.

Source: collection.md §5.4.2.
"""

from asyncio import CancelledError
from typing import Final

from rollbook.dispatch.ledger_seam import Ledger
from rollbook.errors import LedgerError
from rollbook.records.ending import Ending
from rollbook.records.identity import RolloutKey
from rollbook.records.record import Record
from rollbook.records.task import Rollout

UNSENT: Final = "stopped before it was sent"


class Outstanding:
    """A ledger, and what it has not heard the end of."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._unsent: dict[RolloutKey, Rollout] = {}
        self._in_flight: dict[RolloutKey, Rollout] = {}

    async def reserve(self, rollout: Rollout) -> Rollout:
        """Return `rollout` with a number of its own."""
        promised = self._ledger.reserve(rollout)
        self._unsent[rollout.key] = promised.value
        try:
            return await promised
        except LedgerError:
            del self._unsent[rollout.key]
            raise

    def sent(self, attempt: Rollout) -> None:
        """Take down that the request is about to leave."""
        del self._unsent[attempt.key]
        self._in_flight[attempt.key] = attempt

    async def write(self, attempt: Rollout, ending: Ending, elapsed: float) -> tuple[Record, CancelledError | None]:
        """Save how the attempt ended, after `elapsed` seconds; return what was saved, and a cancellation meanwhile."""
        promised = self._ledger.write(attempt, ending, elapsed)
        cancelled: CancelledError | None = None
        try:
            await promised
        except CancelledError as error:
            cancelled = error
        del self._in_flight[attempt.key]
        return promised.value, cancelled

    async def refused(self, attempt: Rollout, why: str) -> None:
        """Say that the attempt never ran."""
        await self._ledger.refused(attempt, why)
        self._forget(attempt)

    async def cut(self, attempt: Rollout, why: str) -> None:
        """Say that the attempt was ended while it was in flight."""
        await self._ledger.cut((attempt,), why)
        self._forget(attempt)

    def _forget(self, attempt: Rollout) -> None:
        for held in (self._unsent, self._in_flight):
            held.pop(attempt.key, None)

    async def close(self, why: str) -> int:
        """End what is left, and admission; return how many attempts were in flight."""
        for attempt in tuple(self._unsent.values()):
            await self.refused(attempt, UNSENT)
        cut = tuple(self._in_flight.values())
        if cut:
            await self._ledger.cut(cut, why)
        await self._ledger.stopped(why)
        return len(cut)
