"""Bodies that go out piece by piece, and what becomes of their connections."""

import asyncio
import socket

import pytest

from rollbook.records.exchange import SendFailed
from rollbook.records.failure_kinds import Delivery
from rollbook.servers.wire.connection import Connection
from unit.servers_wire.scripted import OK, Clock, Scripted, Watched, posting

pytestmark = pytest.mark.filterwarnings("error::ResourceWarning", "ignore:Overriding the .event_loop_policy")


class Pieces:
    """A body of so many pieces of 256 KiB. `then`: what reading it back ends with."""

    def __init__(self, count, then=None):
        self.count, self.then = count, then
        self.size = count << 18

    def pieces(self):
        for _ in range(self.count):
            yield b"x" * (1 << 18)
        if self.then is not None:
            raise self.then


class Steered(asyncio.Transport):
    """A transport that takes what is written when it is told to."""

    def __init__(self, sock):
        super().__init__({"socket": sock})
        self.written = 0

    def write(self, data):
        self.written += 1

    def get_write_buffer_size(self):
        return 0

    def is_closing(self):
        return False

    def abort(self):
        """There is nothing to close."""


def arrives(connection, data):
    connection.get_buffer(-1)[: len(data)] = data
    connection.buffer_updated(len(data))


@pytest.fixture
def carried():
    """A connection over a transport that is steered."""
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as here:
        transport = Steered(here)
        connection = Connection({}, set(), lambda _connection: None, memoryview(bytearray(1024)))
        connection.connection_made(transport)
        yield connection, transport


async def test_a_connection_whose_server_answers_amid_the_body_is_not_used_again(carried):
    connection, transport = carried
    sending = asyncio.create_task(connection.carry(b"head", Watched(), 100, Pieces(3).pieces()))
    connection.pause_writing()
    await asyncio.sleep(0)
    assert transport.written == 2
    arrives(connection, OK)
    connection.resume_writing()
    reply, idle = await sending
    assert (reply.status, idle, transport.written) == (200, 0.0, 2)


async def test_a_connection_that_took_the_whole_body_is_used_again(carried):
    connection, transport = carried
    sending = asyncio.create_task(connection.carry(b"head", Watched(), 100, Pieces(3).pieces()))
    await asyncio.sleep(0)
    assert transport.written == 4
    arrives(connection, OK)
    _, idle = await sending
    assert idle > 0


async def test_a_body_goes_out_whole_and_its_connection_is_asked_again():
    server, clock = Scripted(), Clock()
    async with server.running() as url, posting(now=clock) as poster:
        for _ in range(2):
            assert (await poster.post("colours", url, Pieces(12), Watched())).status == 200
            clock.at += 0.025
    assert [len(request.partition(b"\r\n\r\n")[2]) for request in server.requests] == [12 << 18] * 2
    assert server.opened == 1


async def test_a_server_that_closes_amid_the_body_is_a_request_without_a_reply():
    class Closing(asyncio.Protocol):
        def connection_made(self, transport):
            self.transport = transport

        def data_received(self, data):
            self.transport.abort()

    server = await asyncio.get_running_loop().create_server(Closing, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with posting() as poster:
        with pytest.raises(SendFailed) as broken:
            await poster.post("colours", url, Pieces(64), Watched())
        assert not poster._open
    server.close()
    assert (broken.value.delivery, broken.value.status) == (Delivery.POSSIBLY_DELIVERED, None)


async def test_a_body_that_cannot_be_read_back_closes_its_connection():
    server, broken = Scripted(), Pieces(1, OSError("gone"))
    broken.size += 1
    async with server.running() as url, posting() as poster:
        with pytest.raises(OSError, match="gone"):
            await poster.post("colours", url, broken, Watched())
        await server.all_closed()
    assert server.requests == []
