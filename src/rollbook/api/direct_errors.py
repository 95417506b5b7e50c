"""A failed `/run` → the exception that callers of the field's API catch.

Rules:
* The types are those of the client that the field's callers know: aiohttp's errors, `TimeoutError`, a JSON error.
* What happened stays readable: what was seen of the exchange is the exception's cause.

Source: collection.md §3.7.
"""

import json
from http.client import responses
from typing import Final

from aiohttp import (
    ClientConnectionError,
    ClientError,
    ClientOSError,
    ClientPayloadError,
    ServerDisconnectedError,
    ServerTimeoutError,
)

from rollbook.errors import ConfigError, RollbookError
from rollbook.records.exchange import Reply, SendFailed
from rollbook.records.failure_kinds import Delivery
from rollbook.records.outcome import Failed
from rollbook.servers.http.inner_error import InnerServerError

_SUCCESSES: Final = range(200, 300)
_JSON_ERROR: Final = "JSONDecodeError"
_DISCONNECTED: Final = "ServerDisconnectedError"


class DirectCallError(ConfigError, ValueError):
    """An argument of `run_examples` or `run_outcomes` that cannot be followed; names it."""


class InvalidRolloutResult(RollbookError, ValueError):  # noqa: N818  the field's own name
    """A reply to `/run` that came, and is no result."""


class StaleRolloutResult(InvalidRolloutResult):
    """A reply to `/run` that is of another attempt."""


def error_of_reply(reply: Reply, failed: Failed, url: str) -> Exception:
    """Return the error for a reply that brought no result."""
    if reply.status not in _SUCCESSES:
        reason = reply.status, responses.get(reply.status, "")
        return InnerServerError("POST", url, reason, dict(reply.headers), reply.body)
    if failed.exception_type == _JSON_ERROR:
        return json.JSONDecodeError(failed.message, reply.body[:200].decode(errors="replace"), 0)
    return error_of_result(failed)


def error_of_result(failed: Failed) -> InvalidRolloutResult:
    """Return the error for a reply that is an object, and no result of its row."""
    stale = failed.exception_type == StaleRolloutResult.__name__
    return StaleRolloutResult(failed.message) if stale else InvalidRolloutResult(failed.message)


def error_of_send(failure: SendFailed) -> Exception:
    """Return the error for a request without a whole reply: the client's own, or one of the type that it names."""
    cause = failure.__cause__
    if isinstance(cause, ClientError | TimeoutError):
        return cause
    error = _named(failure, cause)
    error.__cause__ = failure
    return error


def _named(failure: SendFailed, cause: BaseException | None) -> Exception:
    if "Timeout" in failure.exception_type:
        named = failure.exception_type == TimeoutError.__name__
        return TimeoutError(failure.message) if named else ServerTimeoutError(failure.message)
    if failure.status is not None:
        return ClientPayloadError(failure.message)
    if failure.exception_type == _DISCONNECTED:
        return ServerDisconnectedError(failure.message)
    if isinstance(cause, OSError) or failure.exception_type == ClientOSError.__name__:
        return ClientOSError(getattr(cause, "errno", None), failure.message)
    unreachable = failure.delivery is Delivery.NOT_SENT
    return ClientOSError(None, failure.message) if unreachable else ClientConnectionError(failure.message)
