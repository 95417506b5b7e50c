"""Who gets which finished task: a queue of outcomes that nobody claimed, and of those who wait for one.

Rules:
* An outcome is claimed the moment it meets somebody who waits for it, the longest waiting first; then it is theirs.
* One that was claimed by somebody who is cancelled before taking it goes to the next, or back to where it stood.
* After the end nobody is made to wait: who finds nothing raises `CancelledError`, as do those who wait already.

Source: collection.md §3.3.
"""

import asyncio
from collections import deque
from typing import Generic, TypeVar

T = TypeVar("T")


class Claims(Generic[T]):
    """Settled tasks and the waiters for them; at any time there are only the ones or only the others."""

    def __init__(self) -> None:
        self._ready: deque[asyncio.Task[T]] = deque()
        self._waiting: deque[asyncio.Future[asyncio.Task[T]]] = deque()
        self._keeps = True
        self._ended = False

    def put(self, task: asyncio.Task[T]) -> None:
        """Give a settled task to whoever waits longest, or keep it; after the end nobody is given it."""
        if not self._ended and not self._given(task):
            self._ready.append(task)

    async def take(self) -> asyncio.Task[T]:
        """Return the next settled task, waiting for it if need be.

        Raises:
            CancelledError: it is over, or the caller was cancelled; which of the two, the caller's task knows.

        """
        if self._ready:
            return self._ready.popleft()
        if self._ended:
            raise asyncio.CancelledError
        waiter: asyncio.Future[asyncio.Task[T]] = asyncio.get_running_loop().create_future()
        self._waiting.append(waiter)
        try:
            return await waiter
        except asyncio.CancelledError:
            self._left(waiter)
            raise

    def end(self, *, keep: bool) -> list[asyncio.Task[T]]:
        """Send away who waits, take nothing more, and return what nobody claimed.

        With `keep` it stays for those who ask later, too.
        """
        self._ended, self._keeps = True, keep
        while self._waiting:
            self._waiting.popleft().cancel()
        unclaimed = list(self._ready)
        if not keep:
            self._ready.clear()
        return unclaimed

    def _given(self, task: asyncio.Task[T]) -> bool:
        while self._waiting:
            waiter = self._waiting.popleft()
            if not waiter.done():
                waiter.set_result(task)
                return True
        return False

    def _left(self, waiter: "asyncio.Future[asyncio.Task[T]]") -> None:
        if waiter.cancelled():
            if waiter in self._waiting:
                self._waiting.remove(waiter)
        elif self._keeps and not self._given(waiter.result()):
            self._ready.appendleft(waiter.result())
