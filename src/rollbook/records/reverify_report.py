"""What judging saved answers again came to.

Rules:
* Values alone; nothing here judges, compares or reads.

Source: collection.md §9.1.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from rollbook.records.coverage import Coverage
from rollbook.records.headline import Headline
from rollbook.records.json_values import JsonObject
from rollbook.records.reward_delta import RewardDelta


@dataclass(frozen=True, slots=True)
class ReverifyReport:
    """What came of it.

    `selected`: answers that were to be judged, those of earlier sessions included; `left`: those of them that a resume
    would judge; `left_out`: what a judge owes and is not asked for, by why. `reward_sum`: over the `coverage.scored`
    results that stand in the output, and the `zeros` failures that their producer marks as a score of 0. `files`:
    paths by what they are. `headlines`: of what stands in the output, by agent.
    """

    output: str
    selected: int
    left: int
    coverage: Coverage
    reward_sum: float
    delta: RewardDelta
    files: Mapping[str, str]
    metrics: tuple[JsonObject, ...] = ()
    notes: tuple[str, ...] = ()
    stopped: str | None = None
    run_id: str | None = None
    left_out: Mapping[str, int] = field(default_factory=dict)
    headlines: Mapping[str, Headline] = field(default_factory=dict)
    zeros: int = 0

    @property
    def mean(self) -> float | None:
        """The mean reward of what measures in the output."""
        measured = self.coverage.scored + self.zeros
        return self.reward_sum / measured if measured else None
