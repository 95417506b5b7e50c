"""What a failed exchange says about the other side: decided once, by a table.

Rules:
* `not_sent` needs evidence: the connection never came up, so no byte of the request left.
* A status that a gateway may have written itself proves nothing about the server behind it.
* Nothing here waits, sends or logs.

Source: collection.md §3.6, §3.7.
"""

from typing import Final

from aiohttp import ClientConnectorError, ConnectionTimeoutError, InvalidURL, NonHttpUrlClientError

from rollbook.records.failure_kinds import Delivery

GATEWAY_STATUSES: Final = frozenset({429, 502, 503, 504})
_NEVER_CONNECTED: Final = (ClientConnectorError, ConnectionTimeoutError, InvalidURL, NonHttpUrlClientError)


def delivery_of_error(error: BaseException) -> Delivery:
    """Return what `error`, raised before any status was read, says about the request's delivery."""
    return Delivery.NOT_SENT if isinstance(error, _NEVER_CONNECTED) else Delivery.POSSIBLY_DELIVERED


def delivery_of_status(status: int) -> Delivery:
    """Return what an HTTP status says about the request's delivery."""
    return Delivery.POSSIBLY_DELIVERED if status in GATEWAY_STATUSES else Delivery.DELIVERED


def may_try_again(error: BaseException, *, replay: bool) -> bool:
    """Whether the same request may be sent again after `error`.

    A connection that never came up may be tried again; a request that may have been read only where `replay` allows it.
    """
    if isinstance(error, (InvalidURL, NonHttpUrlClientError)):
        return False
    return replay or delivery_of_error(error) is Delivery.NOT_SENT
