"""A rollout's request that is answered in this process: the same account of it as over a socket."""

import asyncio

import pytest

from ports import free_ports
from rollbook.records.exchange import Exchange, Phase, SendFailed
from rollbook.records.failure_kinds import Delivery
from rollbook.servers.http.embedded_post import post_embedded
from rollbook.servers.http.embedded_registry import register_embedded, unregister_embedded


class App:
    """Answers as it is told, and notes what it was asked."""

    def __init__(self, *pieces, whole=True):
        self.pieces = pieces
        self.whole = whole
        self.scopes = []
        self.entered = asyncio.Event()
        self.ended = asyncio.Event()

    async def __call__(self, scope, receive, send):
        self.scopes.append(scope)
        self.entered.set()
        try:
            if not self.pieces:
                await asyncio.get_running_loop().create_future()
            await send({"type": "http.response.start", "status": 200, "headers": [(b"X-Own", b"1")]})
            for piece in self.pieces:
                await send({"type": "http.response.body", "body": piece, "more_body": True})
            if self.whole:
                await send({"type": "http.response.body"})
        finally:
            self.ended.set()


@pytest.fixture
def served():
    servers = []

    def serve(app):
        (port,) = free_ports(1)
        servers.append(register_embedded("127.0.0.1", port, app))
        return servers[-1].base_url

    yield serve
    for server in servers:
        unregister_embedded(server)


def exchange(seconds=None):
    return Exchange(lambda: 0.0, seconds)


async def test_a_server_of_this_process_answers_and_the_exchange_is_told(served):
    app, seen = App(b"{", b"}"), exchange(7.25)
    url = served(app)
    reply = await post_embedded("colours", f"{url}/a b?c=d", b"{}", seen, 100)
    assert (reply.status, reply.body, reply.headers["x-own"]) == (200, b"{}", "1")
    assert (seen.phase, seen.status, seen.host) == (Phase.READING, 200, url.removeprefix("http://"))
    (scope,) = app.scopes
    assert (scope["path"], scope["query_string"]) == ("/a b", b"c=d")
    assert dict(scope["headers"])[b"x-rollout-deadline"] == b"7.25"


async def test_a_reply_above_the_bound_is_none(served):
    with pytest.raises(SendFailed, match="max_reply_bytes is 3") as caught:
        await post_embedded("colours", served(App(b"1234")), b"{}", exchange(), 3)
    assert (caught.value.exception_type, caught.value.status) == ("ReplyTooLarge", 200)
    assert caught.value.delivery is Delivery.DELIVERED


async def test_the_exchange_knows_of_a_reply_as_soon_as_it_begins(served):
    begun, seen = asyncio.Event(), exchange()

    async def slow(scope, receive, send):
        await send({"type": "http.response.start", "status": 503, "headers": []})
        begun.set()
        await asyncio.get_running_loop().create_future()

    call = asyncio.create_task(post_embedded("colours", served(slow), b"{}", seen, 100))
    await begun.wait()
    assert (seen.phase, seen.status, seen.delivery) == (Phase.READING, 503, Delivery.POSSIBLY_DELIVERED)
    call.cancel()
    await asyncio.wait({call})


@pytest.mark.parametrize("pauses", [True, False])
@pytest.mark.parametrize("stubborn", [True, False])
async def test_a_reply_ends_as_soon_as_it_is_above_the_bound_and_its_handler_is_cancelled(served, pauses, stubborn):
    produced, ended = [], asyncio.Event()

    async def pieces(send):
        for _ in range(1000):
            produced.append(1)
            await send({"type": "http.response.body", "body": b"12", "more_body": True})
            if pauses:
                await asyncio.sleep(0)

    async def big(scope, receive, send):
        try:
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await pieces(send)
        except asyncio.CancelledError:
            if stubborn:
                await send({"type": "http.response.body", "body": b"12"})
            raise
        finally:
            ended.set()

    seen = exchange()
    with pytest.raises(SendFailed, match="has more than 3 bytes, and max_reply_bytes is 3") as caught:
        await post_embedded("colours", served(big), b"{}", seen, 3)
    assert (caught.value.exception_type, caught.value.status) == ("ReplyTooLarge", 200)
    assert (caught.value.delivery, seen.phase) == (Delivery.DELIVERED, Phase.READING)
    await ended.wait()
    assert len(produced) < 10


async def test_a_reply_that_declares_more_than_the_bound_ends_before_any_of_it_is_made(served):
    produced, ended = [], asyncio.Event()

    async def big(scope, receive, send):
        try:
            await send({"type": "http.response.start", "status": 200, "headers": [(b"Content-Length", b"4000")]})
            produced.append(await send({"type": "http.response.body", "body": b"1", "more_body": True}))
        finally:
            ended.set()

    seen = exchange()
    with pytest.raises(SendFailed, match="has 4000 bytes, and max_reply_bytes is 3999") as caught:
        await post_embedded("colours", served(big), b"{}", seen, 3999)
    assert (caught.value.exception_type, caught.value.status) == ("ReplyTooLarge", 200)
    assert (caught.value.delivery, seen.phase) == (Delivery.DELIVERED, Phase.READING)
    await ended.wait()
    assert produced == []


@pytest.mark.parametrize("length", [b"4", b"", b"+4000", b"many"])
async def test_a_length_within_the_bound_or_none_at_all_says_nothing_of_a_reply(served, length):
    async def told(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", length)]})
        await send({"type": "http.response.body", "body": b"1234"})

    assert (await post_embedded("colours", served(told), b"{}", exchange(), 4)).body == b"1234"


async def test_a_reply_that_breaks_off_was_begun(served):
    with pytest.raises(SendFailed) as caught:
        await post_embedded("colours", served(App(b"1234", whole=False)), b"{}", exchange(), 100)
    assert (caught.value.exception_type, caught.value.status) == ("ClientPayloadError", 200)
    assert caught.value.delivery is Delivery.DELIVERED


async def test_a_handler_that_ends_without_a_reply_is_a_500_as_over_a_socket(served):
    async def silent(scope, receive, send):
        """Say nothing."""

    seen = exchange()
    reply = await post_embedded("colours", served(silent), b"{}", seen, 100)
    assert (reply.status, seen.status, seen.phase) == (500, 500, Phase.READING)


async def test_cancelling_a_request_cancels_its_handler(served):
    app, seen = App(), exchange()
    call = asyncio.create_task(post_embedded("colours", served(app), b"{}", seen, 100))
    await app.entered.wait()
    call.cancel()
    await asyncio.wait({call})
    await app.ended.wait()
    assert (seen.phase, seen.delivery) == (Phase.WAITING, Delivery.POSSIBLY_DELIVERED)


async def test_an_address_of_nobody_here_is_left_to_a_socket():
    assert await post_embedded("colours", "http://127.0.0.1:1/run", b"{}", exchange(), 100) is None
