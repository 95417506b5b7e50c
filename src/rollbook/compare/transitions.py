"""From how a rollout stood in the baseline to how it stands in the candidate, counted.

Rules:
* Repeats of a pair are put side by side in their order; where one side has more, the rest stands beside `no repeat`.
* Tasks on one side only are no transition.

Source: collection.md §9.2.
"""

from collections import Counter
from itertools import zip_longest
from typing import Final

from rollbook.compare.pairing import Pairing
from rollbook.compare.side import Side

NO_REPEAT: Final = "no repeat"


def transitions(baseline: Side, candidate: Side, pairing: Pairing) -> dict[tuple[str, str], int]:
    """Return how many rollouts went from which state to which, the most frequent first."""
    counts: Counter[tuple[int | None, int | None]] = Counter()
    for mine, other in pairing:
        counts.update(zip_longest(baseline.states_of(mine), candidate.states_of(other)))
    named = {(_name(baseline, ours), _name(candidate, theirs)): count for (ours, theirs), count in counts.items()}
    return dict(sorted(named.items(), key=lambda found: (-found[1], found[0])))


def _name(side: Side, state: int | None) -> str:
    return NO_REPEAT if state is None else side.states[state]
