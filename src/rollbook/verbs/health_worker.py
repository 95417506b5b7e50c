"""A process of its own that examines parts of result files: asked on standard input, answering on standard output.

Rules:
* A message is its length in four bytes, then MessagePack. The process ends when nobody asks any more.
* It is started anew, never forked: nothing of the asking process comes along, and nothing of its main module runs.
* What anything prints goes to standard error.

Source: collection.md §7.1.
"""

import os
import sys
from contextlib import suppress
from subprocess import DEVNULL, PIPE, Popen
from typing import IO, Final

import msgspec

from rollbook.health.batch import Batch, examined_batch
from rollbook.verbs.health_lines import Part, lines_of

_HEADER: Final = 4
_START: Final = "import sys; sys.path[:] = sys.argv[1:]; from rollbook.verbs.health_worker import answer; answer()"
_PARTS: Final = msgspec.msgpack.Decoder(Part)
_BATCHES: Final = msgspec.msgpack.Decoder(Batch)
_GONE: Final = (OSError, EOFError, ValueError, msgspec.DecodeError)


class WorkerDiedError(Exception):
    """The process ended with work in its hands."""


class Worker:
    """The process, as seen by who asks it.

    Raises:
        OSError: no process can be started.

    """

    def __init__(self) -> None:
        self._process = Popen(  # noqa: S603  our own interpreter and our own module
            [sys.executable, "-c", _START, *filter(None, sys.path)],
            stdin=PIPE,
            stdout=PIPE,
            stderr=DEVNULL,
            process_group=0,
        )

    @property
    def pid(self) -> int:
        """The number of the process."""
        return self._process.pid

    def examine(self, part: Part) -> Batch:
        """Return what `part` holds.

        Raises:
            WorkerDiedError: the process is gone.

        """
        try:
            _send(_piped(self._process.stdin), msgspec.msgpack.encode(part))
            return _BATCHES.decode(_received(_piped(self._process.stdout)))
        except _GONE as error:
            raise WorkerDiedError(str(error)) from error

    def end(self) -> None:
        """Let the process end."""
        for pipe in (self._process.stdin, self._process.stdout):
            with suppress(OSError):
                _piped(pipe).close()
        self._process.kill()
        self._process.wait()


def examined(part: Part) -> Batch:
    """Examine `part` in this process.

    Raises:
        OSError: its file cannot be read.

    """
    return examined_batch(lines_of(part), part.file, part.ordinal, part.ignored)


def answer() -> None:
    """Examine what is asked for until nobody asks any more."""
    out = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    with suppress(EOFError, BrokenPipeError):
        while True:
            part = _PARTS.decode(_received(sys.stdin.buffer))
            _send(out, msgspec.msgpack.encode(examined(part)))


def _piped(pipe: IO[bytes] | None) -> IO[bytes]:
    if pipe is None:
        raise EOFError("no pipe")
    return pipe


def _send(pipe: IO[bytes], message: bytes) -> None:
    pipe.write(len(message).to_bytes(_HEADER, "big"))
    pipe.write(message)
    pipe.flush()


def _received(pipe: IO[bytes]) -> bytes:
    length = int.from_bytes(_exactly(pipe, _HEADER), "big")
    return _exactly(pipe, length)


def _exactly(pipe: IO[bytes], length: int) -> bytes:
    message = pipe.read(length)
    if len(message) != length:
        raise EOFError("the other side is gone")
    return message
