"""What an episode has to give back when it ends, in the reverse order of taking.

Rules:
* Each callback is bounded in time; one that fails or takes too long is logged and never replaces the episode's ending.
* Cancellation waits for the clean-up: what was begun is finished, then the cancellation goes on.
* A callback that was closed early does not run again, unless it failed: then whoever closed it is told, and it is tried
  once more when the episode ends.

Source: servers.md §3.10.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any

_LOG = logging.getLogger(__name__)
Callback = Callable[[], Awaitable[object]]


@dataclass(eq=False, slots=True)
class CleanupHandle:
    """One registered callback."""

    name: str
    _callback: Callback
    _context: "CleanupContext"

    async def close(self) -> None:
        """Run the callback now, if it has not run yet.

        Raises:
            TimeoutError: it took longer than a clean-up may.
            Exception: whatever the callback raised.

        """
        await self._context.close_early(self)

    async def run_bounded(self, seconds: float) -> None:
        """Run the callback for `seconds` at most."""
        async with asyncio.timeout(seconds):
            await self._callback()

    async def run(self, seconds: float) -> None:
        """Run the callback for `seconds` at most, and log what goes wrong."""
        try:
            await self.run_bounded(seconds)
        except Exception:  # noqa: BLE001  one thing left behind must not keep the rest; see docs/architecture.md
            _LOG.exception("cleaning up %s failed or took longer than %s s", self.name, seconds)


class CleanupContext:
    """The callbacks of one episode; `seconds` bounds each of them."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._handles: list[CleanupHandle] = []

    def register_cleanup(self, name: str, callback: Callback) -> CleanupHandle:
        """Run `callback` when the episode ends, before everything that was registered earlier."""
        handle = CleanupHandle(name, callback, self)
        self._handles.append(handle)
        return handle

    async def close_early(self, handle: CleanupHandle) -> None:
        """Run one callback now; later it does not run again, unless it fails now."""
        if handle not in self._handles:
            return
        place = self._handles.index(handle)
        self._handles.remove(handle)
        ended = False
        try:
            await finished(handle.run_bounded(self._seconds))
            ended = True
        finally:
            if not ended:
                self._handles.insert(place, handle)

    async def close(self) -> None:
        """Run what is left, last one first."""
        if self._handles:
            await finished(self._close_all())

    async def _close_all(self) -> None:
        while self._handles:
            await self._handles.pop().run(self._seconds)


async def finished(work: Coroutine[Any, Any, None]) -> None:
    """Wait until `work` is done, also while being cancelled."""
    task = asyncio.ensure_future(work)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        while not task.done():
            try:
                await asyncio.wait({task})
            except asyncio.CancelledError:
                continue
        raise
