"""The counts of one dispatch name, and what is exported of them.

Rules:
* A rollout counts once, as it stands; what failed or was omitted is a count and enters no average.
* `reward` speaks for every saved reward, masked ones too; `reward_unmasked` for those that are measurements. The gap
  between the two is what was lost to the environment.
* A healthy run exports no key about losses.

Source: collection.md §3.9, §21.28.
"""

from collections.abc import Iterator

import msgspec

from rollbook.records.outcome import Failed, Interrupted, Masked, Scored
from rollbook.telemetry.stand import Scores, Stand


class Tally(msgspec.Struct):
    """Where the rollouts of one name stand.

    `rewarded` saved rewards add up to `rewards`; of these, `scored` are measurements and add up to `measured`. `saved`
    rollouts left a result, `finished` ones are not outstanding.
    """

    finished: int = 0
    saved: int = 0
    rewarded: int = 0
    rewards: float = 0.0
    scored: int = 0
    measured: float = 0.0
    masked: int = 0
    failed: int = 0
    omitted: int = 0

    def count(self, stand: Stand, by: int) -> None:
        """Count a rollout that stands so, or with `by=-1` one that does so no longer."""
        kind, reward = stand.kind, stand.reward
        self.finished += by * stand.finished
        if reward is not None:
            self.rewarded += by
            self.rewards += by * reward
        if kind is Failed:
            self.failed += by
        elif kind is Interrupted:
            self.omitted += by
        else:
            self.saved += by
        if kind is Scored:
            self.scored += by
            self.measured += by * (reward or 0.0)
        elif kind is Masked:
            self.masked += by

    def count_scored(self, scored: Scores) -> None:
        """Count scored rollouts together."""
        self.finished += scored.count
        self.saved += scored.count
        self.rewarded += scored.count
        self.scored += scored.count
        self.rewards += scored.rewards
        self.measured += scored.rewards

    def metrics(self, outstanding: int | None) -> Iterator[tuple[str, float]]:
        """Yield what is exported while `outstanding` rollouts are to come; rewards and shares are percent."""
        if self.rewarded:
            yield "reward", _percent(self.rewards, self.rewarded)
            if outstanding is not None:
                yield "reward_lower_bound", _percent(self.rewards, self.rewarded + outstanding)
        if self.masked or self.failed or self.omitted:
            yield from self._losses()

    def _losses(self) -> Iterator[tuple[str, float]]:
        if self.saved:
            yield "masked_pct", _percent(self.masked, self.saved)
        if self.scored:
            yield "reward_unmasked", _percent(self.measured, self.scored)
        yield "failed", self.failed
        yield "omitted", self.omitted


def _percent(part: float, whole: int) -> float:
    return round(100.0 * part / whole, 2)
