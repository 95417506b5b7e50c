"""What both sides answered to a task that is listed, read back from where the rows lie.

Rules:
* Of a side that did better its best repeat is shown, of the other its worst: what the reader wants to see is why.
* A row that is not there any more has no answer.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import msgspec

from rollbook.compare.answers import answer_in
from rollbook.compare.flips import Change, Move
from rollbook.compare.scored_pairs import ScoredPairs
from rollbook.compare.side import Side
from rollbook.errors import LedgerError
from rollbook.ledger.reader import payload_at
from rollbook.records.nesting import not_too_deep
from rollbook.records.place import File
from rollbook.records.reading import UNREADABLE

_ROW: Final = msgspec.json.Decoder(dict[str, object])


@dataclass(frozen=True, slots=True)
class Answers:
    """Where the rows of two runs lie, and their pairs."""

    pairs: ScoredPairs
    baseline: Path
    candidate: Path

    def change(self, move: Move) -> Change:
        """Return what is listed of a task, with both answers."""
        ours, theirs = self.pairs.ours[move.position], self.pairs.theirs[move.position]
        return replace(
            self.pairs.change(move),
            baseline_answer=_answer(self.baseline, self.pairs.baseline, ours, best=move.delta < 0),
            candidate_answer=_answer(self.candidate, self.pairs.candidate, theirs, best=move.delta > 0),
        )


def _answer(results: Path, side: Side, unit: int, *, best: bool) -> str | None:
    found = list(side.scored_places(unit))
    rewards = [reward for _, reward, _ in found]
    place = found[rewards.index(max(rewards) if best else min(rewards))][2]
    if place is None or place.file is not File.RESULTS:
        return None
    try:
        return answer_in(_ROW.decode(not_too_deep(payload_at(results, place))))
    except (LedgerError, OSError, *UNREADABLE):
        return None
