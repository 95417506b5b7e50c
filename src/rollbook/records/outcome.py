"""How an attempt ended: one frozen type per ending.

Rules:
* Match on the type and let the checker see a missed case.
* No reward is ever inferred from a failure, and no failure from a missing reward.

Source: collection.md §4.
"""

import msgspec

from rollbook.records.failure_kinds import TURNED_AWAY_STATUSES, Delivery, FailureStage


class Scored(msgspec.Struct, frozen=True):
    """A result whose reward counts."""

    reward: float


class Masked(msgspec.Struct, frozen=True):
    """A result whose reward was given but is no measurement."""

    reward: float | None = None


class Unscored(msgspec.Struct, frozen=True):
    """A result without a reward."""


class Failed(msgspec.Struct, frozen=True):
    """An attempt that reports a failure.

    `reward` is what the row of an older version holds beside the failure; only a failure that counts as zero has it.
    """

    failure_class: str
    message: str = ""
    kind: str | None = None
    stage: FailureStage | None = None
    terminal: bool = False
    delivery: Delivery = Delivery.DELIVERED
    exception_type: str | None = None
    http_status: int | None = None
    response_body: str | None = None
    legacy_class: str | None = None
    counts_as_zero: bool = False
    saved_answer: bool = False
    reuses_deliverable: bool = False
    reward: float | None = None

    @property
    def never_ran(self) -> bool:
        """Whether the other side is known not to have begun: never sent, or turned away for now.

        A status that a delivered reply names is that of a request which its agent made.
        """
        if self.delivery is Delivery.DELIVERED:
            return False
        return self.delivery is Delivery.NOT_SENT or self.http_status in TURNED_AWAY_STATUSES


class Interrupted(msgspec.Struct, frozen=True):
    """An attempt that ran and left no result; `delivery` and `stage` tell how far it came.

    `omitted`: what is saved of it says that a result is missing, and is no ending of the run's history.
    """

    failure_class: str
    message: str = ""
    delivery: Delivery = Delivery.POSSIBLY_DELIVERED
    stage: FailureStage | None = None
    omitted: bool = False

    @property
    def may_replay(self) -> bool:
        """Whether a resume runs it again as if nothing were saved of it, or because its cause left nothing behind.

        Such causes are that it was never sent, and that it was refused at admission.
        """
        return self.omitted or self.delivery is Delivery.NOT_SENT or self.stage is FailureStage.ADMISSION


class NeverStarted(msgspec.Struct, frozen=True):
    """Planned, and deliberately not sent; `reason` says why."""

    reason: str


class Evidence(msgspec.Struct, frozen=True):
    """A row that records something and never moves a standing."""

    message: str


Result = Scored | Masked | Unscored
Omitted = Interrupted | NeverStarted
Outcome = Scored | Masked | Unscored | Failed | Interrupted | NeverStarted | Evidence


def without_text(outcome: Outcome) -> Outcome:
    """Return `outcome` as a fold keeps it: what a person reads of it stays on disk."""
    match outcome:
        case Failed():
            return msgspec.structs.replace(outcome, message="", response_body=None, reward=None)
        case Interrupted():
            return msgspec.structs.replace(outcome, message="")
        case NeverStarted():
            return NeverStarted("")
        case Evidence():
            return Evidence("")
        case _:
            return outcome
