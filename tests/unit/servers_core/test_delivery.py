import socket

import pytest
from aiohttp import (
    ClientConnectionResetError,
    ClientConnectorDNSError,
    ClientConnectorError,
    ClientOSError,
    ClientPayloadError,
    ConnectionTimeoutError,
    InvalidURL,
    ServerDisconnectedError,
    SocketTimeoutError,
)

from rollbook.records.failure_kinds import Delivery
from rollbook.servers.http.delivery import delivery_of_error, delivery_of_status, may_try_again

REFUSED = ClientConnectorError(None, ConnectionRefusedError(111, "refused"))
UNKNOWN_HOST = ClientConnectorDNSError(None, socket.gaierror(-2, "unknown"))
TABLE = [
    (REFUSED, Delivery.NOT_SENT, True),
    (UNKNOWN_HOST, Delivery.NOT_SENT, True),
    (ConnectionTimeoutError(), Delivery.NOT_SENT, True),
    (InvalidURL("x"), Delivery.NOT_SENT, False),
    (ServerDisconnectedError(), Delivery.POSSIBLY_DELIVERED, False),
    (ClientOSError(104, "reset"), Delivery.POSSIBLY_DELIVERED, False),
    (ClientPayloadError(), Delivery.POSSIBLY_DELIVERED, False),
    (SocketTimeoutError(), Delivery.POSSIBLY_DELIVERED, False),
    (TimeoutError(), Delivery.POSSIBLY_DELIVERED, False),
]


@pytest.mark.parametrize(("error", "delivery", "again"), TABLE)
def test_only_a_connection_that_never_came_up_is_not_sent_and_tried_again(error, delivery, again):
    assert delivery_of_error(error) is delivery
    assert may_try_again(error, replay=False) is again


def test_a_started_request_is_tried_again_where_the_caller_allows_it():
    assert may_try_again(ServerDisconnectedError(), replay=True)
    assert may_try_again(SocketTimeoutError(), replay=True)


@pytest.mark.parametrize("error", [InvalidURL("x"), TimeoutError(), ClientPayloadError()])
def test_what_another_try_cannot_mend_is_not_tried_again_even_so(error):
    assert not may_try_again(error, replay=True)


@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_a_status_that_a_gateway_may_write_proves_no_delivery(status):
    assert delivery_of_status(status) is Delivery.POSSIBLY_DELIVERED


@pytest.mark.parametrize("status", [200, 404, 408, 422, 500])
def test_any_other_status_proves_delivery(status):
    assert delivery_of_status(status) is Delivery.DELIVERED


@pytest.mark.parametrize(
    ("cause", "one_write", "delivery"),
    [
        (ClientConnectionResetError("Cannot write to closing transport"), True, Delivery.NOT_SENT),
        (ClientConnectionResetError("Cannot write to closing transport"), False, Delivery.POSSIBLY_DELIVERED),
        (ClientConnectionResetError("Connection lost"), True, Delivery.POSSIBLY_DELIVERED),
        (None, True, Delivery.POSSIBLY_DELIVERED),
    ],
)
def test_a_connection_that_was_closed_before_the_one_write_took_nothing(cause, one_write, delivery):
    error = ClientOSError(None, "Can not write request body")
    error.__cause__ = cause
    assert delivery_of_error(error, one_write=one_write) is delivery
