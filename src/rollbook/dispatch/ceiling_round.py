"""What one ceiling delivered, counted over a round: long enough for every place under it to turn over.

Rules:
* What was out when the ceiling was set was sent under another one; as many endings are passed over first.
* The rate counts what ended well. A server that fails faster delivers no more.
* A rate runs from one ending to another, so that endings in bursts are counted with the time between them.
* More pays when it delivers a twentieth more, and more than chance gives so few endings. Less does as well when it
  delivers all but a twelfth; the fewer endings say so, the less may be lost. What is too high costs a wait, what is too
  low costs what is not sent.
* A ceiling was in use where most endings, or most looks at it, found it four fifths full.
"""

from math import sqrt
from typing import Final

_SHORTEST: Final = 0.25
_SURE_GAIN: Final = 0.05
_SMALL_LOSS: Final = 1 / 12
_CHANCE: Final = 1.0
_DOUBT: Final = 0.5


class Round:
    """Endings under one ceiling, after the first `passed_over`."""

    __slots__ = (
        "_full",
        "_last",
        "_looks",
        "_looks_full",
        "_passed_over",
        "_seconds",
        "_since",
        "all",
        "ended",
        "ok",
        "refused",
    )

    def __init__(self, passed_over: int) -> None:
        self._passed_over = max(1, passed_over)
        self._since = self._last = self._seconds = 0.0
        self._full = self._looks = self._looks_full = 0
        self.all = self.ended = self.ok = self.refused = 0

    def count(self, seconds: float, now: float, *, ok: bool, full: bool) -> None:
        """Count an attempt that ran for `seconds` and ended at `now`."""
        self.all += 1
        self._last = now
        if self._passed_over > 0:
            self._passed_over -= 1
            self._since = now
            return
        self.ended += 1
        self.ok += ok
        self._full += full
        self._seconds += seconds

    def look(self, *, full: bool) -> None:
        """Count a look at the ceiling."""
        self._looks += 1
        self._looks_full += full

    @property
    def lasted(self) -> float:
        """Seconds from the first ending that counts to the last."""
        return self._last - self._since

    @property
    def rate(self) -> float:
        """Attempts a second that ended well."""
        return self.ok / self.lasted if self.lasted > 0 else 0.0

    @property
    def share_refused(self) -> float:
        """How much of what was sent was turned away."""
        return self.refused / max(1, self.refused + self.all)

    @property
    def mean_seconds(self) -> float:
        """How long an attempt took."""
        return self._seconds / self.ended if self.ended else 0.0

    @property
    def in_use(self) -> bool:
        """Whether the ceiling, and nothing else, kept more from being sent."""
        return self._full * 2 >= max(1, self.ended) or self._looks_full * 2 >= max(1, self._looks)

    def is_over(self, needed: int) -> bool:
        """Whether `needed` endings were counted, over a time that can be divided by."""
        return self.ended >= needed and self.lasted >= _SHORTEST

    def pays_over(self, rate: float) -> bool:
        """Whether this delivers more than `rate`: by a twentieth, and by more than chance gives so few endings."""
        return self.rate > rate * (1.0 + max(_SURE_GAIN, _CHANCE / sqrt(max(1, self.ended))))

    def holds(self, rate: float) -> bool:
        """Whether this delivers as much as `rate`, but for a twelfth, or for less where few endings tell."""
        return self.rate >= rate * (1.0 - _SMALL_LOSS + _DOUBT / sqrt(max(1, self.ended)))
