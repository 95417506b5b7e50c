"""Our end of a terminal or a socket, on which nothing ever blocks.

Rules:
* Whoever waits is woken when the line is closed; nobody waits for what cannot come.
* The number of a closed descriptor may be another file's: nothing is done with it.
"""

import asyncio
import fcntl
import os
import struct
import termios
from typing import Final

PIECE_BYTES: Final = 1 << 16


class Line:
    """A descriptor that belongs to this object, and who waits for it."""

    def __init__(self, descriptor: int) -> None:
        os.set_blocking(descriptor, False)
        self._descriptor = descriptor
        self._readable: asyncio.Future[None] | None = None
        self._writable: asyncio.Future[None] | None = None
        self.closed = False

    def take(self) -> bytes | None:
        """Return what there is: empty at the end and on a closed line, None while there is nothing."""
        if self.closed:
            return b""
        try:
            return os.read(self._descriptor, PIECE_BYTES)
        except BlockingIOError:
            return None
        except OSError:
            return b""

    def put(self, data: memoryview) -> int:
        """Send what goes in at once; return how many bytes that were.

        Raises:
            OSError: nobody is at the other end. The line must not be closed.

        """
        try:
            return os.write(self._descriptor, data)
        except BlockingIOError:
            return 0

    async def readable(self) -> None:
        """Wait until there is something to take, or the line is closed; several may wait."""
        if self.closed:
            return
        if self._readable is None:
            loop = asyncio.get_running_loop()
            self._readable = loop.create_future()
            loop.add_reader(self._descriptor, self._stop_reading)
        await asyncio.wait([self._readable])

    async def writable(self) -> None:
        """Wait until something can be put, or the line is closed; several may wait."""
        if self.closed:
            return
        if self._writable is None:
            loop = asyncio.get_running_loop()
            self._writable = loop.create_future()
            loop.add_writer(self._descriptor, self._stop_writing)
        await asyncio.wait([self._writable])

    def set_size(self, rows: int, cols: int) -> None:
        """Tell a terminal its size, in characters; a line that is none, or is closed, has no size."""
        if not self.closed and os.isatty(self._descriptor):
            fcntl.ioctl(self._descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))

    def close(self) -> None:
        """Close it and wake who waits; a second call changes nothing."""
        if self.closed:
            return
        self._stop_reading()
        self._stop_writing()
        self.closed = True
        os.close(self._descriptor)

    def _stop_reading(self) -> None:
        waiting, self._readable = self._readable, None
        if waiting is not None:
            waiting.get_loop().remove_reader(self._descriptor)
            _wake(waiting)

    def _stop_writing(self) -> None:
        waiting, self._writable = self._writable, None
        if waiting is not None:
            waiting.get_loop().remove_writer(self._descriptor)
            _wake(waiting)


def _wake(waiting: "asyncio.Future[None]") -> None:
    if not waiting.done():
        waiting.set_result(None)
