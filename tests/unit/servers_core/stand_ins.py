"""Servers small enough to see through, and the configurations that serve them."""

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from textwrap import dedent

from aiohttp import ClientResponse
from fastapi import FastAPI, HTTPException, Request
from omegaconf import DictConfig, OmegaConf
from pydantic import BaseModel, PrivateAttr

from ports import free_ports
from rollbook.config.types import BaseRunServerInstanceConfig, BaseServerConfig
from rollbook.servers.base import SESSION_ID_KEY, SimpleServer
from rollbook.servers.client import ServerClient, raise_for_status, request
from rollbook.servers.http.addresses import AddressBook
from rollbook.servers.http.embedded_registry import register_embedded, unregister_embedded
from rollbook.servers.http.listening import Listener
from rollbook.servers.serving.deployment import post_once
from rollbook.servers.wire.poster import Poster

HEAD = BaseServerConfig(host="127.0.0.1", port=1)


class Number(BaseModel):
    number: int


class Unearthly(BaseException):
    """Neither an error nor a cancellation."""


class Probe(SimpleServer):
    """Answers, fails in every way, and waits until it is cancelled."""

    _entered: asyncio.Event = PrivateAttr(default_factory=asyncio.Event)
    _left: asyncio.Event = PrivateAttr(default_factory=asyncio.Event)
    _inner: str = PrivateAttr(default="")

    def setup_webserver(self) -> FastAPI:
        app = FastAPI()
        self.setup_session_middleware(app)
        app.post("/next")(self.next)
        app.post("/session")(self.session)
        app.post("/fail/{how}")(self.fail)
        app.post("/wait")(self.wait)
        app.post("/forward")(self.forward)
        app.get("/health")(self.health)
        return app

    async def next(self, body: Number) -> Number:
        return Number(number=body.number + 1)

    async def session(self, request: Request) -> dict[str, object]:
        return {"id": request.session[SESSION_ID_KEY], "query": str(request.url.query)}

    async def fail(self, how: str) -> None:
        errors = {"value": ValueError("no"), "cancelled": asyncio.CancelledError(), "unearthly": Unearthly()}
        raise errors.get(how) or HTTPException(418, "short and stout")

    async def wait(self) -> None:
        self._entered.set()
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            self._left.set()

    async def forward(self) -> None:
        await raise_for_status(await request("POST", self._inner + "/fail/value"))

    async def health(self) -> dict[str, str]:
        return {"status": "its own"}


def probe(name: str = "probe") -> Probe:
    config = BaseRunServerInstanceConfig(host="127.0.0.1", port=1, entrypoint="", name=name)
    return Probe(config=config, server_client=ServerClient(HEAD, OmegaConf.create({})))


def listening_socket() -> socket.socket:
    bound = socket.create_server(("127.0.0.1", 0))
    bound.settimeout(0)
    return bound


@asynccontextmanager
async def behind_a_socket(app: Callable[..., Awaitable[None]]) -> AsyncIterator[str]:
    """Serve `app` on a port of its own, and yield its address."""
    listener = Listener(app, listening_socket())
    listener.start()
    try:
        yield f"http://127.0.0.1:{listener.port}"
    finally:
        await listener.close()


APP = """
    from fastapi import FastAPI
    from rollbook.config.types import BaseRunServerInstanceConfig
    from rollbook.servers.base import SimpleServer


    class ColoursConfig(BaseRunServerInstanceConfig):
        favourite: str = "teal"


    class Colours(SimpleServer):
        config: ColoursConfig

        def setup_webserver(self) -> FastAPI:
            app = FastAPI()
            self.setup_session_middleware(app)
            app.post("/run")(self.run)
            return app

        async def run(self) -> dict[str, str]:
            print("asked")
            return {"colour": self.config.favourite}


    if __name__ == "__main__":
        Colours.run_webserver()
"""


def write_component(root: Path, name: str, source: str = APP) -> Path:
    folder = root / "resources_servers" / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "app.py").write_text(dedent(source))
    return folder


def configuration(instances: dict[str, dict[str, object]], **top: object) -> DictConfig:
    """Return a configuration of resources servers; each instance's implementation is its own name unless it says so."""
    ports = free_ports(len(instances) + 1)
    blocks = {}
    for (name, given), port in zip(instances.items(), ports[1:], strict=True):
        block = {"entrypoint": "app.py", "domain": "other", "host": "127.0.0.1", "port": port, **given}
        implementation = block.pop("implementation", name)
        blocks[name] = {"resources_servers": {implementation: block}}
    return OmegaConf.create({"head_server": {"host": "127.0.0.1", "port": ports[0]}, **blocks, **top})


@asynccontextmanager
async def saying(payload: bytes) -> AsyncIterator[BaseServerConfig]:
    """Say `payload` to whoever connects and asks, and yield the address."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(4096)
        writer.write(payload)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield BaseServerConfig(host="127.0.0.1", port=server.sockets[0].getsockname()[1])


def addresses(url: str) -> AddressBook:
    """Return the addresses of a deployment whose one server, `colours`, is at `url`."""
    host, _, port = url.removeprefix("http://").partition(":")
    block = {"host": host, "port": int(port), "entrypoint": "app.py", "domain": "other"}
    return AddressBook(OmegaConf.create({"colours": {"resources_servers": {"colours": block}}}))


@asynccontextmanager
async def in_process(app: Callable[..., Awaitable[None]], port: int = 7) -> AsyncIterator[str]:
    """Answer an address with `app`, without a socket, and yield the address."""
    server = register_embedded("127.0.0.1", port, app)
    try:
        yield server.base_url
    finally:
        unregister_embedded(server)
        await server.close()


async def reply_to(app: Callable[..., Awaitable[None]], method: str, path: str, **options: object) -> ClientResponse:
    async with in_process(app) as url:
        return await request(method, url + path, **options)


async def posted(url: str, path: str = "/run", *, server: str = "colours", **options: object):
    """Send a rollout's request to the one server at `url`, which is `colours`."""
    gone = options.pop("gone", None)
    poster = Poster(**{"grace_seconds": 0, **options})
    try:
        return await post_once(poster, addresses(url), server, path, b"{}", gone=gone)
    finally:
        await poster.aclose()
