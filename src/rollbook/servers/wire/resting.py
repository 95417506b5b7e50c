"""Connections between two requests: which of them may be asked again, and until when.

Rules:
* A connection rests before it is asked again, for as long as a close that followed the reply takes to arrive: twice
  the quickest round trip, 5 ms at least and 1 s at most.
* It is asked again within 0.1 s after that, at an age of 0.8 s at most, before any usual server closes it; less where
  the server says so or has shown it. And only if the kernel has nothing to read from it. So no request meets the end of
  its connection.
* Where the caller wants no rest, they are asked again at once, and lie idle for as long as the client lets them; only
  what the server says or has shown shortens that.
* The one that has rested longest goes first; 1024 to one endpoint are kept at most.

Source: RFC 9112 §9.3, §9.5.
"""

import math
from collections import deque
from typing import Final

from rollbook.servers.wire.connection import Connection

IDLE_SECONDS: Final = 0.8
MOST_RESTING: Final = 1024
_REST_AT_LEAST: Final = 0.005
_REST_AT_MOST: Final = 1.0
_SHOWN_FOR_SECONDS: Final = 3600.0
_BEYOND_REST: Final = 0.1
_LONG_BEYOND_REST: Final = 0.03


class Resting:
    """The idle connections to one endpoint. Times are in seconds, all from one clock.

    `rest_seconds` is how long a connection rests before it is asked again; without `rests`, not at all.
    """

    def __init__(self, idle_seconds: float = IDLE_SECONDS, *, rests: bool = True) -> None:
        self._idle = idle_seconds
        self._rests = rests
        self._quickest = math.inf
        self.rest_seconds = _REST_AT_MOST if rests else 0.0
        self._shown = math.inf
        self._shown_until = 0.0
        self._waiting: deque[Connection] = deque()

    def __len__(self) -> int:
        return len(self._waiting)

    def came_up(self, seconds: float) -> None:
        """Note that a connection came up, with a round trip of `seconds`."""
        if not self._rests:
            return
        self._quickest = min(self._quickest, seconds)
        self.rest_seconds = min(max(_REST_AT_LEAST, 2 * self._quickest), _REST_AT_MOST)

    def put(self, connection: Connection, idle_seconds: float, now: float) -> bool:
        """Keep a connection that may lie idle for `idle_seconds` more; return False if it is of no further use."""
        idle = min(self._idle, self.rest_seconds + _BEYOND_REST) if self._rests else self._idle
        if now < self._shown_until:
            idle = min(idle, self._shown)
        if idle_seconds < math.inf:
            idle = min(idle, idle_seconds / 2)
        if idle <= self.rest_seconds or len(self._waiting) >= MOST_RESTING:
            return False
        connection.idle_since, connection.idle_until = now, now + idle
        self._waiting.append(connection)
        return True

    def take(self, now: float) -> Connection | None:
        """Return the connection that has rested longest, if one has rested enough; close those that are of no use."""
        rest = self.rest_seconds
        while self._waiting and now - self._waiting[0].idle_since >= rest:
            connection = self._waiting.popleft()
            if now < connection.idle_until:
                connection.rested = now - connection.idle_since
                if connection.is_quiet:
                    return connection
                self._note_end(connection.rested, now)
            connection.abort()
        return None

    def _note_end(self, age: float, now: float) -> None:
        earlier = self._shown if now < self._shown_until else math.inf
        self._shown = min(earlier, age / 2)
        self._shown_until = now + _SHOWN_FOR_SECONDS

    def lost(self, connection: Connection, now: float) -> None:
        """Note that the server ended a connection; one that lay idle shows for how long the server lets it."""
        if connection in self._waiting:
            self._waiting.remove(connection)
            self._note_end(now - connection.idle_since, now)

    def broke(self, connection: Connection, now: float) -> None:
        """Note that a connection ended without a reply: if it had long lain idle, its end may have been under way."""
        if connection.rested > self.rest_seconds + _LONG_BEYOND_REST:
            self._note_end(connection.rested, now)

    def close_idle(self, now: float = math.inf) -> None:
        """Close what may no longer be asked at `now`."""
        kept: deque[Connection] = deque()
        for connection in self._waiting:
            if connection.closed or now >= connection.idle_until:
                connection.abort()
            else:
                kept.append(connection)
        self._waiting = kept
