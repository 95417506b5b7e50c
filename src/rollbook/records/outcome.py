"""How an attempt ended: one frozen type per ending.

Rules:
* Match on the type and let the checker see a missed case.
* No reward is ever inferred from a failure, and no failure from a missing reward.

Source: collection.md §4.
"""

from dataclasses import dataclass, replace

from rollbook.records.failure_kinds import Delivery, FailureStage


@dataclass(frozen=True, slots=True)
class Scored:
    """A result whose reward counts."""

    reward: float


@dataclass(frozen=True, slots=True)
class Masked:
    """A result whose reward was given but is no measurement."""

    reward: float | None = None


@dataclass(frozen=True, slots=True)
class Unscored:
    """A result without a reward."""


@dataclass(frozen=True, slots=True)
class Failed:
    """An attempt that reports a failure."""

    failure_class: str
    message: str = ""
    kind: str | None = None
    stage: FailureStage | None = None
    terminal: bool = False
    delivery: Delivery = Delivery.DELIVERED
    exception_type: str | None = None
    http_status: int | None = None
    response_body: str | None = None


@dataclass(frozen=True, slots=True)
class Interrupted:
    """An attempt that ran and left no result."""

    failure_class: str
    message: str = ""


@dataclass(frozen=True, slots=True)
class NeverStarted:
    """Planned, and deliberately not sent; `reason` says why."""

    reason: str


@dataclass(frozen=True, slots=True)
class Evidence:
    """A row that records something and never moves a standing."""

    message: str


Result = Scored | Masked | Unscored
Omitted = Interrupted | NeverStarted
Outcome = Scored | Masked | Unscored | Failed | Interrupted | NeverStarted | Evidence


def without_body(outcome: Outcome) -> Outcome:
    """Return `outcome` as it is kept in memory: the error body stays on disk."""
    if isinstance(outcome, Failed) and outcome.response_body is not None:
        return replace(outcome, response_body=None)
    return outcome
