"""The HTTP client: explicit timeouts on every hop, and no re-sending that nobody asked for.

Rules:
* A connection that never came up may be tried again within a grace; the first failure is logged with its address.
* A request whose body was started is not sent again unless the caller says `_replay=True`.
* Opening a connection may take 10 s; a whole exchange, and the silence between two reads, have no limit unless the
  configuration or the caller gives one. Waiting for a free connection of the pool is not part of a request's time.
* Idle connections are dropped after 4 s, before a usual server does (uvicorn 5 s, ours 30 s), so that none is reused
  while its server closes it. A call that must not run twice takes a connection of its own.
* An address that a server of this process has is answered in this process.

Source: servers.md §4.1, §4.2; collection.md §3.6.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from types import NoneType
from typing import Any, Final, cast

import orjson
from aiohttp import ClientError, ClientResponse, ClientTimeout

from rollbook.records.failure_kinds import Delivery
from rollbook.servers.client_pool import (
    current_client_settings,
    get_global_aiohttp_client,
    global_aiohttp_client_exit,
    is_global_aiohttp_client_request_debug_enabled,
    set_global_aiohttp_client,
)
from rollbook.servers.delivery import delivery_of_error, may_try_again
from rollbook.servers.embedded_registry import EmbeddedServer, find_embedded
from rollbook.servers.inner_error import InnerServerError, raise_for_status
from rollbook.servers.redaction import redacted_url
from rollbook.servers.request_body import as_embedded_request, with_encoded_json

__all__ = [
    "MAX_NUM_TRIES",
    "RETRY_SECONDS",
    "InnerServerError",
    "get_global_aiohttp_client",
    "get_response_json",
    "global_aiohttp_client_exit",
    "is_global_aiohttp_client_request_debug_enabled",
    "raise_for_status",
    "request",
    "set_global_aiohttp_client",
]

_LOG = logging.getLogger(__name__)
MAX_NUM_TRIES: Final = 3
RETRY_SECONDS: Final = 0.5
_LOG_EVERY: Final = 20
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_DEBUG_CHARS: Final = 512


async def request(
    method: str,
    url: str,
    _internal: bool = False,
    _max_connection_retries: int | None = None,
    _server_name: str | None = None,
    *,
    _replay: bool = False,
    _connect_grace: float | None = None,
    _single_use: bool = False,
    _gone: Callable[[], bool] | None = None,
    **aiohttp_kwargs: Any,
) -> ClientResponse:
    """Send one request and return the reply, whatever its status.

    Args:
        method: GET, POST and so on.
        url: the absolute address.
        _internal: the call is from one of our servers to another; kept for callers of the field's API.
        _max_connection_retries: the attempt with this ordinal raises; None leaves it to the grace alone.
        _server_name: the instance that is called, for messages.
        _replay: whether a request that may have been read may be sent again, `MAX_NUM_TRIES` times in all.
        _connect_grace: seconds during which a server that cannot be connected to is tried; None takes the client's 60.
        _single_use: take a connection that serves this request alone.
        _gone: tells that the server will not come up any more, which ends the grace.
        aiohttp_kwargs: as for `aiohttp.ClientSession.request`; `json` may hold pydantic models.

    Raises:
        aiohttp.ClientError, TimeoutError: no reply came; `delivery_of_error` says what is known of the request.

    """
    del _internal
    options = with_encoded_json(aiohttp_kwargs)
    address = str(url)
    server = find_embedded(address)
    if server is not None:
        reply = await _embedded(server, method, address, options)
        if reply is not None:
            return reply
    grace = current_client_settings().connect_grace_seconds if _connect_grace is None else _connect_grace
    attempts = _Attempts(_server_name or redacted_url(address), address, grace, _max_connection_retries, replay=_replay)
    client = get_global_aiohttp_client(single_use=_single_use)
    while True:
        try:
            return await client.request(method, address, **options)
        except (ClientError, TimeoutError) as error:
            if (_gone is not None and _gone()) or not attempts.go_on(error, options):
                raise
        await asyncio.sleep(RETRY_SECONDS)


class _Attempts:
    """How often one request was tried, and whether it may be tried again."""

    def __init__(self, name: str, url: str, grace: float, most: int | None, *, replay: bool) -> None:
        self._name = name
        self._url = redacted_url(url)
        self._most = most
        self._replay = replay
        self._tries = 0
        self._deadline = asyncio.get_running_loop().time() + grace

    def go_on(self, error: BaseException, options: Mapping[str, Any]) -> bool:
        self._tries += 1
        one_write = isinstance(options.get("data"), (bytes, str, NoneType))
        if not may_try_again(error, replay=self._replay, one_write=one_write) or self._tries == self._most:
            return False
        if delivery_of_error(error, one_write=one_write) is Delivery.NOT_SENT:
            allowed = asyncio.get_running_loop().time() + RETRY_SECONDS <= self._deadline
        else:
            allowed = self._tries < MAX_NUM_TRIES or self._most is not None
        if allowed and self._tries % _LOG_EVERY == 1:
            kind = type(error).__name__
            _LOG.warning("%s at %s failed: %s: %s; tried again (%d)", self._name, self._url, kind, error, self._tries)
        if allowed and is_global_aiohttp_client_request_debug_enabled():
            _LOG.info("request body: %.*r", _DEBUG_CHARS, options.get("data"))
        return allowed


async def _embedded(server: EmbeddedServer, method: str, url: str, options: Mapping[str, Any]) -> ClientResponse | None:
    """Answer in this process, or return None when the request has to go through the server's port."""
    asked = as_embedded_request(method, server.base_url, url, options)
    if asked is None or server.loop is not asyncio.get_running_loop():
        server.open_port()
        return None
    total = _total_seconds(options.get("timeout"))
    if total is None:
        reply = await server.call(asked)
    else:
        async with asyncio.timeout(total):
            reply = await server.call(asked)
    if reply.status in _REDIRECTS and options.get("allow_redirects", True):
        server.open_port()
        return None
    return cast("ClientResponse", reply)


def _total_seconds(timeout: object) -> float | None:
    """Return how long a call in this process may take."""
    if timeout is None:
        return current_client_settings().total_seconds
    if isinstance(timeout, ClientTimeout):
        return timeout.total
    return float(timeout) if isinstance(timeout, (int, float)) else None


async def get_response_json(response: ClientResponse) -> Any:
    """Return the body of `response` as JSON.

    Raises:
        orjson.JSONDecodeError: a `ValueError`; the body is no JSON.

    """
    return orjson.loads(await response.read())
