"""Everything that a comparison came to: one baseline, its candidates, and the gate if one was asked.

Rules:
* A report shows these values and computes none.

Source: collection.md §9.2.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from rollbook.compare.flips import Flips
from rollbook.compare.gate import EXIT_CODES, RuleOutcome, Ruling
from rollbook.compare.metric_difference import MetricComparison
from rollbook.compare.row_difference import RowDifference
from rollbook.compare.verdict import Judgement

SCHEMA_VERSION: Final = "1"


@dataclass(frozen=True, slots=True)
class RowComparison:
    """Two runs by their rows."""

    agents: tuple[tuple[str, str], ...]
    difference: RowDifference
    judgement: Judgement
    transitions: Mapping[tuple[str, str], int]
    flips: Flips
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Candidate:
    """One candidate: by metrics, one comparison for each agent; by rows, if they are there; and what the gate says."""

    label: str
    metrics: tuple[MetricComparison, ...] = ()
    rows: RowComparison | None = None
    rules: tuple[RuleOutcome, ...] = ()
    ruling: Ruling | None = None


@dataclass(frozen=True, slots=True)
class Comparison:
    """The whole. `alpha` and `min_coverage` are what verdicts were held to; `ruling` is that of every candidate."""

    baseline: str
    candidates: tuple[Candidate, ...]
    skipped_agents: tuple[str, ...]
    warnings: tuple[str, ...]
    alpha: float
    min_coverage: float
    policy: str | None = None
    ruling: Ruling | None = None

    @property
    def exit_code(self) -> int:
        """What a command ends with: the gate's code, 0 without one."""
        return 0 if self.ruling is None else EXIT_CODES[self.ruling]
