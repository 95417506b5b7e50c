"""What a failed exchange says about the other side: decided once, by a table.

Rules:
* `not_sent` needs evidence: the connection never came up, or was closed before the request's one write.
* A status that a gateway may have written itself proves nothing about the server behind it.
* Nothing here waits, sends or logs.

Source: collection.md §3.6, §3.7.
"""

from typing import Final

from aiohttp import (
    ClientConnectionResetError,
    ClientConnectorError,
    ClientError,
    ClientPayloadError,
    ConnectionTimeoutError,
    InvalidURL,
    NonHttpUrlClientError,
)

from rollbook.records.failure_kinds import GATEWAY_STATUSES, Delivery

_WRITE_REFUSED: Final = "Cannot write to closing transport"
_NEVER_CONNECTED: Final = (ClientConnectorError, ConnectionTimeoutError, InvalidURL, NonHttpUrlClientError)


def delivery_of_error(error: BaseException, *, one_write: bool = False) -> Delivery:
    """Return what `error`, raised before any status was read, says about the request's delivery.

    `one_write` says that head and body were handed over together: a pooled connection that had been closed by then
    took nothing of them.
    """
    if isinstance(error, _NEVER_CONNECTED):
        return Delivery.NOT_SENT
    refused = isinstance(error.__cause__, ClientConnectionResetError) and _WRITE_REFUSED in str(error.__cause__)
    return Delivery.NOT_SENT if one_write and refused else Delivery.POSSIBLY_DELIVERED


def delivery_of_status(status: int) -> Delivery:
    """Return what an HTTP status says about the request's delivery."""
    return Delivery.POSSIBLY_DELIVERED if status in GATEWAY_STATUSES else Delivery.DELIVERED


def may_try_again(error: BaseException, *, replay: bool, one_write: bool = False) -> bool:
    """Whether the same request may be sent again after `error`.

    A request that is known not to be sent may go again; one that may have been read only where `replay` allows it. A
    whole time that is used up (a plain `TimeoutError`) is nobody's to give again, and a reply that broke is a reply.
    """
    if is_time_used_up(error) or isinstance(error, (InvalidURL, NonHttpUrlClientError, ClientPayloadError)):
        return False
    return replay or delivery_of_error(error, one_write=one_write) is Delivery.NOT_SENT


def is_time_used_up(error: BaseException) -> bool:
    """Whether the whole time of an exchange is over, and not just that of a connection or of a read."""
    return isinstance(error, TimeoutError) and not isinstance(error, ClientError)
