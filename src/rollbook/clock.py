"""The only module that asks the time.

Rules:
* `monotonic` measures, `now` labels; neither stands in for the other.
* Everything below the command line is handed a `Clock`; tests hand it one that stands still.
"""

import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """Where durations and time stamps come from."""

    def monotonic(self) -> float:
        """Seconds that only ever grow, from an arbitrary start."""
        ...

    def now(self) -> float:
        """Seconds since the epoch."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait for `seconds`."""
        ...


class SystemClock:
    """The machine's own clock."""

    def monotonic(self) -> float:
        """Seconds that only ever grow, from an arbitrary start."""
        return time.monotonic()

    def now(self) -> float:
        """Seconds since the epoch."""
        return time.time()

    async def sleep(self, seconds: float) -> None:
        """Wait for `seconds`."""
        import asyncio  # noqa: PLC0415  slow to import, and there already where anything is awaited

        await asyncio.sleep(seconds)


def timestamp(seconds: float) -> str:
    """Return seconds since the epoch as files write them: ISO 8601, UTC."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
