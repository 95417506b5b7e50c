"""What refusals do to one server's ceiling: which of them halve it, and how far it rises again.

Rules:
* What was sent before a halving does not halve again.
* One refusal in fifty is let pass, by what was sent since the last halving and ended well or is still worked on: others
  share what the server can do, or it is chance. One that names a time costs more than itself, and is let pass once in
  ten times that time.
* What goes on at half of a ceiling does not come of what is in flight. While a halved ceiling is tried one in four is
  let pass, and then twice what was refused there, until the next halving.
* Halvings with nothing good between them are one outage, which says nothing of a capacity. The ceiling is at half of
  what it was as soon as something ends well again, and then at what it was.
"""

from typing import Final

_FEWEST_LET_PASS: Final = 1 / 50
_MOST_LET_PASS: Final = 1 / 4
_MOST_SAVED: Final = 8.0
_PAUSES: Final = 10.0


class Cuts:
    """The halvings of one ceiling.

    `at` is when the latest was, `in_a_row` how many had nothing good between them, and `refused_at` how many were out
    when those began; `good` and `refused` count what was sent since.
    """

    __slots__ = (
        "_grew",
        "_heeds_pauses",
        "_left",
        "_let_pass",
        "_out",
        "_refused_before",
        "_refused_last",
        "_row_at",
        "_saved",
        "at",
        "good",
        "in_a_row",
        "is_outage",
        "refused",
        "refused_at",
    )

    def __init__(self) -> None:
        self.at = self._row_at = self._refused_last = float("-inf")
        self.refused_at: int | None = None
        self._refused_before: int | None = None
        self.in_a_row = self.good = self.refused = self._out = self._left = 0
        self._let_pass, self._saved = _FEWEST_LET_PASS, 0.0
        self._grew = self._heeds_pauses = True
        self.is_outage = False

    def ended(self, began: float, *, ok: bool) -> None:
        """Count an attempt that was sent at `began` and ran."""
        if began <= self.at:
            self._left -= 1
            self.is_outage = self.is_outage and not (ok and began > self._row_at)
        elif ok:
            self._saved = min(_MOST_SAVED, self._saved + self._let_pass)
            self.good += 1
            self.in_a_row = self._out = 0

    def withdrawn(self, began: float) -> None:
        """Count an attempt out that was sent at `began`, and neither ran nor was turned away."""
        if began <= self.at:
            self._left -= 1

    def lets_pass(self, began: float, now: float, in_flight: int, pause: float) -> bool:
        """Count a refusal of what was sent at `began`, for a time of `pause`; whether it is no reason to halve."""
        if began <= self.at:
            self._left -= 1
            return True
        since, self._refused_last = now - self._refused_last, now
        self.refused += 1
        self._out = max(self._out, in_flight)
        accepted = max(0, in_flight - 1 - max(0, self._left))
        if self._saved + self._let_pass * accepted < 1.0 or (self._heeds_pauses and since < _PAUSES * pause):
            return False
        self._saved -= 1.0
        return True

    def cut(self, now: float, in_flight: int, at_least: int = 0) -> int:
        """Note that the ceiling is halved; return how many were out at most, and it counts as `at_least` so many."""
        out = max(self._out, at_least)
        if self._grew or self.refused_at is None:
            self._refused_before, self.refused_at = self.refused_at, out
            self.is_outage, self._row_at = False, now
        elif self.in_a_row:
            self.is_outage = True
        self.in_a_row += 1
        self.at, self._grew, self._heeds_pauses = now, False, False
        self._let_pass, self._saved = _MOST_LET_PASS, 0.0
        self.good = self.refused = self._out = 0
        self._left = in_flight - 1
        return out

    def grew(self) -> None:
        """Note that the ceiling rose: what is refused now is refused of more."""
        self._grew = True

    def forget(self) -> None:
        """Note that nothing is refused any more where it was."""
        self.refused_at = None

    def turned_over(self) -> None:
        """Note that all under the halved ceiling turned over: what was refused there is let pass from now on."""
        share = self.refused / max(1, self.refused + self.good)
        self._let_pass = min(_MOST_LET_PASS, max(_FEWEST_LET_PASS, 2 * share))
        self._heeds_pauses = not self.refused
        self.good = self.refused = 0

    def leaves_idle(self, limit: int) -> bool:
        """Whether so much ended well that the ceiling, had refusals not put off the rest, would have been in use."""
        return self.refused > 0 and self.good >= 2 * limit

    def needed(self, limit: int) -> int:
        """Return how many have to end well before a ceiling of `limit` rises."""
        return 1 if self.is_outage else limit

    def risen(self, limit: int) -> int:
        """Return what a ceiling of `limit`, under which enough ended well, rises to."""
        if self.is_outage:
            goal = self.refused_at or 0
            return max(limit, min(goal, max(limit * 2, goal // 2)))
        return max(limit, min(limit * 2, (self.refused_at or 0) * 7 // 8))

    def is_over(self) -> bool:
        """Note that the ceiling is as high as it is to be; whether nothing is known that it was refused at."""
        if self.is_outage:
            self.refused_at, self.is_outage = self._refused_before, False
        return self.refused_at is None
