"""What was handed to a writer, and the wait until it is committed.

Rules:
* The value is known at once; whoever awaits it goes on once it is safe, or with the error that kept it from being so.
* A wait cannot be cancelled: a cancellation is raised when what was handed over is safe. The error that kept it from
  being so goes before a cancellation.
* What goes out in one commit shares one wait.

Source: collection.md §3.2, §19.
"""

import asyncio
from collections.abc import Callable, Generator
from typing import Any, Generic, TypeVar

from rollbook.errors import LedgerError

T = TypeVar("T")
U = TypeVar("U")


class Commit(asyncio.Future[None]):
    """One commit to come. A task that waits for it and is cancelled is told so when it has come."""

    def cancel(self, msg: Any | None = None) -> bool:
        """Refuse: what is being written is written."""
        del msg
        return False

    def settle(self, error: LedgerError | None) -> None:
        """Release whoever waits; an error that nobody waits for is nobody's."""
        if self.done():
            return
        if error is None:
            self.set_result(None)
        else:
            self.set_exception(error)
            self.exception()


class Handed(Generic[T]):
    """A value that is on its way to the disk; `then` is done with it once it is there, and gives what a wait gives."""

    __slots__ = ("_commit", "_then", "value")

    def __init__(self, value: T, commit: Commit, then: Callable[[T], T] | None = None) -> None:
        self.value = value
        self._commit = commit
        self._then = then

    def __await__(self) -> Generator[Any, None, T]:
        """Wait until it is safe."""
        try:
            yield from self._commit
        except asyncio.CancelledError:
            if self._commit.done():
                self._commit.result()
                self._now_safe()
            raise
        return self._now_safe()

    def _now_safe(self) -> T:
        then, self._then = self._then, None
        if then is not None:
            self.value = then(self.value)
        return self.value

    def of(self, value: U) -> "Handed[U]":
        """Return another value that is safe when this one is."""
        return Handed(value, self._commit)

    def followed_by(self, then: Callable[[T], T]) -> "Handed[T]":
        """Return the same, with something to do once it is safe."""
        return Handed(self.value, self._commit, then)
