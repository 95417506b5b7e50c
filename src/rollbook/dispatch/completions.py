"""Work of any kind → awaitables of its outcomes, in the order in which they end.

Rules:
* Each awaitable resolves to the next outcome that nobody claimed, or raises what its work raised; one that fails stops
  no other.
* Eager work begins with the first `next`, all of it and in its order. Bounded work begins when an awaitable is awaited,
  and what runs or waits to be claimed is never more than the limit.
* Ending twice, or before anything began, does no harm. Only work of this process is waited for.
* Nothing is said about outcomes that nobody fetched: whoever abandons an iterator leaves its work running, silently.

Source: collection.md §3.3, §17.2, §21.2 (12, 19).
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterable
from typing import Any, Generic, Self, TypeVar

from rollbook.dispatch.completion_claims import Claims

T = TypeVar("T")
Start = Callable[[], Coroutine[Any, Any, T]]

_running: "set[asyncio.Task[Any]]" = set()
"""The event loop holds its tasks weakly; these must outlive an iterator that was abandoned."""


class HandedOut(Coroutine[Any, Any, T]):
    """A coroutine that is made when it is first awaited, so that one that is let go of warns nobody."""

    __slots__ = ("_begin", "_begun")

    def __init__(self, begin: Start[T]) -> None:
        self._begin = begin
        self._begun: Coroutine[Any, Any, T] | None = None

    def __await__(self) -> Generator[Any, Any, T]:
        """Wait for the outcome; as with any coroutine, once."""
        return self._coroutine().__await__()

    def send(self, value: Any) -> Any:
        """Go on, as a task does with its coroutine."""
        return self._coroutine().send(value)

    def throw(self, *error: Any) -> Any:
        """Go on with an error, as a task does with its coroutine."""
        return self._coroutine().throw(*error)

    def close(self) -> None:
        """Give up waiting."""
        if self._begun is not None:
            self._begun.close()

    def _coroutine(self) -> Coroutine[Any, Any, T]:
        if self._begun is None:
            self._begun = self._begin()
        return self._begun


class Completions(ABC, Generic[T]):
    """An iterator over `total` awaitables of the outcomes of `starts`, each a function that makes a coroutine."""

    def __init__(self, starts: Iterable[Start[T]], total: int) -> None:
        self._starts = iter(starts)
        self._left = total
        self._claims: Claims[T] = Claims()
        self._tasks: dict[asyncio.Task[T], None] = {}
        self._closed = False

    def __iter__(self) -> Self:
        """Return itself."""
        return self

    def __next__(self) -> Awaitable[T]:
        """Return an awaitable of the next outcome."""
        if self._closed or self._left <= 0:
            raise StopIteration
        self._before_next()
        self._left -= 1
        return HandedOut(self._outcome)

    async def aclose(self) -> None:
        """Cancel what is unfinished, and return once its tasks have ended."""
        if not self._closed:
            self._closed = True
            self._claims.end(keep=self._keeps_unclaimed)
        await self._cancelled()

    async def aclose_and_drain(self) -> "list[asyncio.Future[T]]":
        """End as `aclose` does, and return the settled futures of what had ended before and nobody claimed.

        What was cancelled by then comes back cancelled; what this call cancels does not come back. They are given out
        once: after another call, or after `aclose`, there are none.
        """
        unclaimed: list[asyncio.Future[T]] = []
        if not self._closed:
            self._closed = True
            for task in [task for task in self._tasks if task.done()]:
                self._settled(task)
            unclaimed = list(self._claims.end(keep=False))
        await self._cancelled()
        return unclaimed

    @property
    @abstractmethod
    def _keeps_unclaimed(self) -> bool:
        """Whether awaitables that were handed out before `aclose` still find what had ended by then."""

    def _before_next(self) -> None:
        """Begin what begins before anything is awaited."""

    @abstractmethod
    async def _outcome(self) -> T:
        """Return the next outcome, or raise it."""

    def _begin_next(self) -> bool:
        """Begin the next piece of work; False when there is none."""
        start = next(self._starts, None)
        if start is None:
            return False
        task = asyncio.get_running_loop().create_task(start())
        self._tasks[task] = None
        _running.add(task)
        task.add_done_callback(self._ended)
        return True

    def _ended(self, task: "asyncio.Task[T]") -> None:
        _running.discard(task)
        if not task.cancelled():
            task.exception()
        if task in self._tasks:
            self._settled(task)

    def _settled(self, task: "asyncio.Task[T]") -> None:
        del self._tasks[task]
        self._claims.put(task)

    async def _cancelled(self) -> None:
        ending = list(self._tasks)
        for task in ending:
            task.cancel()
        if ending:
            await asyncio.wait(ending)


class EagerCompletions(Completions[T]):
    """All of the work at once, from the first `next` on."""

    _began = False
    _keeps_unclaimed = True

    def _before_next(self) -> None:
        if not self._began:
            asyncio.get_running_loop()
            self._began = True
            while self._begin_next():
                pass

    async def _outcome(self) -> T:
        task = await self._claims.take()
        return task.result()


class BoundedCompletions(Completions[T]):
    """So much of the work at a time: `limit` pieces run or have ended unclaimed, never more."""

    _keeps_unclaimed = False

    def __init__(self, starts: Iterable[Start[T]], total: int, limit: int) -> None:
        super().__init__(starts, total)
        self._limit = limit
        self._resident = 0

    async def _outcome(self) -> T:
        self._fill()
        task = await self._claims.take()
        self._resident -= 1
        self._fill()
        return task.result()

    def _fill(self) -> None:
        while not self._closed and self._resident < self._limit and self._begin_next():
            self._resident += 1
