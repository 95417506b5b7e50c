"""The wish to end a run early, from whoever may have it.

Rules:
* The first request ends admission, and work in flight has its grace. The second ends that work at once.
* A drain ends admission alone: work in flight takes as long as it needs, until somebody requests a stop.
* What was said first stands: a later request only hurries. A stop that the run came to by itself is nobody's request.
* Nothing here knows signals; whoever receives one asks here, on the loop's own thread.
"""

import asyncio


class Stop:
    """Whether, why and how urgently a run is to stop.

    `closed`: nothing more is sent. `asked`: work in flight has its grace. `at_once`: it has none left.
    """

    def __init__(self) -> None:
        self.closed = asyncio.Event()
        self.asked = asyncio.Event()
        self.at_once = asyncio.Event()
        self._why: str | None = None
        self._exit_code: int | None = None
        self._requested = False

    @property
    def why(self) -> str | None:
        """What the first request said; None as long as nobody asked."""
        return self._why

    @property
    def exit_code(self) -> int | None:
        """What the command is to end with, when a request named it."""
        return self._exit_code

    def drain(self, why: str) -> None:
        """Ask the run to send nothing more, and to end when what is in flight has."""
        if not self.closed.is_set():
            self._why = why
            self.closed.set()

    def end(self, why: str) -> None:
        """Ask the run to stop because going on is of no use; it hurries nobody who asked before."""
        if not self.asked.is_set():
            self._why = self._why or why
            self.closed.set()
            self.asked.set()

    def request(self, why: str, exit_code: int | None = None) -> None:
        """Ask the run to stop; who asks once more ends what is in flight at once."""
        if self._requested:
            self.at_once.set()
            return
        self._requested = True
        self._exit_code = exit_code
        self.end(why)
