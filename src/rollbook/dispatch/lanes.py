"""The n places in which a rollout can be in flight.

Rules:
* As many tasks as lanes, whatever the length of the plan.
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
        self._left = count
        self._ending = False
        self._tasks = [asyncio.create_task(work()) for _ in range(count)]
        for task in self._tasks:
            task.add_done_callback(self._one_ended)

    @property
    def are_done(self) -> bool:
        """Whether every lane ran out of work."""
        return self._left == 0 and self.error is None

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
