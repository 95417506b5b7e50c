"""Explicit rollout ids in a plan: each stands for one rollout, because captures and traces are found by it alone.

Rules:
* An id of a row that repeats, is fanned out, or stands in two tasks would name several rollouts: refused.
* So is an id that reads like the `<task>-<rollout>` of another rollout of the plan.

Source: collection.md §1.1, §2.9.
"""

import re
from collections import defaultdict
from collections.abc import Callable
from typing import Final

import msgspec

from rollbook.errors import InputError
from rollbook.records.identity import ROLLOUT_ID_KEY_NAME
from rollbook.records.json_values import JsonMapping

_LISTED: Final = 5
_DERIVED: Final = re.compile(r"(0|[1-9][0-9]*)-(0|[1-9][0-9]*)")


class RolloutIds(msgspec.Struct):
    """The explicit ids of a plan and the places of the rows that carry them; rows without one cost nothing."""

    _places: defaultdict[str, list[str]] = msgspec.field(default_factory=lambda: defaultdict(list))
    _tasks: set[int] = msgspec.field(default_factory=set)

    def add(self, row: JsonMapping, task: int, place: str) -> None:
        """Take note of one planned rollout."""
        explicit = row.get(ROLLOUT_ID_KEY_NAME)
        if explicit is not None:
            self._places[str(explicit)].append(place)
            self._tasks.add(task)

    def refuse_shared(self, rollouts: Callable[[int], int]) -> None:
        """Raise for ids that name several rollouts, given what tells how many rollouts a task has.

        Raises:
            InputError: names every such id, the rows that carry it, and what to do.

        """
        shared = [f"{name!r} at {_listed(places)}" for name, places in self._places.items() if len(places) > 1]
        shared += [f"{name!r} at {places[0]} and of the rollout {name}" for name, places in self._derived(rollouts)]
        if shared:
            raise InputError(
                f"one `{ROLLOUT_ID_KEY_NAME}` names several rollouts: {'; '.join(shared)}. "
                "Leave it out, or give each row an id of its own, one repeat and one agent"
            )

    def _derived(self, rollouts: Callable[[int], int]) -> list[tuple[str, list[str]]]:
        return [(name, places) for name, places in self._places.items() if self._reads_like_another(name, rollouts)]

    def _reads_like_another(self, name: str, rollouts: Callable[[int], int]) -> bool:
        found = _DERIVED.fullmatch(name)
        if found is None or int(found[1]) in self._tasks:
            return False
        return int(found[2]) < rollouts(int(found[1]))


def _listed(places: list[str]) -> str:
    distinct = list(dict.fromkeys(places))
    if len(distinct) == 1:
        return f"{distinct[0]} ({len(places)} rollouts)"
    more = f" and {len(distinct) - _LISTED} more" if len(distinct) > _LISTED else ""
    return ", ".join(distinct[:_LISTED]) + more
