"""One call of `run_examples` or `run_outcomes`: its options, checked, and the iterator over its rollouts.

Rules:
* An option that cannot be followed is an error that names it, before anything is sent.
* Nothing is opened before the first rollout is sent, and it is closed after the last one ended, or with the iterator.

Source: collection.md §3.1, §3.5, §11, §21.2 (11).
"""

import asyncio
import logging
import math
from collections.abc import Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

from rollbook.api.direct_errors import DirectCallError
from rollbook.api.direct_rollouts import DirectRollouts, Handover, RowResult
from rollbook.api.direct_rows import DirectRow
from rollbook.api.direct_sending import Sending
from rollbook.api.row_results import RowResults
from rollbook.clock import Clock
from rollbook.dispatch.completion_budget import DispatchBudget, DispatchLatencyTracker
from rollbook.dispatch.completions import BoundedCompletions, Completions, EagerCompletions, Start
from rollbook.dispatch.transport import Transport
from rollbook.dispatch.waiting import to_the_end
from rollbook.records.exchange import Exchange, Reply, Upload
from rollbook.servers.client import ServerClient
from rollbook.servers.serving.remote import RemoteDeployment

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Pacing:
    """When rollouts of a call may start. Times are in seconds; None is for no limit."""

    semaphore: AbstractAsyncContextManager[Any] | None = None
    max_resident_tasks: int | None = None
    budget: float | None = None
    margin: float | None = None
    tracker: DispatchLatencyTracker = field(default_factory=DispatchLatencyTracker)

    def __post_init__(self) -> None:
        """Refuse what cannot be followed.

        Raises:
            DirectCallError: names the argument and what it may be.

        """
        limit = self.max_resident_tasks
        if limit is not None and (type(limit) is not int or limit < 1):
            raise DirectCallError(f"max_resident_tasks must be a whole number from 1 on, or None; found {limit!r}")
        for name, seconds in (("dispatch_budget_s", self.budget), ("drain_margin_s", self.margin)):
            if seconds is not None and not _is_time(seconds):
                raise DirectCallError(f"{name} must be a number of seconds from 0 on, or None; found {seconds!r}")
        if not callable(getattr(self.tracker, "record", None)):
            raise DirectCallError(f"latency_tracker must be a DispatchLatencyTracker, or None; found {self.tracker!r}")
        if self.semaphore is not None and not isinstance(self.semaphore, AbstractAsyncContextManager):
            raise DirectCallError(
                f"semaphore must be an asynchronous context manager like asyncio.Semaphore(8), or None; "
                f"found {self.semaphore!r}"
            )

    @property
    def is_late(self) -> bool:
        """Whether every rollout starts before any time of the budget is spent."""
        return bool(self.budget) and self.semaphore is None and self.max_resident_tasks is None


def _is_time(seconds: object) -> bool:
    if not isinstance(seconds, int | float) or isinstance(seconds, bool):
        return False
    return math.isfinite(seconds) and seconds >= 0


class ClosableTransport(Transport, Protocol):
    """A `Transport` with connections of its own."""

    async def aclose(self) -> None:
        """Close what is open; twice does no harm."""
        ...


@dataclass(frozen=True, slots=True)
class DirectCall:
    """A call: where its rows go, when they may start, and how they are handed over. Its budget counts from `began`."""

    transport: ClosableTransport
    clock: Clock
    began: float
    pacing: Pacing
    handover: Handover
    most_sends: int = 1

    def results(self, rows: Sequence[DirectRow]) -> RowResults:
        """Return the iterator over the rollouts of `rows`; none starts before it is used."""
        pacing = self.pacing
        if pacing.is_late:
            _LOG.warning(
                "dispatch_budget_s=%s refuses nothing: without semaphore or max_resident_tasks all rows start at once",
                pacing.budget,
            )
        deadline = self.began + pacing.budget if pacing.budget is not None else None
        budget = DispatchBudget(pacing.tracker, deadline, pacing.margin)
        sink = self.handover.sink
        ready = sink.ready if sink is not None else None
        sending = Sending(self.transport, self.clock, budget, pacing.semaphore, self.most_sends, ready)
        carrying = _Carrying(DirectRollouts(sending, self.handover), self.transport, len(rows))
        starts = (partial(carrying.carry, row) for row in rows)
        return RowResults(_completions(starts, len(rows), pacing.max_resident_tasks), carrying.close)


@dataclass(slots=True)
class _Carrying:
    """The rollouts of a call, of which `left` have not ended; what they share is closed once, and never half."""

    rollouts: DirectRollouts
    transport: ClosableTransport
    left: int
    _closing: asyncio.Task[None] | None = None

    async def carry(self, row: DirectRow) -> RowResult:
        try:
            return await self.rollouts.carry(row)
        finally:
            self.left -= 1
            if not self.left:
                await self._last_ended()

    async def close(self) -> None:
        """Wait until everything is closed; raise what could not be."""
        await to_the_end(self._closed())

    async def _last_ended(self) -> None:
        """Close without being asked; what nobody records is handed over in the same turn of the loop."""
        if self.rollouts.handover.sink is None:
            await self.transport.aclose()
        else:
            closing = self._closed()
            closing.add_done_callback(_told)
            await asyncio.wait({closing})

    def _closed(self) -> asyncio.Task[None]:
        if self._closing is None or self._closing.cancelled():
            self._closing = asyncio.create_task(self._close())
        return self._closing

    async def _close(self) -> None:
        sink = self.rollouts.handover.sink
        try:
            await self.transport.aclose()
        finally:
            if sink is not None:
                await to_the_end(sink.close())


def _told(closing: asyncio.Task[None]) -> None:
    """Log a close that failed: whoever takes the last result need not close anything, and loses nothing by it."""
    error = None if closing.cancelled() else closing.exception()
    if error is not None:
        _LOG.warning(
            "what the rollouts of a call share is not closed: %s: %s",
            type(error).__name__,
            " ".join(str(error).split()),
        )


def _completions(starts: Iterator[Start[RowResult]], total: int, limit: int | None) -> Completions[RowResult]:
    return EagerCompletions(starts, total) if limit is None else BoundedCompletions(starts, total, limit)


class StartedWhenUsed:
    """A transport to a deployment that is made ready with the first request, in the loop that sends it."""

    def __init__(self, deployment: RemoteDeployment) -> None:
        self._deployment = deployment
        self._ready: asyncio.Task[None] | None = None

    async def send(self, server: str, path: str, body: bytes | Upload, exchange: Exchange | None = None) -> Reply:
        """Post `body` to `path` of the server instance `server`; see `Transport`."""
        if self._ready is None:
            self._ready = asyncio.create_task(self._deployment.start())
        if not self._ready.done():
            await asyncio.wait({self._ready})
        self._ready.result()
        return await self._deployment.send(server, path, body, exchange)

    async def aclose(self) -> None:
        """Close the connections; the servers go on."""
        if self._ready is not None:
            await self._deployment.close()


def reached(client: ServerClient) -> ClosableTransport:
    """Return the way to the servers that `client` knows."""
    return StartedWhenUsed(RemoteDeployment(client.head_server_config, known=client.global_config_dict))
