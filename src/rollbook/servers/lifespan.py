"""The start and the end of an ASGI application that is served in this process.

Rules:
* Start and end happen in one task, as they do under a web server.
* An application that cannot start is an error with its own words; one that cannot end is logged.

Source: servers.md §3.2.
"""

import asyncio
import logging
from collections.abc import Mapping
from typing import Final

from starlette.types import ASGIApp, Message

from rollbook.errors import ServingError

_LOG = logging.getLogger(__name__)
_ASGI: Final = {"version": "3.0", "spec_version": "2.0"}


class Lifespan:
    """One application's lifespan. `state` is what it leaves for its requests."""

    def __init__(self, app: ASGIApp, name: str) -> None:
        self.state: dict[str, object] = {}
        self._app = app
        self._name = name
        self._inbox: asyncio.Queue[Message] = asyncio.Queue()
        self._outbox: asyncio.Queue[Message] = asyncio.Queue()
        self._task: asyncio.Task[None] | None = None

    async def startup(self) -> Mapping[str, object]:
        """Start the application and return its state.

        Raises:
            ServingError: it did not start; holds its own message.

        """
        scope = {"type": "lifespan", "asgi": _ASGI, "state": self.state}
        self._task = asyncio.ensure_future(self._app(scope, self._inbox.get, self._outbox.put))
        problem = await self._exchange("startup")
        if problem is not None:
            raise ServingError(f"server {self._name!r} did not start: {problem}")
        return self.state

    async def shutdown(self) -> None:
        """End the application."""
        if self._task is None or self._task.done():
            return
        problem = await self._exchange("shutdown")
        if problem is not None:
            _LOG.warning("server %r did not end well: %s", self._name, problem)

    async def _exchange(self, phase: str) -> str | None:
        """Say `phase` to the application, and return what went wrong."""
        if self._task is None:
            return "it was never started"
        self._inbox.put_nowait({"type": f"lifespan.{phase}"})
        answer = asyncio.ensure_future(self._outbox.get())
        await asyncio.wait({self._task, answer}, return_when=asyncio.FIRST_COMPLETED)
        if not answer.done():
            answer.cancel()
            error = None if self._task.cancelled() else self._task.exception()
            return repr(error) if error else "it ended without a word"
        message = answer.result()
        if message["type"] == f"lifespan.{phase}.complete":
            return None
        await asyncio.wait({self._task})
        return last_line(str(message.get("message", ""))) or "no reason given"


def last_line(text: str) -> str:
    """Return the last line of `text` that says something."""
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "")
