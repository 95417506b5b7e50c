"""Which connections are asked again."""

import asyncio
import math
from dataclasses import dataclass

import pytest

from rollbook.servers.wire.resting import MOST_RESTING, Resting
from unit.servers_wire.scripted import CLOSE, HOLD, OK, Clock, Scripted, Watched, posting, turned_until

pytestmark = pytest.mark.filterwarnings("error::ResourceWarning", "ignore:Overriding the .event_loop_policy")


@dataclass(eq=False)
class Idle:
    """A connection that lies idle."""

    is_quiet: bool = True
    closed: bool = False
    idle_since: float = 0.0
    idle_until: float = 0.0
    rested: float = 0.0

    def abort(self):
        self.closed = True


def rested(quickest=0.0001):
    resting = Resting()
    resting.came_up(quickest)
    return resting


@pytest.mark.parametrize(
    ("quickest", "age", "again"),
    [
        (0.0001, 0.0, False),
        (0.0001, 0.004, False),
        (0.0001, 0.006, True),
        (0.0001, 0.104, True),
        (0.0001, 0.106, False),
        (0.05, 0.09, False),
        (0.05, 0.11, True),
        (0.3, 0.59, False),
        (0.3, 0.69, True),
        (0.3, 0.71, False),
        (0.39, 0.79, True),
        (0.39, 0.801, False),
    ],
)
def test_a_connection_is_asked_again_once_it_has_rested_and_before_its_server_may_close_it(quickest, age, again):
    resting, idle = rested(quickest), Idle()
    assert resting.put(idle, math.inf, 100.0)
    assert (resting.take(100.0 + age) is idle) == again


def test_a_connection_that_would_have_to_rest_too_long_is_not_kept():
    assert not rested(0.5).put(Idle(), math.inf, 0.0)
    assert not Resting().put(Idle(), math.inf, 0.0)


def test_the_connection_that_has_rested_longest_goes_first():
    resting, idle = rested(), [Idle() for _ in range(3)]
    for at, connection in enumerate(idle):
        resting.put(connection, math.inf, at / 100)
    assert [resting.take(0.025) for _ in range(4)] == [*idle, None]


def test_a_connection_from_which_something_can_be_read_is_closed_and_the_next_one_taken():
    resting, spoke, quiet = rested(), Idle(is_quiet=False), Idle()
    resting.put(spoke, math.inf, 0.0)
    resting.put(quiet, math.inf, 0.0)
    assert resting.take(0.025) is quiet
    assert spoke.closed


@pytest.mark.parametrize(("told", "kept"), [(0.0, False), (0.01, False), (0.011, True), (5.0, True)])
def test_what_a_server_says_of_its_patience_is_halved(told, kept):
    assert rested().put(Idle(), told, 0.0) == kept


def test_a_server_that_ends_an_idle_connection_has_shown_its_patience():
    resting, ended = rested(), Idle()
    resting.put(ended, math.inf, 0.0)
    resting.lost(ended, 0.04)
    later = Idle()
    assert resting.put(later, math.inf, 1.0)
    assert resting.take(1.019) is later
    resting.put(later, math.inf, 2.0)
    assert resting.take(2.022) is None


@pytest.mark.parametrize(("age", "shows"), [(0.03, False), (0.04, True)])
def test_a_request_that_met_its_end_on_a_connection_long_idle_shows_the_servers_patience(age, shows):
    resting, idle = rested(), Idle()
    resting.put(idle, math.inf, 0.0)
    assert resting.take(age) is idle
    resting.broke(idle, age)
    resting.put(idle, math.inf, 1.0)
    assert (resting.take(1.02) is None) == shows


def test_what_a_server_has_shown_of_its_patience_is_not_forgotten_for_an_end_that_was_seen_late():
    resting = rested()
    for seen_after in (0.05, 0.5):
        ended = Idle()
        resting.put(ended, math.inf, 0.0)
        resting.lost(ended, seen_after)
    resting.put(Idle(), math.inf, 1.0)
    assert resting.take(1.03) is None


def test_a_server_that_ends_every_connection_after_its_reply_is_given_a_new_one_each_time():
    resting, ended = rested(), Idle()
    resting.put(ended, math.inf, 0.0)
    resting.lost(ended, 0.001)
    assert not resting.put(Idle(), math.inf, 1.0)


