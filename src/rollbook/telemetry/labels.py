"""Names that come from data, bounded before they become labels.

Rules:
* A failure kind passes when it is registered or namespaced; any other is one bucket.
* Of names that anybody may make up, the first ones are kept and the rest share a bucket.

Source: collection.md §4.5.
"""

from typing import Final

from rollbook.records.failure_kinds import known_kind

OTHER: Final = "other"
_ROOM: Final = 256


def kind_label(kind: str | None) -> str | None:
    """Return the failure kind as a label; None where there is none."""
    if kind is None:
        return None
    return kind if known_kind(kind) else OTHER


class Labels:
    """The first `room` names, each as itself; every other one is `OTHER`."""

    def __init__(self, room: int = _ROOM) -> None:
        self._room = room
        self._known: set[str] = set()

    def label(self, name: str) -> str:
        """Return `name` as a label."""
        if name in self._known:
            return name
        if len(self._known) >= self._room:
            return OTHER
        self._known.add(name)
        return name
