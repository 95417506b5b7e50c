"""How many connections may be open at once: each is a file, of which the system lets a process have only so many.

Rules:
* A connection beyond that waits until another has ended, and those who wait have their turn in order. Running out of
  files is this machine's affair: no request fails of it.
* Some files are spared for everything else that the process does.
* The first who waits says so.

Source: case RC-41.
"""

import asyncio
import logging
import resource
import sys
from collections import deque
from collections.abc import Sized
from typing import Final

_SPARED: Final = 128
_LOG = logging.getLogger(__name__)


def connections_that_fit() -> int:
    """Return how many connections fit into the limit of open files that stands now."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return sys.maxsize if soft == resource.RLIM_INFINITY else max(1, soft - min(_SPARED, soft // 2))


class Room:
    """Room for `most` connections, of which `opened` holds those that are up."""

    def __init__(self, opened: Sized, most: int) -> None:
        self._opened = opened
        self._most = most
        self._opening = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._is_told = False

    @property
    def is_full(self) -> bool:
        """Whether a further connection has to wait."""
        return len(self._opened) + self._opening >= self._most

    @property
    def is_wanted(self) -> bool:
        """Whether somebody waits for a connection to end."""
        return bool(self._waiting)

    async def enter(self) -> None:
        """Return when one more connection may be opened; `opening_ended` follows when it is up, or is not to be."""
        while self.is_full:
            self._tell()
            turn = asyncio.get_running_loop().create_future()
            self._waiting.append(turn)
            try:
                await turn
            except asyncio.CancelledError:
                if turn.cancelled():
                    self._waiting.remove(turn)
                else:
                    self.has_changed()
                raise
        self._opening += 1

    def opening_ended(self) -> None:
        """Count out a connection that came up, or did not."""
        self._opening -= 1
        self.has_changed()

    def has_changed(self) -> None:
        """Give the next one its turn, if there is room."""
        if self._waiting and not self.is_full:
            self._waiting.popleft().set_result(None)

    def _tell(self) -> None:
        if not self._is_told:
            self._is_told = True
            _LOG.warning(
                "at most %d connections fit into this process's limit of open files (ulimit -n); requests beyond that "
                "wait for one to end",
                self._most,
            )
