"""The HTTP client: explicit timeouts on every hop, and no re-sending that nobody asked for.

Rules:
* A connection that never came up may be tried again within a grace; the first failure is logged with its address.
* A request whose body was started is not sent again unless the caller says `_replay=True`.
* Every hop has its limits. Opening a connection may take 10 s. A call of a model endpoint may take an hour in all
  (`global_aiohttp_model_call_timeout_seconds`, 0 for no limit). A rollout and its steps may take as long as they need,
  unless `global_aiohttp_total_timeout_seconds`, `global_aiohttp_read_timeout_seconds` or the caller says otherwise; the
  kernel's probes end what waits for a machine that is gone. Waiting for a free connection of the pool does not count.
* A call that used up its whole time is not sent again.
* Idle connections are dropped after 4 s, before a usual server does (uvicorn 5 s, ours 30 s), so that none is reused
  while its server closes it. A call that must not run twice takes a connection of its own.
* Calls of a model endpoint and between servers go by the wire client where it can carry them (`wire_calls`).
* An address that a server of this process has is answered in this process: the same limits, the same redirects, and
  what was answered there goes nowhere else.

Source: servers.md §4.1, §4.2; collection.md §3.6.
"""

import asyncio
import logging
from collections.abc import Coroutine, Mapping
from types import NoneType
from typing import Any, Final, cast

import orjson
from aiohttp import ClientError, ClientResponse, ClientTimeout, InvalidURL

from rollbook.records.failure_kinds import Delivery
from rollbook.servers.deadline import seconds_left
from rollbook.servers.http.client_pool import (
    current_client_settings,
    current_wire_calls,
    get_global_aiohttp_client,
    global_aiohttp_client_exit,
    is_global_aiohttp_client_request_debug_enabled,
    set_global_aiohttp_client,
)
from rollbook.servers.http.client_settings import ClientSettings
from rollbook.servers.http.delivery import delivery_of_error, is_time_used_up, may_try_again
from rollbook.servers.http.embedded_registry import EmbeddedServer, find_embedded
from rollbook.servers.http.embedded_response import EmbeddedResponse
from rollbook.servers.http.inner_error import InnerServerError, raise_for_status
from rollbook.servers.http.redaction import redacted_url
from rollbook.servers.http.redirects import REDIRECTS, Call, next_call
from rollbook.servers.http.request_body import as_embedded_request, with_encoded_json
from rollbook.servers.http.time_limits import model_call_timeout, model_call_took_too_long, whole_and_silence
from rollbook.servers.http.wire_calls import base_of, may_carry

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
    _model_call: bool = False,
    _streamed: bool = False,
    **aiohttp_kwargs: Any,
) -> ClientResponse:
    """Send one request and return the reply, whatever its status.

    Args:
        method: GET, POST and so on.
        url: the absolute address.
        _internal: the call is from one of our servers to another, of which it reads the whole reply.
        _max_connection_retries: the attempt with this ordinal raises; None leaves it to the grace alone.
        _server_name: the instance that is called, for messages.
        _replay: whether a request that may have been read may be sent again, `MAX_NUM_TRIES` times in all.
        _connect_grace: seconds during which a server that cannot be connected to is tried; None takes the client's 60.
        _model_call: the call is bounded as calls of a model endpoint are, unless `timeout` is given.
        _streamed: the reply is read as it arrives; a call that says nothing of it may get a whole one.
        aiohttp_kwargs: as for `aiohttp.ClientSession.request`; `json` may hold pydantic models.

    Raises:
        aiohttp.ClientError, TimeoutError: no reply came; `delivery_of_error` says what is known of the request.

    """
    settings = current_client_settings()
    first = None
    answered = None if _model_call else _at_once(method, str(url), aiohttp_kwargs, settings)
    if answered is not None:
        first = await answered
        if first.status not in REDIRECTS:
            return first  # type: ignore[return-value]  # it has the surface of an aiohttp response
    options = with_encoded_json(aiohttp_kwargs)
    limits: ClientTimeout | None = None
    if _model_call and options.get("timeout") is None:
        limits = model_call_timeout(settings, seconds_left())
        options = {**options, "timeout": limits}
    call = Call(method, str(url), options)
    grace = settings.connect_grace_seconds if _connect_grace is None else _connect_grace
    by_wire = (_internal or _model_call) and not _streamed and call.options.get("timeout") is limits
    deadline = asyncio.get_running_loop().time() + grace
    attempts: _Attempts | None = None
    while True:
        try:
            return await _exchange(call, settings, first, by_wire=by_wire)
        except (ClientError, TimeoutError) as error:
            if attempts is None:
                attempts = _Attempts(_server_name, call, deadline, _max_connection_retries, replay=_replay)
            if not attempts.go_on(error):
                if limits is not None and is_time_used_up(error):
                    said = model_call_took_too_long(redacted_url(call.url), settings, limits.total)
                    raise TimeoutError(said) from error
                raise
        first = None
        await asyncio.sleep(RETRY_SECONDS)


