"""What an HTTP error of a model endpoint means: over for good, worth another try and when, or an answer.

Rules:
* A key that is refused, or a budget that is spent, will not come right by asking again.
* A `Retry-After` is never undercut; one that cannot be read is treated as absent.
* Waiting has an end: a hint beyond the patience is an answer.

Source: servers.md §4.4.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Final

import orjson

RATE_LIMIT_ERROR_CODES: Final = [429, 502, 503, 504, 520]
RETRY_ERROR_CODES: Final = [*RATE_LIMIT_ERROR_CODES, 404, 408, 500]
RETRY_SECONDS: Final = 0.5
REFUSED_KEY_CODES: Final = frozenset({"invalid_api_key", "invalid_api_token", "authentication_error"})
SPENT_BUDGET_CODES: Final = frozenset({"insufficient_quota", "budget_exceeded"})
_FOR_GOOD: Final = {401: REFUSED_KEY_CODES, 403: REFUSED_KEY_CODES, 429: SPENT_BUDGET_CODES}
_SPREAD_SHARE: Final = 0.25
_SPREAD_FLOOR_SECONDS: Final = 1.0


@dataclass(frozen=True, slots=True)
class Patience:
    """How often and how long one call is tried. `seconds` bounds all its waiting together."""

    attempts: int
    seconds: float = 300.0
    rate_limits_are_free: bool = False


@dataclass(frozen=True, slots=True)
class Spent:
    """What one call has used up so far."""

    attempts: int = 0
    seconds: float = 0.0


def error_codes(body: bytes) -> frozenset[str]:
    """The `code` and `type` of an error body, from its `error` object or its top level; empty when it has neither."""
    try:
        decoded = orjson.loads(body)
    except orjson.JSONDecodeError:
        return frozenset()
    if not isinstance(decoded, Mapping):
        return frozenset()
    inner = decoded.get("error")
    found = inner if isinstance(inner, Mapping) else decoded
    return frozenset(value for value in (found.get("code"), found.get("type")) if isinstance(value, str))


def permanent_code(status: int, body: bytes) -> str | None:
    """The code for which this endpoint is not to be asked again, or None."""
    return next(iter(sorted(_FOR_GOOD.get(status, frozenset()) & error_codes(body))), None)


def retry_after_seconds(header: str | None, now: float) -> float | None:
    """Seconds to wait for a `Retry-After` (seconds or an HTTP date); None when it is absent or unreadable."""
    if header is None:
        return None
    text = header.strip()
    if text.replace(".", "", 1).isdecimal():
        return float(text)
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - now)
    except (ValueError, OverflowError):
        return None


def spread(hint: float, chance: float) -> float:
    """The hint and a share more, so that those who were told the same do not come back together; `chance` in [0, 1)."""
    return hint + chance * max(_SPREAD_FLOOR_SECONDS, hint * _SPREAD_SHARE)


def next_wait(status: int, hint: float | None, chance: float, patience: Patience, spent: Spent) -> float | None:
    """Seconds until the next try, or None when there is none. `spent` counts the try that just failed."""
    if status not in RETRY_ERROR_CODES or (spent.attempts >= patience.attempts):
        return None
    wait = RETRY_SECONDS if hint is None else spread(hint, chance)
    return wait if spent.seconds + wait <= patience.seconds else None


def is_free(status: int, hint: float | None, patience: Patience) -> bool:
    """Whether a try leaves the attempts as they were: the endpoint said when to come back, or rate limits are free."""
    return status in RATE_LIMIT_ERROR_CODES and (hint is not None or patience.rate_limits_are_free)
