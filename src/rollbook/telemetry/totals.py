"""The counts of a run, and the names under which they are exported.

Rules:
* Only what stands is counted; `retries/*` alone count what it took.
* `coverage/scored` counts rollouts that have a result, masked and unscored ones among them. A failure that counts as
  zero has none: it is in `coverage/missing` and in `coverage/failed/*` here, and imputed in the reports of scores.
* Names and classes that data make up are bounded: the first ones are kept, the rest share a bucket.

Source: collection.md §3.9, §6.6, §21.28.
"""

from collections import Counter
from collections.abc import Iterator

from rollbook.records.outcome import Failed, Interrupted, NeverStarted
from rollbook.telemetry.before import Before
from rollbook.telemetry.labels import Labels
from rollbook.telemetry.stand import Scores, Stand
from rollbook.telemetry.tally import Tally


class Totals:
    """How many rollouts stand where, by dispatch name and by failure class."""

    def __init__(self, before: Before) -> None:
        self.failed_attempts = before.failed_attempts
        self.retried = before.retried
        self._cap = before.cap
        self._caps_agree = not before.failed_attempts
        self._planned = before.planned
        self._at_cap = 0
        self._saved = 0
        self._tallies: dict[str, Tally] = {}
        self._names, self._class_labels = Labels(), Labels()
        self._classes: Counter[str] = Counter()

    def count(self, stand: Stand, by: int = 1) -> None:
        """Count one rollout that stands so, or with `by=-1` one that does so no longer."""
        if stand.kind is NeverStarted:
            return
        if stand.failure_class is not None:
            self._classes[self._class_labels.label(stand.failure_class)] += by
        if stand.kind is Failed or stand.kind is Interrupted:
            if stand.spent >= self._cap:
                self._at_cap += by
        else:
            self._saved += by
        if stand.name is not None:
            self._tally(stand.name).count(stand, by)

    def count_scored(self, name: str | None, scored: Scores) -> None:
        """Count scored rollouts that are not outstanding."""
        self._saved += scored.count
        if name is not None:
            self._tally(name).count_scored(scored)

    def _tally(self, name: str) -> Tally:
        found = self._tallies.get(name)
        return self._tallies.setdefault(self._names.label(name), Tally()) if found is None else found

    def metrics(self, planned: int, finished: int) -> dict[str, float]:
        """Return what is exported of a run of `planned` rollouts of which `finished` are not outstanding."""
        lines: dict[str, float] = {}
        for name, tally in sorted(self._tallies.items()):
            outstanding = self._outstanding(name, tally, planned - finished)
            lines.update((f"progress/{name}/{key}", value) for key, value in tally.metrics(outstanding))
        lines |= self._coverage(planned)
        lines.update(self._retries())
        return lines

    def _outstanding(self, name: str, tally: Tally, of_all: int) -> int | None:
        """Return how many rollouts of `name` are to come; None when the plan is not known by name."""
        if name in self._planned:
            return max(0, self._planned[name] - tally.finished)
        return max(0, of_all) if len(self._tallies) == 1 and not self._planned else None

    def _coverage(self, planned: int) -> dict[str, float]:
        missing = planned - self._saved
        counts = {"coverage/expected": planned, "coverage/scored": self._saved, "coverage/missing": missing}
        failed = {f"coverage/failed/{name}": count for name, count in sorted(self._classes.items()) if count}
        return {**counts, **failed}

    def _retries(self) -> Iterator[tuple[str, float]]:
        yield "retries/attempts", self.failed_attempts
        yield "retries/rollouts_retried", self.retried
        yield "retries/at_cap", self._at_cap
        if self._caps_agree:
            yield "retries/max_attempts", self._cap
