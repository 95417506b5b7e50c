"""A server over raw sockets, in a thread of its own: head server and environment servers at once.

Rules:
* What a request is answered is said by the `fault` of its row; a row without one is answered with a reward.
* Every request is noted by the `id` of its row once its bytes have arrived, be they read or not.
* A connection is noted as gone once its socket is closed.
"""

import asyncio
import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum, auto

import yaml

from rollbook.config.types import BaseServerConfig
from stub import AGENT
from unit.servers_wire.scripted import identity

HERE = "127.0.0.1"
SCRIPTED, REFUSED, NO_HOST, TLS_ALONE = "scripted", "refused", "no_host", "tls_alone"
_TRICKLE_SECONDS = 0.02
_ALONE_SECONDS = 30.0
_BOTH = 2
_MOST = 1 << 20


class Then(Enum):
    """What becomes of a connection once the reply is out."""

    KEEP = auto()
    CLOSE = auto()
    TRICKLE = auto()
    UNREAD = auto()
    """It is closed before the request is read, and nothing is said."""
    ALONE = auto()
    """The reply is held back until another request has arrived, and no other connection is open."""


@dataclass(frozen=True, slots=True)
class Says:
    text: bytes = b""
    then: Then = Then.KEEP


def reply(body: bytes, *headers: bytes, status: bytes = b"200 OK", length: int | None = None) -> bytes:
    told = b"Content-Length: %d" % (len(body) if length is None else length)
    return b"\r\n".join([b"HTTP/1.1 " + status, told, *headers, b"", body])


FINE = Says(reply(b'{"reward":1.0}'))


class RawServer:
    """`asked` are the ids of the rows that arrived; `connections` are the sockets that are open."""

    def __init__(self, replies: Mapping[str, Says]) -> None:
        self.replies = dict(replies)
        self.asked: list[str] = []
        self.connections: set[socket.socket] = set()
        self.changed = threading.Condition()
        self.turned = asyncio.Event()
        self.ports: dict[str, int] = {}

    @property
    def config(self) -> dict:
        """The deployment: one agent, and an environment server for each kind of address."""
        agent = {"type": "responses_api_agents", "name": AGENT}
        here = {"entrypoint": "app.py", "host": HERE, "port": self.ports[SCRIPTED]}
        config = {
            "head_server": {"host": HERE, "port": self.ports[SCRIPTED]},
            AGENT: {"responses_api_agents": {"simple_agent": here}},
        }
        for name, port in self.ports.items():
            address = {"host": "nowhere.invalid" if name == NO_HOST else HERE, "port": port}
            config[name] = {"environment_servers": {"legacy_agent": here | address | {"agent_server": agent}}}
        return config

    @property
    def head(self) -> BaseServerConfig:
        return BaseServerConfig(host=HERE, port=self.ports[SCRIPTED])

    def wait(self, true: Callable[[], bool]) -> None:
        """Return once `true()`, which is looked at whenever something arrived or was closed."""
        with self.changed:
            assert self.changed.wait_for(true, 60), f"{len(self.connections)} open; asked: {self.asked}"

    def all_closed(self) -> None:
        self.wait(lambda: not self.connections)

    def forget(self) -> None:
        with self.changed:
            self.asked.clear()

    async def listen(self, listener: socket.socket, serve: Callable) -> None:
        loop, serving = asyncio.get_running_loop(), set()
        while True:
            connection, _ = await loop.sock_accept(listener)
            connection.settimeout(0)
            with self.changed:
                self.connections.add(connection)
            task = asyncio.create_task(self._held(connection, serve))
            serving.add(task)
            task.add_done_callback(serving.discard)

    async def _held(self, connection: socket.socket, serve: Callable) -> None:
        try:
            await serve(connection)
        except (ConnectionError, ssl.SSLError, TimeoutError):
            pass
        finally:
            connection.close()
            with self.changed:
                self.connections.discard(connection)
                self.changed.notify_all()
            self.turned.set()

    async def answer(self, connection: socket.socket) -> None:
        while request := await self._arrived(connection):
            if request.startswith(b"GET"):
                connection.recv(_MOST)
                await self._say(connection, reply(json.dumps(yaml.safe_dump(self.config)).encode()))
                continue
            says = self.replies.get(_row(request).get("fault"), FINE)
            if says.then is Then.UNREAD:
                return
            connection.recv(_MOST)
            if says.then is Then.ALONE:
                await self._alone()
            await self._say(connection, says.text)
            if says.then is Then.CLOSE:
                return
            if says.then is Then.TRICKLE:
                await self._trickle(connection)

    async def speak_tls(self, connection: socket.socket) -> None:
        """Take what arrives for the beginning of TLS, and answer with the alert that it is none."""
        await self._arrived(connection)
        heard, said = ssl.MemoryBIO(), ssl.MemoryBIO()
        heard.write(connection.recv(_MOST))
        try:
            identity().wrap_bio(heard, said, server_side=True).do_handshake()
        finally:
            await self._say(connection, said.read())

    async def _arrived(self, connection: socket.socket) -> bytes:
        """Return the request that has arrived, unread; nothing where the connection ends."""
        await _readable(connection)
        request = connection.recv(_MOST, socket.MSG_PEEK)
        if request.startswith(b"POST"):
            with self.changed:
                self.asked.append(_row(request)["id"])
                self.changed.notify_all()
            self.turned.set()
        return request

    async def _say(self, connection: socket.socket, text: bytes) -> None:
        await asyncio.get_running_loop().sock_sendall(connection, text)

    async def _alone(self) -> None:
        async with asyncio.timeout(_ALONE_SECONDS):
            while len(self.connections) > 1 or len(self.asked) < _BOTH:
                self.turned.clear()
                await self.turned.wait()

    async def _trickle(self, connection: socket.socket) -> None:
        while True:
            await self._say(connection, b" ")
            try:
                async with asyncio.timeout(_TRICKLE_SECONDS):
                    await _readable(connection)
            except TimeoutError:
                continue
            return


async def _readable(connection: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    came = loop.create_future()
    loop.add_reader(connection, lambda: came.done() or came.set_result(None))
    try:
        await came
    finally:
        loop.remove_reader(connection)


def _row(request: bytes) -> dict:
    """Return the row that a request holds; requests are small, and arrive whole."""
    return json.loads(request.partition(b"\r\n\r\n")[2])


@contextmanager
def serving(replies: Mapping[str, Says]) -> Iterator[RawServer]:
    """Serve for as long as the block lasts."""
    server, loop = RawServer(replies), asyncio.new_event_loop()
    with socket.socket() as scripted, socket.socket() as tls, socket.socket() as closed:
        for name, listener in ((SCRIPTED, scripted), (TLS_ALONE, tls), (REFUSED, closed)):
            listener.bind((HERE, 0))
            listener.settimeout(0)
            server.ports[name] = listener.getsockname()[1]
        server.ports[NO_HOST] = server.ports[SCRIPTED]
        scripted.listen(256)
        tls.listen(256)

        async def serve() -> None:
            await asyncio.gather(server.listen(scripted, server.answer), server.listen(tls, server.speak_tls))

        async def watched(until: asyncio.Event) -> None:
            task = asyncio.create_task(serve())
            await until.wait()
            task.cancel()
            await asyncio.wait({task})

        stopping = asyncio.Event()
        thread = threading.Thread(target=loop.run_until_complete, args=(watched(stopping),), daemon=True)
        thread.start()
        try:
            yield server
        finally:
            loop.call_soon_threadsafe(stopping.set)
            thread.join(10)
            loop.close()
