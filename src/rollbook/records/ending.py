"""How one attempt ended, together with what it leaves to be saved.

Rules:
* `payload` is the decoded reply where there was one: a result's own fields, or a failure's diagnostics.
* What becomes of an ending (which file, which line) is the codec's business alone.

Source: collection.md §4.1, §4.2.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from rollbook.records.outcome import Outcome


@dataclass(frozen=True, slots=True)
class Ending:
    """An outcome and the reply's own fields. `run_failed` tells a failed `/run` from a reply that reports a failure."""

    outcome: Outcome
    payload: Mapping[str, object] = field(default_factory=dict)
    run_failed: bool = False
