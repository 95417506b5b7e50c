"""What a plan owes: one rollout, as its materialized line says it.

Rules:
* The line is the request: a flat row travels byte for byte, so nothing is serialised twice.
* What a result must carry back is read from the line once, and kept as the JSON that is appended to a record.

Source: collection.md §1.5, §1.6, §2.11.
"""

import msgspec

from rollbook.records.identity import ROLLOUT_ID_KEY_NAME, RolloutKey
from rollbook.records.json_values import JsonObject


class Rollout(msgspec.Struct, frozen=True, gc=False):
    """One owed repeat of one task.

    `line` is the materialized row (compact JSON, no newline); `server` the environment server that runs it; `stamped`
    what every record of it carries, in the field's keys, as the inside of a JSON object; `is_episode` whether it is
    sent as an episode request.
    """

    key: RolloutKey
    line: bytes
    server: str
    agent: str | None = None
    attempt: int = 0
    is_episode: bool = False
    stamped: bytes = b""

    @property
    def stamps(self) -> JsonObject:
        """What every record of this rollout carries, as a mapping."""
        return msgspec.json.decode(b"{%b}" % self.stamped, type=dict[str, object])

    @property
    def rollout_id(self) -> str:
        """The id that all attempts of this rollout share."""
        explicit = self.stamps.get(ROLLOUT_ID_KEY_NAME)
        return explicit if isinstance(explicit, str) else str(self.key)