def test_no_more_are_kept_than_may_be_and_those_past_their_time_are_closed():
    resting, idle = rested(), [Idle() for _ in range(MOST_RESTING)]
    assert [resting.put(connection, math.inf, 0.0) for connection in idle] == [True] * MOST_RESTING
    assert not resting.put(Idle(), math.inf, 0.0)
    resting.close_idle(0.025)
    assert len(resting) == MOST_RESTING
    resting.close_idle(0.3)
    assert len(resting) == 0
    assert all(connection.closed for connection in idle)


async def posts(poster, clock, url, times=3, wait=0.025):
    for _ in range(times):
        await poster.post("colours", url, b"{}", Watched())
        clock.at += wait


REUSED = {
    "at once": (OK, 0.0, 3),
    "once rested": (OK, 0.02, 1),
    "idle too long": (OK, 0.5, 3),
    "told to keep it": (OK.replace(b"\r\n\r\n", b"\r\nKeep-Alive: timeout=5, max=100\r\n\r\n"), 0.02, 1),
    "told not to": (OK.replace(b"\r\n\r\n", b"\r\nKeep-Alive: timeout=0\r\n\r\n"), 0.02, 3),
    "told to close it": (OK.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"), 0.02, 3),
    "an old one": (OK.replace(b"1.1", b"1.0").replace(b"\r\n\r\n", b"\r\nConnection: keep-alive\r\n\r\n"), 0.02, 3),
    "bytes too many": (OK + b"x", 0.02, 3),
    "the beginning of another reply": (OK + b"HTTP/1.1 2", 0.02, 3),
    "chunks": (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", 0.02, 1),
    "no content": (b"HTTP/1.1 204 No\r\n\r\n", 0.02, 1),
    "no content, with a length": (b"HTTP/1.1 304 No\r\nContent-Length: 2\r\n\r\n", 0.02, 3),
    "much": (b"HTTP/1.1 200 OK\r\nContent-Length: 2000000\r\n\r\n" + bytes(2_000_000), 0.02, 1),
}


@pytest.mark.parametrize(("says", "wait", "connections"), REUSED.values(), ids=REUSED)
async def test_three_posts_take_as_many_connections_as_can_be_sure_of_their_replies(says, wait, connections):
    server, clock = Scripted(says, HOLD), Clock()
    async with server.running() as url, posting(now=clock) as poster:
        await posts(poster, clock, url, wait=wait)
    assert (server.opened, len(server.requests)) == (connections, 3)
    await server.all_closed()


async def test_a_server_that_closes_every_connection_unannounced_loses_no_request_and_sees_none_twice():
    server, clock = Scripted(OK, CLOSE), Clock()
    async with server.running() as url, posting(now=clock) as poster:
        await posts(poster, clock, url, times=50)
    assert (server.opened, len(server.requests)) == (50, 50)


async def test_bytes_that_nobody_asked_for_close_an_idle_connection():
    server, clock = Scripted(), Clock()
    async with server.running() as url, posting(now=clock) as poster:
        await posts(poster, clock, url, times=1)
        next(iter(server.connections)).transport.write(OK)
        await turned_until(lambda: not poster._open)
        await posts(poster, clock, url, times=1)
    assert (server.opened, len(server.requests)) == (2, 2)


async def test_requests_that_run_together_have_a_connection_each():
    server, clock = Scripted(), Clock()
    async with server.running() as url, posting(now=clock) as poster:
        for _ in range(3):
            calls = [poster.post("colours", url, b"{}", Watched()) for _ in range(8)]
            assert {reply.status for reply in await asyncio.gather(*calls)} == {200}
            clock.at += 0.025
    assert (server.opened, len(server.requests)) == (8, 24)


async def test_idle_connections_are_closed_by_themselves():
    server, clock = Scripted(), Clock()
    async with server.running() as url, posting(now=clock) as poster:
        await posts(poster, clock, url, times=1, wait=1.0)
        await server.all_closed()


def test_a_client_outlives_the_loop_that_it_was_used_in():
    async def once(poster):
        server = Scripted()
        async with server.running() as url:
            assert (await poster.post("colours", url, b"{}", Watched())).status == 200
            for connection in tuple(poster._open):
                connection.abort()
            await server.all_closed()

    async def both():
        async with posting() as poster:
            await once(poster)
            await asyncio.to_thread(asyncio.run, once(poster))

    asyncio.run(both())
