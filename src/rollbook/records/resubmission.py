"""What a decision lets run again.

Rules:
* Values alone; the numbers are those of two looks at one fold.

Source: collection.md §4.7, §4.10.
"""

from dataclasses import dataclass

from rollbook.records.approval import Approval
from rollbook.records.coverage import Coverage


@dataclass(frozen=True, slots=True)
class Resubmission:
    """A decision, the counts before and after it, and the command that goes on with the run.

    `cap`: failures that a rollout may have with it. `is_alive`: a process works on the run.
    """

    output: str
    approval: Approval
    cap: int
    before: Coverage
    after: Coverage
    command: str
    is_alive: bool = False

    @property
    def more(self) -> int:
        """How many rollouts a resume runs with the decision that it would not run without."""
        return self.after.owed - self.before.owed
