"""Hearing what a live run is told: a socket beside the ledger, for as long as rollouts are collected.

Rules:
* Whoever asks wrongly, slowly or never costs the run nothing: a request is bounded in length, in time and in number.
* A run that cannot listen goes on, and says so once.
* What changes the run leaves a note of what was asked, and by which process.

Source: collection.md §3.
"""

import asyncio
import logging
import socket
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Final

import msgspec
from msgspec.structs import replace

from rollbook.clock import Clock
from rollbook.dispatch.controls import Controls, ControlStatus, Requeued
from rollbook.ledger.control_socket import Listener, Peer, listen_at, peer_of
from rollbook.ledger.paths import RunPaths
from rollbook.verbs.control_request import (
    MOST_IN_FLIGHT,
    MOST_REQUEST_BYTES,
    MOST_ROLLOUTS,
    PATIENCE_S,
    Answer,
    Request,
)

Note = Callable[[str], None]

_LOG = logging.getLogger(__name__)
_AT_ONCE: Final = 8
_WAITING_TOLD: Final = 20
_ASK_AGAIN_S: Final = 1.0


@asynccontextmanager
async def served(paths: RunPaths, controls: Controls, note: Note, clock: Clock) -> AsyncIterator[None]:
    """Hear commands for as long as the block lasts, and do them; `note` is told of each that changes the run."""
    listener = _listening(paths, note)
    if listener is None:
        yield
        return
    desk = _Desk(controls, note, clock)
    hearing = asyncio.create_task(desk.hear(listener.socket))
    try:
        yield
    finally:
        hearing.cancel()
        await desk.close(hearing)
        listener.close()


def _listening(paths: RunPaths, note: Note) -> Listener | None:
    try:
        return listen_at(paths.control_socket)
    except OSError as error:
        note(f"{paths.control_socket}: gym eval ctl cannot reach this run: {error.strerror or error}")
        return None


class _Desk(msgspec.Struct):
    """Where requests are heard; so many at once, and no others meanwhile."""

    controls: Controls
    note: Note
    clock: Clock
    _room: asyncio.Semaphore = msgspec.field(default_factory=partial(asyncio.Semaphore, _AT_ONCE))
    _talks: set[asyncio.Task[None]] = msgspec.field(default_factory=set)

    async def hear(self, listener: socket.socket) -> None:
        """Take one connection after the other, for good."""
        while True:
            await self._room.acquire()
            connection = await self._accepted(listener)
            talk = asyncio.create_task(self._talk(connection))
            self._talks.add(talk)
            talk.add_done_callback(partial(self._ended, connection))

    async def _accepted(self, listener: socket.socket) -> socket.socket:
        """Return the next connection. A process without free descriptors tries again later."""
        while True:
            with suppress(OSError):
                connection, _ = await asyncio.get_running_loop().sock_accept(listener)
                connection.settimeout(0)
                return connection
            await self.clock.sleep(_ASK_AGAIN_S)

    async def close(self, *others: asyncio.Task[None]) -> None:
        """End what is being heard."""
        for talk in self._talks:
            talk.cancel()
        await asyncio.gather(*others, *self._talks, return_exceptions=True)

    def _ended(self, connection: socket.socket, talk: asyncio.Task[None]) -> None:
        connection.close()
        self._talks.discard(talk)
        self._room.release()
        error = None if talk.cancelled() else talk.exception()
        if error is not None:
            _LOG.warning("a control command failed: %s", error, exc_info=error)

    async def _talk(self, connection: socket.socket) -> None:
        peer = peer_of(connection)
        if not peer.is_ours:
            _LOG.warning("a process of another user (%s) asked for control and was refused", peer.uid)
            return
        with suppress(OSError):
            async with asyncio.timeout(PATIENCE_S):
                line = await _line(connection)
                if line is not None:
                    answer = answered(line, self.controls, partial(_noted, self.note, peer))
                    await asyncio.get_running_loop().sock_sendall(connection, msgspec.json.encode(answer) + b"\n")


