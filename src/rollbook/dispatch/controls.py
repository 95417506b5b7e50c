"""What can be asked of a run while it goes on, and what it answers.

Rules:
* Every call is made on the run's own loop thread, returns at once and does not raise.
* Pausing ends admission alone: what is in flight goes on. Draining is for good.

Source: collection.md §3.
"""

from collections.abc import Sequence
from typing import Protocol

import msgspec

from rollbook.records.event import Waiting
from rollbook.records.identity import RolloutKey


class ControlStatus(msgspec.Struct, frozen=True):
    """How a run is: `in_flight` of at most `limit` rollouts are out (None: no limit); `waiting` has the longest first.

    `planned` and `ended` are None where nobody counts them; `stop_reason` says why admission ended for good. A server
    asked to be sent nothing for another `held_for` seconds; `again` rollouts wait to be sent again.
    """

    in_flight: int
    limit: int | None = None
    planned: int | None = None
    ended: int | None = None
    paused: bool = False
    draining: bool = False
    stop_reason: str | None = None
    held_for: float | None = None
    again: int = 0
    waiting: tuple[Waiting, ...] = ()


class Requeued(msgspec.Struct, frozen=True):
    """What became of one rollout: `attempt` was ended and another follows, or None and `why` says what kept it."""

    key: RolloutKey
    attempt: int | None = None
    why: str = ""


class Controls(Protocol):
    """A run that can be told what to do."""

    def status(self) -> ControlStatus:
        """Say how the run is."""
        ...

    def set_limit(self, limit: int | None) -> str | None:
        """Have at most `limit` rollouts (one or more) in flight from now on; what is out beyond it runs to its end.

        None lets the run find the limit by itself. Returns why that is not to be, None when it is done.
        """
        ...

    def pause(self) -> None:
        """Send nothing further until `resume`."""
        ...

    def resume(self) -> None:
        """Send again."""
        ...

    def drain(self, why: str) -> None:
        """Send nothing further for good, and end once what is in flight has ended."""
        ...

    def requeue(self, keys: Sequence[RolloutKey]) -> tuple[Requeued, ...]:
        """End the attempts of `keys` that are in flight, and run those rollouts again; one answer a key, in order."""
        ...
