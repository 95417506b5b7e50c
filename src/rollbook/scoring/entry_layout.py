"""How the entries of tasks are written down: compact, or so many levels deep in a text of two spaces a level.

Rules:
* A layout changes white space alone; many values are laid out in one step.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from rollbook.scoring.streamed_shape import Text

_INDENT: Final = 2
_MEMBER: Final = b'"":'
_NOTHING: Final = b"0"


class Layout:
    """Lays JSON out that lies `depth` arrays deep in an indented text; without a depth, it stays compact."""

    def __init__(self, depth: int | None = None) -> None:
        self._depth = depth
        around = b"" if depth is None else self._indented(_NOTHING)
        self._before, _, self._behind = around.partition(_NOTHING)
        object_of_two = self.text(b'{"":0,"":0}')
        self._opened, self._between, self._closed = object_of_two.split(_NOTHING)

    def _indented(self, text: bytes) -> bytes:
        depth = self._depth or 0
        return msgspec.json.format(b"[" * depth + text + b"]" * depth, indent=_INDENT)

    def text(self, value: bytes) -> bytes:
        """Return a value as it lies there; its first line is not indented."""
        if self._depth is None:
            return value
        return self._indented(value)[len(self._before) : -len(self._behind) or None]

    def members(self, values: Sequence[Text]) -> list[bytes]:
        """Return values as they lie inside an object that lies there."""
        if self._depth is None or not values:
            return list(map(bytes, values))
        text = self.text(b"{" + _MEMBER + (b"," + _MEMBER).join(values) + b"}")
        return text[len(self._opened) : -len(self._closed)].split(self._between)


COMPACT: Final = Layout()
