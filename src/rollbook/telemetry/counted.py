"""The fold from events to the numbers of a run in progress.

Rules:
* It is an observer: each event costs the same early and late in a run, and numbers leave only when a percent passed.
* A rollout counts once, by its latest execution: an interrupted one takes an older failure out. Evidence, of which
  nothing else is known, speaks of an attempt that left nothing.
* Time is read from the events.

Source: collection.md §3.9, §6.6, §21.28.
"""

from collections import Counter
from typing import Final

from rollbook.records.event import AttemptEnded, AttemptStarted, Event, RunEnded, RunPlanned
from rollbook.records.outcome import Evidence, Failed, Interrupted, NeverStarted, Scored
from rollbook.records.record import Record
from rollbook.telemetry.before import NOTHING_BEFORE, Before
from rollbook.telemetry.labels import Labels, kind_label
from rollbook.telemetry.percent import Percent
from rollbook.telemetry.sink import Sink
from rollbook.telemetry.stand import UNSENT, Remembered, Stand, dispatch_name, reward_of
from rollbook.telemetry.totals import Totals

_SECONDS_A_MINUTE: Final = 60.0


class Counted:
    """An observer that counts, and tells `sink` when the run passed a percent and at the end.

    `before` is what the session goes on from; with it, a run that is resumed is counted as a whole, and
    `reward_lower_bound` is known of each of several names.
    """

    def __init__(self, sink: Sink, before: Before = NOTHING_BEFORE) -> None:
        self._sink = sink
        self._before = before
        self._totals = Totals(before)
        self._remembered = Remembered()
        self._percent = Percent()
        self._settled = 0
        self._kinds: Counter[str] = Counter()
        self._kind_labels = Labels()
        self._first_at: float | None = None
        self._last_at = 0.0
        self._told = False
        for name, scored in before.scored.items():
            self._totals.count_scored(name, scored)
        for key, stand in before.stood:
            self._totals.count(stand)
            self._remembered.put(key, stand)

    def __call__(self, event: Event) -> None:
        """Fold one event."""
        if isinstance(event, AttemptStarted):
            self._start(event)
        elif isinstance(event, AttemptEnded):
            self._end(event)
        elif isinstance(event, RunPlanned):
            self._settled = event.settled
            self._percent.plan(event.rollouts, event.settled)
        elif isinstance(event, RunEnded) and not self._told:
            self._tell()

    @property
    def failure_kinds(self) -> dict[str, int]:
        """Failed attempts of this session by the label of their kind."""
        return dict(self._kinds)

    def _start(self, event: AttemptStarted) -> None:
        if event.attempt == 1:
            self._totals.retried += 1
        if self._first_at is None:
            self._first_at = event.at

    def _end(self, event: AttemptEnded) -> None:
        record, self._last_at = event.record, event.at
        before = self._remembered.of(record.key)
        if before is not None and isinstance(record.outcome, NeverStarted | Evidence):
            return
        if isinstance(record.outcome, NeverStarted):
            self._remembered.put(record.key, UNSENT)
            return
        self._told = False
        stand = self._stand(record, before)
        if before is not None:
            self._totals.count(before, -1)
        self._totals.count(stand)
        if before is not None or stand.kind is not Scored:
            self._remembered.put(record.key, stand)
        if (before is None or not before.finished) and self._percent.finish():
            self._tell()

    def _stand(self, record: Record, before: Stand | None) -> Stand:
        outcome, spent = record.outcome, 0 if before is None else before.spent
        name = self._name(record)
        if not isinstance(outcome, Failed):
            kind = Interrupted if isinstance(outcome, Evidence) else type(outcome)
            return Stand(kind, name, None, reward_of(outcome), spent)
        self._totals.failed_attempts += 1
        label = kind_label(outcome.kind)
        if label is not None:
            self._kinds[self._kind_labels.label(label)] += 1
        return Stand(Failed, name, outcome.failure_class, None, min(spent + (not outcome.never_ran), self._before.cap))

    def _name(self, record: Record) -> str | None:
        """Return the name that the plan counts the rollout under: a result may name a server where its row does not."""
        planned = self._before.planned
        if record.agent in planned and record.server not in planned:
            return record.agent
        return dispatch_name(record.agent, record.server)

    def _tell(self) -> None:
        self._told = True
        self._sink.log({**self._rate(), **self._totals.metrics(*self._where())}, self._percent.step)

    def _where(self) -> tuple[int, int]:
        return self._percent.planned, self._percent.finished

    def _rate(self) -> dict[str, float]:
        elapsed = self._last_at - (self._last_at if self._first_at is None else self._first_at)
        if elapsed <= 0:
            return {}
        rate = (self._percent.finished - self._settled) / elapsed
        return {"progress/total/rollouts_per_min": round(_SECONDS_A_MINUTE * rate, 2)}
