"""When numbers are due: each time the finished share passes 1, 2, …, 99, 99.5 and 100 percent.

Rules:
* A jump over several of them is passed once.

Source: collection.md §3.9.
"""

_HALVES = 200
"""Half percents in all: the next to last one is due, as 99.5, and of the others each second one."""


class Percent:
    """How far a run is, and whether it passed another percent since that was last asked."""

    def __init__(self) -> None:
        self.planned = 0
        self.finished = 0
        self._due = 0

    def plan(self, planned: int, settled: int) -> None:
        """Begin with `settled` of `planned` rollouts finished."""
        self.planned, self.finished = planned, settled
        self._due = self._next_due()

    def finish(self) -> bool:
        """Count one more finished rollout, and return whether that passed a percent."""
        self.finished += 1
        if not self.planned or self.finished < self._due:
            return False
        self._due = self._next_due()
        return True

    @property
    def step(self) -> int:
        """The whole percent that is finished, 0 to 100; 0 while the plan is unknown."""
        return min(100, 100 * self.finished // self.planned) if self.planned else 0

    def _next_due(self) -> int:
        """Return at how many finished rollouts the next percent is passed."""
        halves = _HALVES * self.finished // self.planned if self.planned else 0
        following = halves + (1 if halves % 2 or halves == _HALVES - 2 else 2)
        return -(-following * self.planned // _HALVES)
