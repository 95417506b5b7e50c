"""What a command prints, kept within a bound.

Rules:
* The beginning and the end are kept; what lies between is counted and left out in words.
* Memory follows what is kept, however much is printed.
"""

from collections import deque


class Captured:
    """The beginning and the end of one stream; `most` bytes of it at most."""

    def __init__(self, most: int) -> None:
        self._head_room = most // 2
        self._most_tail = most - most // 2
        self._head = bytearray()
        self._tail: deque[bytes] = deque()
        self._in_tail = 0
        self.total = 0

    def add(self, piece: bytes) -> None:
        """Take what was printed next."""
        self.total += len(piece)
        room = self._head_room - len(self._head)
        self._head += piece[:room] if room > 0 else b""
        rest = piece[max(room, 0) :]
        if rest:
            self._tail.append(rest)
            self._in_tail += len(rest)
        while self._tail and self._in_tail - len(self._tail[0]) >= self._most_tail:
            self._in_tail -= len(self._tail.popleft())

    def text(self) -> str:
        """Return what was kept; what is no UTF-8 is replaced."""
        tail = b"".join(self._tail)[-self._most_tail :]
        left_out = self.total - len(self._head) - len(tail)
        said = f"\n[... {left_out} bytes left out ...]\n" if left_out else ""
        head = bytes(self._head) if said else bytes(self._head) + tail
        return _decoded(head) + said + (_decoded(tail) if said else "")


def _decoded(content: bytes) -> str:
    return content.decode("utf-8", errors="replace")
