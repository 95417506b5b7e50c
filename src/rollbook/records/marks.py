"""A small number for each of some rollouts, in two or three bytes each.

Rules:
* 0 is the number of every rollout that was given none; whoever has only such ones costs nothing.
* Neighbouring tasks share a page, so that neither a dense plan nor a few marks in a large one costs objects.
"""

from array import array
from typing import Final

from rollbook.records.identity import RolloutKey

_TASKS_A_PAGE: Final = 256
_EMPTY: Final = bytes(2 * _TASKS_A_PAGE)
MOST_MARKS: Final = 0xFFFF


class Marks:
    """Numbers from 0 to `MOST_MARKS` by rollout."""

    __slots__ = ("_pages",)

    def __init__(self) -> None:
        self._pages: dict[int, array[int]] = {}

    def of(self, key: RolloutKey) -> int:
        """Return the number of `key`."""
        if not self._pages:
            return 0
        page = self._pages.get(key.task // _TASKS_A_PAGE << 32 | key.rollout)
        return 0 if page is None else page[key.task % _TASKS_A_PAGE]

    def put(self, key: RolloutKey, mark: int) -> None:
        """Give `key` the number `mark`."""
        number = key.task // _TASKS_A_PAGE << 32 | key.rollout
        page = self._pages.get(number)
        if page is None:
            page = self._pages[number] = array("H", _EMPTY)
        page[key.task % _TASKS_A_PAGE] = mark
