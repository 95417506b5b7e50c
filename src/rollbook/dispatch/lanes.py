"""The n places in which a rollout can be in flight.

Rules:
* As many tasks as lanes, whatever the length of the plan. Lanes are added, never taken away: one that may not start
  anything waits.
* The first lane to break ends the wait for all; its error is the one that is kept.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any


class Lanes:
    """Equal tasks that end together. `over` is set when all have ended, or one broke; `error` is what broke it."""

    def __init__(self, count: int, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self.over = asyncio.Event()
        self.error: BaseException | None = None
        self._work = work
        self._left = 0
        self._ending = False
        self._tasks: list[asyncio.Task[None]] = []
        self.grow_to(count)

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._tasks)

    @property
    def are_done(self) -> bool:
        """Whether every lane ran out of work."""
        return self._left == 0 and self.error is None

    def grow_to(self, count: int) -> None:
        """Have at least `count` lanes, unless they are ending."""
        if self._ending or self.over.is_set():
            return
        for _ in range(count - len(self._tasks)):
            task = asyncio.create_task(self._work())
            task.add_done_callback(self._one_ended)
            self._tasks.append(task)
            self._left += 1

    async def end(self) -> None:
        """Cancel the lanes that still run, and wait for them: they finish what must not be cut."""
        self._ending = True
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _one_ended(self, task: asyncio.Task[None]) -> None:
        self._left -= 1
        self.error = self.error or self._broken_by(task)
        if self.error is not None or self._left == 0:
            self.over.set()

    def _broken_by(self, task: asyncio.Task[None]) -> BaseException | None:
        if task.cancelled():
            return None if self._ending else asyncio.CancelledError()
        return task.exception()
