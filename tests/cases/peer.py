"""A server on loopback that says each byte itself, so that a test decides what a connection meets, and sees it end.

Rules:
* It plays head, environment server and agent, as the stub does. What it does with a rollout is its script's: an
  asynchronous function of what was `Asked`; one that returns without an answer gives reward 1.0.
* It never closes a connection unless it was told to, and knows when the other side did.
"""

import asyncio
import contextlib
import json
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

import yaml

from stub import ENVIRONMENT, Stub

REASONS = {200: "OK", 401: "Unauthorized", 429: "Too Many Requests", 500: "Internal Server Error", 503: "Busy"}


def reply_of(body: bytes = b"", status: int = 200, kind: str = "application/json", **headers: str) -> bytes:
    """Return a whole reply; a header's underscores stand for hyphens."""
    more = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
    head = f"HTTP/1.1 {status} {REASONS.get(status, 'Said')}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n"
    return f"{head}{more}\r\n".encode() + body


def result(row: dict, reward: float = 1.0, **more: object) -> bytes:
    """Return the reply that gives a rollout its reward."""
    identity = {key: value for key, value in row.items() if key.startswith("_ng_")}
    return reply_of(json.dumps({"reward": reward, "response": {"output": []}} | identity | more).encode())


class Asked:
    """One request for a rollout. `at` is monotonic seconds; `gone` is set once its connection has ended."""

    def __init__(self, line: "_Line", headers: dict[str, str], row: dict) -> None:
        self.headers, self.row = headers, row
        self.at = time.monotonic()
        self.key = (row["_ng_task_index"], row["_ng_rollout_index"])
        self.task = self.key[0]
        self.attempt = row.get("_ng_attempt_index", 0)
        self.gone, self.peer = line.gone, line.peer
        self.answered = False
        self._line = line

    def say(self, data: bytes) -> None:
        """Send bytes as they are."""
        self._line.transport.write(data)

    def answer(self, data: bytes) -> None:
        """Send a whole reply."""
        self.say(data)
        self.over()

    def close(self) -> None:
        """End the connection after what was said."""
        self._line.transport.close()
        self.over()

    def over(self) -> None:
        """Count the rollout out: nothing more is said of it."""
        if not self.answered:
            self.answered = True
            self.peer.in_flight -= 1

    async def after(self, seconds: float) -> None:
        """Return after so many seconds, or once the other side is gone: what a server takes for a rollout."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.gone.wait(), seconds)

    async def taken(self) -> None:
        """Return once the other side has taken what was said, or is gone."""
        await asyncio.sleep(0)
        while self._line.transport.get_write_buffer_size() and not self.gone.is_set():  # noqa: ASYNC110  a socket has no event
            await asyncio.sleep(0)


Script = Callable[[Asked], Awaitable[None]]


async def at_once(_asked: Asked) -> None:
    """Answer."""


async def never(asked: Asked) -> None:
    """Say nothing, and return once the other side has given up."""
    await asked.gone.wait()


class Peer(Stub):
    """`asked` are the requests for rollouts in order; `most` is how many were in flight at once, `opened` connections.

    A connection on which nothing is asked for `idle` seconds after a reply is closed, where that is set.
    """

    def __init__(self, script: Script) -> None:
        super().__init__()
        self.script = script
        self.idle: float | None = None
        self.asked: list[Asked] = []
        self.in_flight = self.most = self.opened = 0
        self.elsewhere: int | None = None
        self.loop = asyncio.new_event_loop()

    def quiet(self) -> bool:
        """Wait until nothing is in flight: every rollout is answered, or its connection has ended."""
        asyncio.run_coroutine_threadsafe(self._quiet(), self.loop).result(20)
        return True

    async def _quiet(self) -> None:
        while self.in_flight:  # noqa: ASYNC110  it is counted, and has no event
            await asyncio.sleep(0)

    def config(self) -> dict:
        """Return what the head says; the environment server may be on a port `elsewhere`."""
        said = super().config()
        if self.elsewhere is not None:
            said[ENVIRONMENT]["environment_servers"]["legacy_agent"]["port"] = self.elsewhere
        return said

    def times(self) -> Counter[tuple[int, int]]:
        """Return how often each rollout was asked for."""
        return Counter(asked.key for asked in self.asked)

    async def serve(self, asked: Asked) -> None:
        """Do with a rollout what the script says."""
        self.asked.append(asked)
        self.requests.append(asked.row)
        self.in_flight += 1
        self.most = max(self.most, self.in_flight)
        await self.script(asked)
        if not asked.answered and not asked.gone.is_set():
            asked.answer(result(asked.row))
        asked.over()


class _Line(asyncio.Protocol):
    """One connection."""

    transport: asyncio.Transport

    def __init__(self, peer: Peer) -> None:
        self.peer = peer
        self.gone = asyncio.Event()
        self._read = b""
        self._closing: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.peer.opened += 1

    def connection_lost(self, _error: Exception | None) -> None:
        self.gone.set()

    def data_received(self, data: bytes) -> None:
        if self._closing is not None:
            self._closing.cancel()
        self._read += data
        head, found, body = self._read.partition(b"\r\n\r\n")
        first, *lines = head.decode().split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
        if not found or len(body) < int(headers.get("content-length", 0)):
            return
        self._read = b""
        task = asyncio.get_running_loop().create_task(self._request(first.split()[1], headers, body))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _request(self, path: str, headers: dict[str, str], body: bytes) -> None:
        if path == "/run":
            await self.peer.serve(Asked(self, headers, json.loads(body)))
            if self.peer.idle is not None:
                self._closing = asyncio.get_running_loop().call_later(self.peer.idle, self.transport.close)
        elif path == "/aggregate_metrics":
            self.transport.write(reply_of(json.dumps(self._aggregated(json.loads(body))).encode()))
        else:
            self.transport.write(reply_of(json.dumps(yaml.safe_dump(self.peer.config())).encode()))

    def _aggregated(self, body: dict) -> dict:
        self.peer.aggregated.append(body)
        rewards = [row["reward"] for row in body["verify_responses"] if "reward" in row]
        metrics = {"mean/reward": sum(rewards) / len(rewards) if rewards else 0.0}
        levels = {"group_level_metrics": [], "repeat_level_metrics": []}
        return {"agent_metrics": metrics, "key_metrics": metrics} | levels


@contextmanager
def serving(script: Script = at_once, port: int = 0) -> Iterator[Peer]:
    """Run a peer in a thread of its own for as long as the block lasts."""
    peer, started, stopping = Peer(script), threading.Event(), asyncio.Event()
    loop = peer.loop

    async def serve() -> None:
        server = await loop.create_server(lambda: _Line(peer), "127.0.0.1", port, backlog=4096)
        peer.port = server.sockets[0].getsockname()[1]
        started.set()
        await stopping.wait()
        server.close()
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),), daemon=True)
    thread.start()
    started.wait(10)
    try:
        yield peer
    finally:
        loop.call_soon_threadsafe(stopping.set)
        thread.join(10)
        loop.close()
