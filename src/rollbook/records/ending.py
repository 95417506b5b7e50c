"""How one attempt ended, together with what it leaves to be saved.

Rules:
* `payload` is the decoded reply where there was one: a result's own fields, or a failure's diagnostics.
* `kept` is the reply's own text where it may stand in the line as it came: see `outcomes.kept`.
* `report` explains and decides nothing. `unusable` says that a server answered against the protocol: what it sent can
  be no result of any rollout.
* What becomes of an ending (which file, which line) is the codec's business alone.

Source: collection.md §4.1, §4.2.
"""

from collections.abc import Mapping

import msgspec

from rollbook.records.failure_report import FailureReport
from rollbook.records.json_values import JsonObject
from rollbook.records.outcome import Outcome


class Ending(msgspec.Struct, frozen=True):
    """An outcome and the reply's own fields. `run_failed` tells a failed `/run` from a reply that reports a failure."""

    outcome: Outcome
    payload: Mapping[str, object] = msgspec.field(default_factory=dict)
    run_failed: bool = False
    kept: bytes | None = None
    report: FailureReport | None = None
    unusable: bool = False

    def fields(self) -> JsonObject:
        """Return what the reply said."""
        if self.kept is None:
            return dict(self.payload)
        return msgspec.json.decode(self.kept, type=dict[str, object])
