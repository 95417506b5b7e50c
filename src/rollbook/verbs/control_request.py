"""Asking a live run: what can be asked, what it answers, and the asking.

Rules:
* One connection carries one request and one answer, each one line of JSON of bounded length.
* Both ends read these types alone; what is more in a line is passed over.
"""

import errno
import os
import socket
from typing import Final

import msgspec

from rollbook.dispatch.controls import ControlStatus, Requeued
from rollbook.errors import RunError
from rollbook.ledger.control_socket import connect_to, peer_of
from rollbook.ledger.lock import holder_of, last_holder_of
from rollbook.ledger.paths import RunPaths
from rollbook.records.command import typed
from rollbook.records.identity import RolloutKey

PATIENCE_S: Final = 10.0
"""How long either end waits for the other."""
MOST_REQUEST_BYTES: Final = 4096
MOST_ROLLOUTS: Final = 64
"""The most rollouts that one request can name."""
MOST_IN_FLIGHT: Final = 1_000_000
_MOST_ANSWER_BYTES: Final = 1 << 20
_NOBODY: Final = (FileNotFoundError, NotADirectoryError, ConnectionRefusedError, ConnectionResetError, BrokenPipeError)


class Request(msgspec.Struct, frozen=True):
    """A command: `status`, `concurrency`, `pause`, `resume`, `drain` or `requeue` (with `rollouts`).

    `concurrency` comes with a `limit`, or with `auto`: the run is to find its limit by itself.
    """

    command: str
    limit: int | None = None
    auto: bool = False
    rollouts: tuple[RolloutKey, ...] = ()


class Answer(msgspec.Struct, frozen=True):
    """What was done, in words, and how the run is now; or, in `error`, why nothing was."""

    said: str = ""
    error: str | None = None
    status: ControlStatus | None = None
    requeued: tuple[Requeued, ...] = ()


def ask(paths: RunPaths, request: Request) -> Answer:
    """Ask the process that works on the run, and return what it answers.

    Raises:
        RunError: no process is there that hears, it belongs to somebody else, or it does not answer in time.

    """
    where = paths.control_socket
    try:
        with connect_to(where, PATIENCE_S) as connection:
            if not peer_of(connection).is_ours:
                raise RunError(f"{where}: a process of another user listens there; nothing was asked")
            return _answered(connection, _line_of(request))
    except TimeoutError as error:
        raise RunError(
            f"{where}: the run did not answer within {PATIENCE_S:g} s; whether it heard is not known"
        ) from error
    except _NOBODY as error:
        raise RunError(_nobody(paths)) from error
    except (OSError, msgspec.MsgspecError, ValueError) as error:
        raise RunError(f"{where}: the run cannot be asked: {_reason(error)}") from error


def _line_of(request: Request) -> bytes:
    line = msgspec.json.encode(request) + b"\n"
    if len(line) > MOST_REQUEST_BYTES:
        raise ValueError(f"a request has at most {MOST_REQUEST_BYTES} bytes")
    return line


def _answered(connection: socket.socket, line: bytes) -> Answer:
    connection.sendall(line)
    answer = bytearray()
    while not answer.endswith(b"\n"):
        part = connection.recv(1 << 16)
        if not part:
            raise ConnectionResetError(errno.ECONNRESET, os.strerror(errno.ECONNRESET))
        answer += part
        if len(answer) > _MOST_ANSWER_BYTES:
            raise ValueError("its answer does not end")
    return msgspec.json.decode(bytes(answer), type=Answer)


def _nobody(paths: RunPaths) -> str:
    """Say why nobody is there, as far as the run's lock tells."""
    output, here = paths.output, os.uname().nodename
    holder, last = holder_of(paths.lock), last_holder_of(paths.lock)
    if holder is None:
        was = f"; {last} was the last" if last else ""
        return f"{output}: no run is live here{was}. How it stands: {typed(['gym', 'eval', 'status', str(output)])}"
    if holder.pid and holder.host != here:
        return f"{output}: {holder} works on this run, and hears commands on that host alone"
    return (
        f"{output}: {holder} works on this run and hears no commands: it sends nothing yet or no longer, "
        "or its notes say what keeps it from listening"
    )


def _reason(error: Exception) -> str:
    return error.strerror if isinstance(error, OSError) and error.strerror else str(error)
