"""What a server tells beside an error reply: its own failure, caused by the one that an inner server told it.

Rules:
* Only `raise … from` counts as a cause: an error that was merely being handled caused nothing.
* A report tells kinds, statuses and boundaries; the text of an error stays in the reply's body.
* Status 401 means rejected credentials only where a provider says it: to a model server, which has no server of ours
  behind it.

Source: collection.md §3.8, §4.5, §6.8.
"""

import asyncio
from collections.abc import Iterator
from typing import Final

from aiohttp import ClientConnectionError, ClientConnectorError, ClientResponseError
from fastapi import FastAPI

from rollbook.records.failure_kinds import (
    AGENT_REQUEST_FAILED_FAILURE_CLASS,
    AGENT_RUN_ERROR_FAILURE_CLASS,
    ENVIRONMENT_SERVER_FAILURE_CLASS,
    PROVIDER_CREDENTIALS_REJECTED,
    PROVIDER_QUOTA_EXHAUSTED,
    PROVIDER_UNAVAILABLE,
)
from rollbook.records.failure_report import Boundary, FailureReport, report_in_headers

_MOST_CAUSES: Final = 16
_STATUSES: Final = range(100, 600)
_UNAUTHORIZED: Final = 401
_PAYMENT_REQUIRED: Final = 402
_TOO_MANY: Final = 429
_SERVER_ERROR: Final = 500
_NO_QUOTA: Final = b"insufficient_quota"
_TRANSPORT_KINDS: Final = (
    (ClientConnectorError, "transport_unreachable"),
    (TimeoutError, "transport_timeout"),
    (ClientConnectionError, "transport_peer_drop"),
)
_OWN_KINDS: Final[dict[Boundary, str]] = {
    "agent": AGENT_RUN_ERROR_FAILURE_CLASS,
    "environment": ENVIRONMENT_SERVER_FAILURE_CLASS,
}


def boundary_of(app: FastAPI) -> Boundary:
    """Return whose failures an application's are, by the routes that it answers."""
    paths = {getattr(route, "path", "") for route in app.routes}
    if "/verify" in paths:
        return "resources_server"
    if "/run" in paths:
        return "agent" if "/v1/responses" in paths else "environment"
    return "model" if paths & {"/v1/responses", "/v1/chat/completions"} else "harness"


def report_of(error: BaseException, boundary: Boundary) -> FailureReport | None:
    """Return the report of a request that ended with `error`; None for one that was cancelled, which is no failure."""
    if isinstance(error, asyncio.CancelledError):
        return None
    causes = list(_causes(error))
    inner = next((cause for cause in causes if isinstance(cause, ClientResponseError)), None)
    forwarded = _forwarded(inner)
    status = inner.status if inner is not None and inner.status in _STATUSES else None
    if forwarded is not None or (inner is not None and boundary != "model"):
        kind = AGENT_REQUEST_FAILED_FAILURE_CLASS
    elif inner is not None:
        kind = _provider_kind(inner)
    else:
        kind = next(filter(None, map(_transport_kind, causes)), _own_kind(boundary))
    return (forwarded or FailureReport()).caused(boundary, kind, http_status=status)


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and what it was raised from, as far as that goes."""
    at: BaseException | None = error
    for _ in range(_MOST_CAUSES):
        if at is None:
            return
        yield at
        at = at.__cause__


def _forwarded(inner: ClientResponseError | None) -> FailureReport | None:
    return report_in_headers(inner.headers) if inner is not None and inner.headers is not None else None


def _provider_kind(inner: ClientResponseError) -> str:
    said = getattr(inner, "response_content", b"")
    no_quota = inner.status == _TOO_MANY and isinstance(said, bytes) and _NO_QUOTA in said
    if inner.status == _UNAUTHORIZED:
        return PROVIDER_CREDENTIALS_REJECTED
    if inner.status == _PAYMENT_REQUIRED or no_quota:
        return PROVIDER_QUOTA_EXHAUSTED
    if inner.status == _TOO_MANY or inner.status >= _SERVER_ERROR:
        return PROVIDER_UNAVAILABLE
    return f"model:status_{inner.status}"


def _transport_kind(cause: BaseException) -> str | None:
    return next((kind for error, kind in _TRANSPORT_KINDS if isinstance(cause, error)), None)


def _own_kind(boundary: Boundary) -> str:
    return _OWN_KINDS.get(boundary, f"{boundary}:unhandled_error")
