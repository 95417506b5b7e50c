"""Which attempts never ran, and how long a retry waits."""

import msgspec
import pytest

from rollbook.outcomes.retry import (
    Refusal,
    may_retry,
    refusal_of,
    retry_after_seconds,
    spread,
    wait_before,
)
from rollbook.records.ending import Ending
from rollbook.records.failure_kinds import Delivery
from rollbook.records.identity import RolloutKey
from rollbook.records.outcome import Failed, Interrupted, Scored
from rollbook.records.task import Rollout

BUSY = Failed("agent_request_failed", "503 busy", delivery=Delivery.POSSIBLY_DELIVERED, http_status=503)
UNSENT = Failed("agent_request_failed", "refused", delivery=Delivery.NOT_SENT, exception_type="ClientConnectorError")
NOON = 1767268800.0
"""2026-01-01 12:00:00 UTC."""


@pytest.mark.parametrize(
    ("outcome", "may"),
    [
        (BUSY, True),
        (msgspec.structs.replace(BUSY, http_status=429), True),
        (UNSENT, True),
        (msgspec.structs.replace(BUSY, http_status=502), False),
        (msgspec.structs.replace(BUSY, http_status=504), False),
        (msgspec.structs.replace(BUSY, http_status=500, delivery=Delivery.DELIVERED), False),
        (msgspec.structs.replace(BUSY, http_status=200, delivery=Delivery.DELIVERED), False),
        (msgspec.structs.replace(BUSY, http_status=None, exception_type="TimeoutError"), False),
        (msgspec.structs.replace(UNSENT, exception_type="InvalidURL"), False),
        (Scored(1.0), False),
        (Interrupted("kill_shaped"), False),
    ],
)
def test_only_an_attempt_that_never_ran_may_be_followed_by_another(outcome, may):
    assert may_retry(Ending(outcome, run_failed=True)) is may


@pytest.mark.parametrize("outcome", [BUSY, UNSENT])
def test_a_failure_that_an_agent_reports_is_a_reply_and_is_not_sent_again(outcome):
    assert may_retry(Ending(outcome, run_failed=False)) is False


@pytest.mark.parametrize(
    ("number", "seconds"),
    [(1, 0.5), (2, 1.0), (3, 2.0), (4, 4.0), (5, 8.0), (6, 16.0), (7, 30.0), (8, 30.0), (10**6, 30.0)],
)
def test_a_wait_doubles_up_to_half_a_minute(number, seconds):
    assert wait_before(number, None, 1.0) == seconds
    assert wait_before(number, None, 0.5) == seconds / 2


@pytest.mark.parametrize(
    ("asked", "jitter", "seconds"),
    [(7.0, 1.0, 7.0), (7.0, 0.5, 9.0), (0.0, 1.0, 0.5), (3600.0, 1.0, 3600.0), (0.1, 0.75, 1.5)],
)
def test_a_server_is_never_asked_sooner_than_it_said_and_never_in_a_rush(asked, jitter, seconds):
    assert wait_before(4, asked, jitter) == seconds


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        (None, None),
        ("", None),
        ("7", 7.0),
        (" 1.5 ", 1.5),
        ("-3", None),
        ("soon", None),
        ("nan", None),
        ("Thu, 01 Jan 2026 12:00:30 GMT", 30.0),
        ("Thu, 01 Jan 2026 11:00:00 GMT", 0.0),
        ("Thu, 99 Jan 2026 11:00:00 GMT", None),
    ],
)
def test_a_retry_after_is_a_number_of_seconds_or_a_date(header, seconds):
    assert retry_after_seconds(header, NOON) == seconds


@pytest.mark.parametrize(
    ("outcome", "left", "refusal"),
    [
        (BUSY, 60.0, Refusal("503 busy", 5.0, 503)),
        (BUSY, 3.0, Refusal("503 busy", 3.0, 503)),
        (BUSY, 0.0, None),
        (BUSY, -1.0, None),
        (msgspec.structs.replace(BUSY, http_status=502), 60.0, None),
        (msgspec.structs.replace(UNSENT, message="x" * 1000), 60.0, Refusal("x" * 200, 5.0)),
    ],
)
def test_a_refusal_waits_no_longer_than_what_is_left_and_nothing_left_is_no_refusal(outcome, left, refusal):
    assert refusal_of(Ending(outcome, run_failed=True), 5.0, left) == refusal


def test_the_share_of_an_attempt_is_its_own_and_keeps_at_least_half_of_the_wait():
    attempts = [Rollout(RolloutKey(task, 0), b"{}", "env", attempt=n) for task in range(50) for n in range(4)]
    shares = [spread(attempt) for attempt in attempts]
    assert shares == [spread(attempt) for attempt in attempts]
    assert len(set(shares)) == len(attempts)
    assert all(0.5 < share <= 1.0 for share in shares)
