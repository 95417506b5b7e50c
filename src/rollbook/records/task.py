"""What a plan owes: one rollout, as its materialized line says it.

Rules:
* The line is the request: a flat row travels byte for byte, so nothing is serialised twice.
* What a result must carry back (`Stamps`) is read from the line once, as raw JSON.

Source: collection.md §1.5, §1.6, §2.11.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from rollbook.records.identity import ROLLOUT_ID_KEY_NAME, RolloutKey


@dataclass(frozen=True, slots=True)
class Rollout:
    """One owed repeat of one task.

    `line` is the materialized row (compact JSON, no newline); `server` the environment server that runs it; `stamps`
    what every record of it carries, in the field's keys; `is_episode` whether it is sent as an episode request.
    """

    key: RolloutKey
    line: bytes
    server: str
    agent: str | None = None
    attempt: int = 0
    is_episode: bool = False
    stamps: Mapping[str, object] = field(default_factory=dict)

    @property
    def rollout_id(self) -> str:
        """The id that all attempts of this rollout share."""
        explicit = self.stamps.get(ROLLOUT_ID_KEY_NAME)
        return explicit if isinstance(explicit, str) else str(self.key)
