"""One saved row, read: which attempt of which rollout, and how it ended.

Rules:
* A record is what every fold is handed; payloads stay on disk, at `place`.
* Attempt 0 is unstamped on disk and 0 here; `run_id` is None in rows that no managed run wrote.

Source: collection.md §1.6, §1.7.
"""

import msgspec

from rollbook.records.identity import RolloutKey
from rollbook.records.outcome import Outcome
from rollbook.records.place import Place


class Record(msgspec.Struct, frozen=True):
    """One line of the rollouts file or of the failures sidecar. `is_rejudgment`: it judges a saved answer anew."""

    key: RolloutKey
    attempt: int
    outcome: Outcome
    run_id: str | None = None
    agent: str | None = None
    server: str | None = None
    place: Place | None = None
    is_rejudgment: bool = False
