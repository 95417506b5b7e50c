"""What everybody who steers a run is told of each attempt: that it is over, and how it ended.

Rules:
* An attempt takes room from the moment it is admitted until it is over; a wait before another one takes none.
* Only attempts that came to a result say how long a rollout takes.

Source: collection.md §3.1, §3.5, §6.8.
"""

from collections.abc import Callable
from typing import Protocol

import msgspec

from rollbook.clock import Clock
from rollbook.dispatch.budget import Spending
from rollbook.dispatch.ceilings import Ceilings, Verdict
from rollbook.dispatch.stop import Stop
from rollbook.dispatch.supply import Supply
from rollbook.outcomes.retry import REFUSALS
from rollbook.records.ending import Ending
from rollbook.records.failure_kinds import Delivery
from rollbook.records.outcome import Failed
from rollbook.records.task import Rollout


class Answered(Protocol):
    """An attempt that came back."""

    @property
    def ending(self) -> Ending:
        """How it ended."""
        ...

    @property
    def retry_after(self) -> float | None:
        """The seconds that its server asked to be left alone for."""
        ...


Further = Callable[[str, Ending], str | None]
"""(server, ending) → why further attempts are of no use, or None when they may be of some."""


class Traffic(msgspec.Struct, frozen=True):
    """Ceilings, budget, early stops, and the lanes that wait for room."""

    ceilings: Ceilings
    supply: Supply
    further: Further
    clock: Clock
    spending: Spending | None = None

    def withdrawn(self, attempt: Rollout) -> None:
        """Note that `attempt`, which was admitted, is not sent."""
        self.ceilings.withdrawn(attempt.server)
        self.supply.has_changed()

    def over(self, attempt: Rollout, answer: Answered | None, seconds: float) -> None:
        """Note that `attempt` is no longer out; `answer` is None where it was cut."""
        now = self.clock.monotonic()
        if answer is None:
            self.ceilings.withdrawn(attempt.server, now - seconds)
            self.supply.has_changed()
            return
        verdict = verdict_of(answer.ending)
        self.ceilings.ended(attempt.server, seconds, verdict, now, answer.retry_after)
        if verdict is Verdict.OK and self.spending is not None:
            self.spending.took(seconds)
        self.supply.has_changed()

    def settled(self, attempt: Rollout, ending: Ending, stop: Stop) -> None:
        """Note that the ending of `attempt` is written; some endings say that further attempts are of no use."""
        why = self.further(attempt.server, ending)
        if why is not None:
            stop.end(why)


def verdict_of(ending: Ending) -> Verdict:
    """Return what an ending says of its server."""
    failed = ending.outcome
    if not isinstance(failed, Failed):
        return Verdict.OK
    if ending.run_failed and failed.delivery is Delivery.NOT_SENT:
        return Verdict.UNREACHABLE
    if ending.run_failed and failed.http_status in REFUSALS and failed.delivery is not Delivery.DELIVERED:
        return Verdict.REFUSED
    return Verdict.FAILED
