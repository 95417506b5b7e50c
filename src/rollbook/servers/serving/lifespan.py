"""The start and the end of an ASGI application that is served in this process.

Rules:
* Start and end happen in one task, as they do under a web server.
* An application that cannot start is an error with its own words; one that cannot end is logged.
* Both have a time limit. What was not started in time, or whose start was interrupted, is cancelled and waited for, so
  that it gives back what it holds.

Source: servers.md §2.3, §3.2.
"""

import asyncio
import logging
from collections.abc import Mapping
from typing import Final

from starlette.types import ASGIApp, Message

from rollbook.errors import ServingError
from rollbook.servers.http.time_limits import SPINUP_KEY, SPINUP_SECONDS

_LOG = logging.getLogger(__name__)
SHUTDOWN_SECONDS: Final = 1.0
_ASGI: Final = {"version": "3.0", "spec_version": "2.0"}


class Lifespan:
    """One application's lifespan. `state` is what it leaves for its requests; limits are in seconds."""

    def __init__(
        self, app: ASGIApp, name: str, *, to_start: float = SPINUP_SECONDS, to_end: float = SHUTDOWN_SECONDS
    ) -> None:
        self.state: dict[str, object] = {}
        self._app = app
        self._name = name
        self._to_start = to_start
        self._to_end = to_end
        self._inbox: asyncio.Queue[Message] = asyncio.Queue()
        self._outbox: asyncio.Queue[Message] = asyncio.Queue()
        self._task: asyncio.Task[None] | None = None

    async def startup(self) -> Mapping[str, object]:
        """Start the application and return its state.

        Raises:
            ServingError: it did not start, or not in time; holds its own message, or the key that allows more.

        """
        scope = {"type": "lifespan", "asgi": _ASGI, "state": self.state}
        self._task = asyncio.ensure_future(self._app(scope, self._inbox.get, self._outbox.put))
        self._task.add_done_callback(_noticed)
        started = False
        try:
            async with asyncio.timeout(self._to_start):
                problem = await self._exchange("startup")
            started = problem is None
        except TimeoutError:
            problem = f"it took longer than {self._to_start:g} s; allow more: ++{SPINUP_KEY}=<seconds>"
        finally:
            if not started:
                await self._cancel()
        if problem is not None:
            raise ServingError(f"server {self._name!r} did not start: {problem}")
        return self.state

    async def shutdown(self) -> None:
        """End the application, or cancel what of it is left when its time is over."""
        if self._task is None or self._task.done():
            return
        problem: str | None = None
        try:
            async with asyncio.timeout(self._to_end):
                problem = await self._exchange("shutdown")
                await asyncio.wait({self._task})
        except TimeoutError:
            problem = f"it was still ending after {self._to_end:g} s, and was cancelled"
        finally:
            await self._cancel()
        if problem is not None:
            _LOG.warning("server %r did not end well: %s", self._name, problem)

    async def _cancel(self) -> None:
        """Cancel what is left of the application, and give it the time of an end."""
        if self._task is not None and not self._task.done():
            self._task.cancel()
            await asyncio.wait({self._task}, timeout=self._to_end)

    async def _exchange(self, phase: str) -> str | None:
        """Say `phase` to the application, and return what went wrong."""
        if self._task is None:
            return "it was never started"
        self._inbox.put_nowait({"type": f"lifespan.{phase}"})
        answer = asyncio.ensure_future(self._outbox.get())
        try:
            await asyncio.wait({self._task, answer}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            answer.cancel()
        if not answer.done():
            error = None if self._task.cancelled() else self._task.exception()
            return repr(error) if error else "it ended without a word"
        message = answer.result()
        if message["type"] == f"lifespan.{phase}.complete":
            return None
        await asyncio.wait({self._task})
        return last_line(str(message.get("message", ""))) or "no reason given"


def _noticed(task: "asyncio.Task[None]") -> None:
    """Take note of how `task` ended: an application says what went wrong in its messages, and raises it too."""
    if not task.cancelled():
        task.exception()


def last_line(text: str) -> str:
    """Return the last line of `text` that says something."""
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "")
