"""The one seam between dispatch and the disk.

Rules:
* What is handed over is on its way at once, and durable when it was awaited; a cancelled wait ends once it is.
* Dispatch never cancels another call: it waits until the call has ended, however it was told to end itself.
* Calls of different rollouts overlap; those of one rollout follow each other.

Source: collection.md §3.2, §5.4.2.
"""

from collections.abc import Generator, Sequence
from typing import Any, Protocol, TypeVar

from rollbook.records.ending import Ending
from rollbook.records.record import Record
from rollbook.records.task import Rollout

T_co = TypeVar("T_co", covariant=True)


class Promised(Protocol[T_co]):
    """A value that is on its way to the disk."""

    @property
    def value(self) -> T_co:
        """The value, which is not safe yet."""
        ...

    def __await__(self) -> Generator[Any, None, T_co]:
        """Wait until it is safe; raises `LedgerError` when it cannot be."""
        ...


class Ledger(Protocol):
    """Where attempts are written down before they are sent, and again when they end; all may raise `LedgerError`."""

    def reserve(self, rollout: Rollout) -> Promised[Rollout]:
        """Hand out the next attempt number of `rollout` that nobody had; the value is that attempt."""
        ...

    def write(self, rollout: Rollout, ending: Ending, elapsed: float | None = None) -> Promised[Record]:
        """Save how an attempt ended, after `elapsed` seconds; awaiting it gives what was saved of it."""
        ...

    async def refused(self, rollout: Rollout, why: str) -> None:
        """Say that a reserved attempt never ran; its rollout is still owed."""
        ...

    async def cut(self, rollouts: Sequence[Rollout], why: str) -> None:
        """Say that these attempts were in flight when dispatch ended them."""
        ...

    async def stopped(self, why: str) -> None:
        """Say that admission ended: what is owed and was not sent is never started."""
        ...
