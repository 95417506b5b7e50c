"""What one request to an environment server brought back: a reply, or a failure with what is known of its delivery.

Rules:
* A `Reply` is whatever carried an HTTP status, good or bad; anything else is `SendFailed`.
* `not_sent` is said only on evidence: no byte of the request body left.

Source: collection.md §3.6, §3.7.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from rollbook.errors import RollbookError
from rollbook.records.failure_kinds import Delivery


@dataclass(frozen=True, slots=True)
class Reply:
    """An HTTP answer: status, whole body, header names in lower case."""

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)


class SendFailed(RollbookError):  # noqa: N818  an observation of one exchange, not an error of the program
    """A request that brought no whole reply."""

    def __init__(self, message: str, *, delivery: Delivery, exception_type: str, status: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.delivery = delivery
        self.exception_type = exception_type
        self.status = status
