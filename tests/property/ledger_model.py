"""What a run's ledger means, said slowly: every word that was written is kept, and each question reads them all.

Lists and loops over what happened; nothing is folded, so nothing can be folded wrongly.
"""

from dataclasses import dataclass, field

from rollbook.records.disposition import OWED, Disposition, Rules, disposition_of
from rollbook.records.outcome import Evidence, Failed, NeverStarted, Result
from rollbook.records.record import Record

WEAK = NeverStarted | Evidence
STAY = {Disposition(end) for end in ("scored", "masked", "unscored", "approved", "settled", "exhausted")}


@dataclass
class Story:
    """One rollout: sessions by attempt handed out, attempts that never ran or were cut, and rows (attempt, outcome)."""

    handed_out: dict = field(default_factory=dict)
    refused: set = field(default_factory=set)
    cut: set = field(default_factory=set)
    failures: list = field(default_factory=list)
    results: list = field(default_factory=list)

    def stands(self):
        rows = list(enumerate(self.failures + self.results))
        strong = [(attempt, isinstance(end, Result), at) for at, (attempt, end) in rows if not isinstance(end, WEAK)]
        return rows[max(strong)[2] if strong else 0][1] if rows else None

    def unended(self):
        ended = {attempt for attempt, end in self.failures + self.results if not isinstance(end, NeverStarted)}
        return sorted(set(self.handed_out) - ended - self.refused)

    def lost(self):
        return [attempt for attempt in self.unended() if attempt not in self.cut]

    def spent(self):
        firsts = {attempt: end for attempt, end in reversed(self.failures) if not isinstance(end, NeverStarted)}
        ran = {attempt: end for attempt, end in firsts.items() if isinstance(end, Failed) and not end.never_ran}
        return len(ran.keys() - self.refused)

    def next_attempt(self):
        return max(self.handed_out, default=-1) + 1

    def is_disputed(self):
        return any(attempt == its and end != other for attempt, end in self.results for its, other in self.results)

    def disposition(self, key, rules, *, stopped):
        row = self.stands()
        record = Record(key, *row, run_id="r") if row else None
        alone = disposition_of(record, self.spent(), rules)
        unended = self.unended()
        if unended and (row is None or isinstance(row[1], WEAK) or unended[-1] > row[0]):
            last = unended[-1]
            if rules.live_session == self.handed_out[last] and last not in self.cut:
                return Disposition.IN_FLIGHT
            return alone if alone in STAY else Disposition.INTERRUPTED
        never = alone is Disposition.UNTOUCHED and stopped and rules.live_session is None
        return Disposition.NEVER_STARTED if never else alone

    def charges(self, key, rules: Rules, *, stopped):
        return self.lost()[1:] if self.disposition(key, rules, stopped=stopped) in OWED else []


def disputed(stories):
    """How many of the rollouts have an attempt with results that differ."""
    return sum(story.is_disputed() for story in stories.values())