def _at_once(
    method: str, url: str, options: Mapping[str, Any], settings: ClientSettings
) -> Coroutine[object, object, EmbeddedResponse] | None:
    """Return the reply of a server of this process to a call without limits, or None when the call takes more steps.

    Waiting for it raises `aiohttp.ClientPayloadError` when the server began a reply and did not end it; such a call is
    not sent again.
    """
    server = find_embedded(url)
    if server is None or options.get("timeout") is not None or (settings.total_seconds or settings.read_seconds):
        return None
    if server.loop is not asyncio.get_running_loop():
        return None
    asked = as_embedded_request(method, server.base_url, url, options)
    return None if asked is None else server.call(asked)


class _Attempts:
    """How often one request was tried, and whether it may be tried again."""

    def __init__(self, name: str | None, call: Call, deadline: float, most: int | None, *, replay: bool) -> None:
        self._name = name
        self._call = call
        self._most = most
        self._replay = replay
        self._tries = 0
        self._deadline = deadline

    def go_on(self, error: BaseException) -> bool:
        self._tries += 1
        data = self._call.options.get("data")
        one_write = isinstance(data, (bytes, str, NoneType))
        if not may_try_again(error, replay=self._replay, one_write=one_write) or self._tries == self._most:
            return False
        if delivery_of_error(error, one_write=one_write) is Delivery.NOT_SENT:
            allowed = asyncio.get_running_loop().time() + RETRY_SECONDS <= self._deadline
        else:
            allowed = self._tries < MAX_NUM_TRIES or self._most is not None
        if allowed and self._tries % _LOG_EVERY == 1:
            url, kind = redacted_url(self._call.url), type(error).__name__
            _LOG.warning("%s at %s failed: %s: %s; tried again (%d)", self._name or url, url, kind, error, self._tries)
        if allowed and is_global_aiohttp_client_request_debug_enabled():
            _LOG.info("request body: %.*r", _DEBUG_CHARS, data)
        return allowed


async def _exchange(
    call: Call, settings: ClientSettings, first: EmbeddedResponse | None, *, by_wire: bool
) -> ClientResponse:
    """Return the reply to `call`, from a server of this process or through a socket; `first` is there already."""
    earlier: list[EmbeddedResponse] = []
    reply = first
    while True:
        server = None if reply is not None else find_embedded(call.url)
        if server is not None:
            reply = await _embedded(server, call, settings)
        if reply is None and by_wire:
            reply = await _by_wire(call, settings)
        if reply is None:
            return await _through_socket(call)
        further = next_call(call, reply, earlier)
        if further is None:
            if earlier:
                reply.history = cast("tuple[ClientResponse, ...]", tuple(earlier))
            return cast("ClientResponse", reply)
        earlier.append(reply)
        call, reply = further, None


async def _through_socket(call: Call) -> ClientResponse:
    client = get_global_aiohttp_client()
    try:
        return await client.request(call.method, call.url, **call.options)
    except UnicodeError as error:  # a host name that cannot be looked up
        raise InvalidURL(redacted_url(call.url), str(error)) from error


async def _by_wire(call: Call, settings: ClientSettings) -> EmbeddedResponse | None:
    """Send a call by the wire client, or return None when that does not carry it."""
    wire, base_url = current_wire_calls(), base_of(call.method, call.url)
    if wire is None or base_url is None:
        return None
    asked = as_embedded_request(call.method, base_url, call.url, call.options)
    if asked is None or not may_carry(asked.headers):
        return None
    return await wire.post(asked, whole_and_silence(call.options.get("timeout"), settings)[0])


async def _embedded(server: EmbeddedServer, call: Call, settings: ClientSettings) -> EmbeddedResponse | None:
    """Answer in this process, or return None when the request has to go through the server's port."""
    asked = as_embedded_request(call.method, server.base_url, call.url, call.options)
    if asked is None or server.loop is not asyncio.get_running_loop():
        server.open_port()
        return None
    total, silence = whole_and_silence(call.options.get("timeout"), settings)
    if total is None:
        return await server.call(asked, silence)
    async with asyncio.timeout(total):
        return await server.call(asked, silence)


async def get_response_json(response: ClientResponse) -> Any:
    """Return the body of `response` as JSON.

    Raises:
        orjson.JSONDecodeError: a `ValueError`; the body is no JSON.

    """
    given: object = response
    return orjson.loads(given.body if isinstance(given, EmbeddedResponse) else await response.read())