async def _line(connection: socket.socket) -> bytes | None:
    """Return a request without its line end: at most one byte more than one may have. None: the other side left."""
    loop, read = asyncio.get_running_loop(), bytearray()
    while b"\n" not in read and len(read) <= MOST_REQUEST_BYTES:
        part = await loop.sock_recv(connection, MOST_REQUEST_BYTES + 1 - len(read))
        if not part:
            return None
        read += part
    return bytes(read).partition(b"\n")[0]


def _noted(note: Note, peer: Peer, what: str) -> None:
    note(f"{what} by ctl" + (f" (pid {peer.pid})" if peer.pid else ""))


class _RefusedError(Exception):
    """A request that says nothing that can be done."""


def answered(line: bytes, controls: Controls, note: Note) -> Answer:
    """Do what a request says, and return what is answered; what it says wrongly is answered, too."""
    try:
        request = _request(line)
        done = _COMMANDS[request.command](controls, request, note)
    except _RefusedError as error:
        return Answer(error=str(error))
    return replace(done, status=_bounded(controls.status()))


def _request(line: bytes) -> Request:
    if len(line) > MOST_REQUEST_BYTES:
        raise _RefusedError(f"a request has at most {MOST_REQUEST_BYTES} bytes")
    try:
        request = msgspec.json.decode(line, type=Request)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise _RefusedError(f"a request is one JSON object on one line, with its command: {error}") from error
    if request.command not in _COMMANDS:
        raise _RefusedError(f"no such command; commands: {', '.join(_COMMANDS)}")
    return request


def _bounded(status: ControlStatus) -> ControlStatus:
    return replace(status, waiting=status.waiting[:_WAITING_TOLD])


def _status(_controls: Controls, _request: Request, _note: Note) -> Answer:
    return Answer()


def _concurrency(controls: Controls, request: Request, note: Note) -> Answer:
    limit = request.limit
    if request.auto:
        controls.set_limit(None)
        return _done("concurrency is found by the run again", note)
    if limit is None or not 1 <= limit <= MOST_IN_FLIGHT:
        raise _RefusedError(f"concurrency: give a limit from 1 to {MOST_IN_FLIGHT}")
    why_not = controls.set_limit(limit)
    if why_not is not None:
        raise _RefusedError(why_not)
    return _done(f"concurrency set to {limit}", note)


def _pause(controls: Controls, request: Request, note: Note) -> Answer:
    _refuse_for_good(controls, request)
    controls.pause()
    return _done("paused", note)


def _resume(controls: Controls, request: Request, note: Note) -> Answer:
    _refuse_for_good(controls, request)
    controls.resume()
    return _done("resumed", note)


def _refuse_for_good(controls: Controls, request: Request) -> None:
    status = controls.status()
    if status.draining:
        raise _RefusedError(
            f"{request.command}: nothing further is sent, for good: {status.stop_reason}; "
            "once it ended, `gym eval run --resume` goes on"
        )


def _drain(controls: Controls, _request: Request, note: Note) -> Answer:
    controls.drain("drained by ctl")
    return _done("draining", note)


def _requeue(controls: Controls, request: Request, note: Note) -> Answer:
    keys = tuple(dict.fromkeys(request.rollouts))
    if not 0 < len(keys) <= MOST_ROLLOUTS:
        raise _RefusedError(f"requeue: name 1 to {MOST_ROLLOUTS} rollouts")
    answers = controls.requeue(keys)
    ended = [_named(answer) for answer in answers if answer.attempt is not None]
    done = _done(f"requeued {', '.join(ended)}", note) if ended else Answer("nothing was requeued")
    return replace(done, requeued=answers)


def _named(answer: Requeued) -> str:
    return f"{answer.key} (attempt {answer.attempt})"


def _done(what: str, note: Note) -> Answer:
    note(what)
    return Answer(what)


_COMMANDS: Final[Mapping[str, Callable[[Controls, Request, Note], Answer]]] = {
    "status": _status,
    "concurrency": _concurrency,
    "pause": _pause,
    "resume": _resume,
    "drain": _drain,
    "requeue": _requeue,
}
