"""The wish to end a run early, from whoever may have it.

Rules:
* The first request ends admission, and work in flight has its grace. The second ends that work at once.
* What the first request said stands: a later one only hurries.
* Nothing here knows signals; whoever receives one asks here, on the loop's own thread.
"""

import asyncio


class Stop:
    """Whether, why and how urgently a run is to stop."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.at_once = asyncio.Event()
        self._why: str | None = None
        self._exit_code: int | None = None

    @property
    def why(self) -> str | None:
        """What the first request said; None as long as nobody asked."""
        return self._why

    @property
    def exit_code(self) -> int | None:
        """What the command is to end with, when the first request named it."""
        return self._exit_code

    def request(self, why: str, exit_code: int | None = None) -> None:
        """Ask the run to stop; ask once more to end what is in flight at once."""
        if self.asked.is_set():
            self.at_once.set()
            return
        self._why, self._exit_code = why, exit_code
        self.asked.set()
