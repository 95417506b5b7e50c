"""The iterator that trainers drive: awaitables of `(row, result)`, and two ways to stop early.

Rules:
* It adds nothing to the completions that it hands on, except that what the call opened is closed with it. Whoever ends
  it returns once that is done, the first as well as the last.

Source: collection.md §3.3, §11.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Self

from rollbook.api.direct_rollouts import RowResult
from rollbook.dispatch.completions import Completions


class RowResults:
    """Awaitables of `(row, result)` in the order in which rollouts end.

    An awaitable raises what its rollout raised. After an early stop, those that find nothing raise `CancelledError`
    although nobody cancelled their task; `asyncio.gather` and `TaskGroup` take that for a cancellation.
    """

    def __init__(
        self, completions: Completions[RowResult], on_close: Callable[[], Awaitable[None]] | None = None
    ) -> None:
        self._completions = completions
        self._on_close = on_close

    def __iter__(self) -> Self:
        """Return itself."""
        return self

    def __next__(self) -> Awaitable[RowResult]:
        """Return an awaitable of the next result."""
        return next(self._completions)

    async def aclose(self) -> None:
        """Cancel the rollouts that are unfinished, and return once their tasks in this process have ended.

        The connection of each running `/run` is closed. What its server makes of that is not waited for: its agent and
        its sandboxes may go on, and the attempt is not retired. May be called again, and before anything was fetched.
        """
        await self._completions.aclose()
        await self._finish()

    async def aclose_and_drain(self) -> "list[asyncio.Future[RowResult]]":
        """Stop as `aclose` does, and return settled futures of the results that nobody had claimed before.

        What an awaitable claimed is its own: await it as well. A second call returns nothing, and so does a call after
        `aclose`. Exceptions in the futures are the rollouts' own; a future that is let go of reports none.
        """
        settled = await self._completions.aclose_and_drain()
        await self._finish()
        return settled

    async def _finish(self) -> None:
        if self._on_close is not None:
            await self._on_close()
