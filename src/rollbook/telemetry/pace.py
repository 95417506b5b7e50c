"""How fast a session went: from the first request that left to the last ending that was committed.

Rules:
* An observer of a few numbers; time is read from the events.

Source: collection.md §3.9.
"""

import msgspec

from rollbook.records.event import AttemptCut, AttemptEnded, AttemptRefused, AttemptStarted, Event
from rollbook.records.sent_again import SentAgain


class Pace(msgspec.Struct):
    """Attempts that `started`, `ended` with a line of their own and were `refused`; `first` and `last` in seconds.

    `again` has those that wait to be sent again.
    """

    started: int = 0
    ended: int = 0
    refused: int = 0
    first: float | None = None
    last: float | None = None
    again: SentAgain = msgspec.field(default_factory=SentAgain)

    def observe(self, event: Event) -> None:
        """Count one event."""
        if isinstance(event, AttemptStarted):
            self.started += 1
            self.again.started(event.key)
            if self.first is None:
                self.first = event.at
        elif isinstance(event, AttemptEnded):
            self.ended += 1
            self.last = event.at
            self.again.ended()
        elif isinstance(event, AttemptRefused):
            self.refused += 1
            self.again.put_off(event)
        elif isinstance(event, AttemptCut):
            self.again.put_off(event)

    @property
    def seconds(self) -> float:
        """Seconds from the first start to the last ending; 0 without either."""
        return 0.0 if self.first is None or self.last is None else self.last - self.first

    @property
    def per_second(self) -> float | None:
        """Endings a second, None when there was no time between."""
        return self.ended / self.seconds if self.seconds > 0 else None
