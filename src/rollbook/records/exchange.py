"""One request to an environment server: where it stands, and what it brought back.

Rules:
* A `Reply` is whatever carried an HTTP status, good or bad; anything else is `SendFailed`.
* `not_sent` is said only on evidence: no byte of the request body left.
* An `Exchange` is the transport's to move and dispatch's to read; it only ever moves forward within one send.

Source: collection.md §3.6, §3.7.
"""

from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from typing import Final, Protocol

import msgspec

from rollbook.errors import RollbookError
from rollbook.records.failure_kinds import GATEWAY_STATUSES, Delivery

DEADLINE_HEADER: Final = "X-Rollout-Deadline"
"""The seconds that a rollout may still take, sent along with its request."""


class Reply(msgspec.Struct, frozen=True):
    """An HTTP answer: status, whole body, header names in lower case."""

    status: int
    body: bytes
    headers: Mapping[str, str] = msgspec.field(default_factory=dict)


class Upload(Protocol):
    """A request's body that is not held in memory."""

    @property
    def size(self) -> int:
        """How many bytes it has."""
        ...

    def pieces(self) -> Iterator[bytes]:
        """Yield it from its beginning."""
        ...


class SendFailed(RollbookError):  # noqa: N818  an observation of one exchange, not an error of the program
    """A request that brought no whole reply."""

    def __init__(self, message: str, *, delivery: Delivery, exception_type: str, status: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.delivery = delivery
        self.exception_type = exception_type
        self.status = status


class Phase(StrEnum):
    """How far a request has come."""

    CONNECTING = "connecting"
    WAITING = "waiting for the reply"
    READING = "reading the reply"


class Exchange:
    """One request under way. `since` is when its `phase` began, by the clock that it was given.

    `seconds` is how long the rollout may take once its request can be sent; None for as long as it needs. `host` is
    `host:port` of the other side, as far as it is known, `sent_at` when the request could be sent, and `status` what
    was read of the reply.
    """

    __slots__ = ("_now", "host", "phase", "seconds", "sent_at", "since", "status")

    def __init__(self, now: Callable[[], float], seconds: float | None = None) -> None:
        self._now = now
        self.seconds = seconds
        self.host = ""
        self.status: int | None = None
        self.phase = Phase.CONNECTING
        self.since = now()
        self.sent_at: float | None = None

    def enter(self, phase: Phase) -> None:
        """Note that a phase begins; `WAITING` before the request's first byte is written."""
        self.phase = phase
        self.since = self._now()
        if phase is Phase.WAITING:
            self.sent_at = self.since

    @property
    def delivery(self) -> Delivery:
        """What is known of the request when it is given up now."""
        if self.phase is Phase.CONNECTING:
            return Delivery.NOT_SENT
        if self.status is None or self.status in GATEWAY_STATUSES:
            return Delivery.POSSIBLY_DELIVERED
        return Delivery.DELIVERED
