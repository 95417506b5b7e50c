"""Which failed attempts may be followed by another in the same run, and how long to wait before it.

Rules:
* Only an attempt that never ran is followed by another: it was not sent, or refused with 429 or 503. After a 502,
  a 504, a time limit that ran out or a reply that cannot be read it may have run.
* A wait doubles from 0.5 s to 30 s. A server that says when to come back is never asked sooner than that.
* No wait is longer than what is left of the time for trying again; when none is left, the last failure stands.

Source: collection.md §3.6, §3.7; RFC 9110 §10.2.3.
"""

import zlib
from email.utils import parsedate_to_datetime
from typing import Final

import msgspec

from rollbook.records.ending import Ending
from rollbook.records.failure_kinds import Delivery
from rollbook.records.outcome import Failed
from rollbook.records.task import Rollout

FIRST_WAIT: Final = 0.5
LONGEST_WAIT: Final = 30.0
REFUSALS: Final = frozenset({429, 503})
"""HTTP statuses that say that the request was turned away."""
_ADDRESS_FAULTS: Final = frozenset({"InvalidURL", "InvalidUrlClientError", "NonHttpUrlClientError"})
_DOUBLINGS: Final = 16
_WHY_KEPT: Final = 200


class Refusal(msgspec.Struct, frozen=True):
    """An attempt that never ran: why, in how many seconds its rollout is sent again, and the HTTP status if any."""

    why: str
    retry_in: float
    status: int | None = None


def may_retry(ending: Ending) -> bool:
    """Whether the attempt never ran and another may help. No waiting mends an address that is none."""
    failed = ending.outcome
    if not isinstance(failed, Failed) or not ending.run_failed or failed.exception_type in _ADDRESS_FAULTS:
        return False
    return failed.delivery is Delivery.NOT_SENT or failed.http_status in REFUSALS


def wait_before(retry_number: int, retry_after: float | None, jitter: float) -> float:
    """Return the seconds to wait before a rollout's `retry_number`-th retry (from 1).

    `jitter`, in (0, 1], is the share of the doubling wait that is kept. What it takes off is added to `retry_after`, so
    that those who were told the same do not come back together, and none too early.
    """
    doubled = min(LONGEST_WAIT, FIRST_WAIT * 2.0 ** min(retry_number - 1, _DOUBLINGS))
    if retry_after is None:
        return doubled * jitter
    return max(retry_after, FIRST_WAIT) + doubled * (1.0 - jitter)


def refusal_of(ending: Ending, wait: float, left: float) -> Refusal | None:
    """Return what puts off another attempt by `wait`, or by what is `left`; None when this ending stands."""
    if left <= 0 or not may_retry(ending) or not isinstance(ending.outcome, Failed):
        return None
    return Refusal(ending.outcome.message[:_WHY_KEPT], min(wait, left), ending.outcome.http_status)


def retry_after_seconds(header: str | None, now: float) -> float | None:
    """Return the seconds that a `Retry-After` names: a number, or an HTTP date seen from `now`; None for neither."""
    text = (header or "").strip()
    if text.replace(".", "", 1).isdecimal():
        return float(text)
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - now)
    except (ValueError, TypeError, OverflowError):
        return None


def spread(rollout: Rollout) -> float:
    """Return a share in (0.5, 1.0] that is the attempt's own and the same each time it is asked for."""
    return 1.0 - zlib.crc32(f"{rollout.key}.{rollout.attempt}".encode()) / 2**33
