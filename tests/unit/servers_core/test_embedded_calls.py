import asyncio
import signal
import socket

import pytest
from aiohttp import ClientPayloadError, ClientResponseError
from fastapi import FastAPI, Request
from starlette.responses import PlainTextResponse, StreamingResponse

from ports import free_ports
from rollbook.errors import PortTakenError
from rollbook.servers.correlation import current_rollout_id, rollout_context
from rollbook.servers.http.embedded_call import EmbeddedRequest
from rollbook.servers.http.embedded_registry import find_embedded, hand_out, register_embedded, unregister_embedded
from rollbook.servers.http.embedded_response import EmbeddedResponse
from rollbook.servers.http.http_client import request
from rollbook.servers.kinds.agent_server_cookies import merged_cookies
from unit.servers_core.stand_ins import Number, behind_a_socket, in_process, probe, reply_to


def echo() -> FastAPI:
    """Answer with what was asked, as the application saw it."""
    app = FastAPI()

    @app.middleware("http")
    async def wrapped(request: Request, call_next):
        reply = await call_next(request)
        reply.headers["x-wrapped"] = "yes"
        return reply

    @app.api_route("/echo/{rest:path}", methods=["GET", "POST", "PUT"])
    async def what(request: Request, rest: str) -> dict[str, object]:
        wanted = ("content-type", "content-length", "x-own", "authorization")
        return {
            "method": request.method,
            "rest": rest,
            "query": request.query_params.multi_items(),
            "cookies": request.cookies,
            "headers": {name: request.headers.get(name) for name in wanted},
            "body": (await request.body()).decode(),
            "rollout": current_rollout_id(),
        }

    @app.get("/stream")
    async def stream() -> StreamingResponse:
        async def lines():
            for number in range(3):
                yield f"data: {number}\n\n"

        return StreamingResponse(lines(), media_type="text/event-stream")

    @app.get("/gone")
    async def gone() -> PlainTextResponse:
        return PlainTextResponse("schön", 410, {"X-A": "1"}, media_type="text/plain; charset=utf-8")

    @app.get("/empty")
    async def empty() -> PlainTextResponse:
        return PlainTextResponse("", 204)

    return app


QUESTIONS = [
    ("POST", "/echo/a", {"json": {"x": [1, 2.5, None, "é"]}}),
    ("POST", "/echo/a", {"json": Number(number=3)}),
    ("POST", "/echo/a", {"json": {"nested": [Number(number=3)]}}),
    ("POST", "/echo/a", {"json": {"big": 2**70, "surrogate": "\ud800"}}),
    ("POST", "/echo/a", {"json": None}),
    ("POST", "/echo/a", {"data": b"\x41"}),
    ("POST", "/echo/a", {"data": "text"}),
    ("POST", "/echo/a", {}),
    ("PUT", "/echo/a", {"json": [], "headers": {"X-Own": "1", "Content-Type": "application/x-own"}}),
    ("GET", "/echo/a%20b/ü?x=1&y=%2F", {}),
    ("GET", "/echo/a", {"params": {"q": "a b", "n": 3}}),
    ("GET", "/echo/a", {"cookies": {"plain": "1", "odd": 'a"b=; c'}}),
    ("GET", "/echo/a", {"headers": {"Authorization": "Bearer x"}}),
    ("GET", "/stream", {}),
    ("GET", "/gone", {}),
    ("GET", "/empty", {}),
    ("GET", "/nowhere", {}),
]


async def facts(reply):
    headers = {name.lower(): value for name, value in reply.headers.items()}
    for name in ("date", "server", "connection", "transfer-encoding"):
        headers.pop(name, None)
    return reply.status, reply.reason, reply.ok, headers, await reply.read(), await reply.text(), reply.content_type


@pytest.mark.parametrize(("method", "path", "options"), QUESTIONS)
async def test_a_reply_is_the_same_in_process_and_through_a_socket(method, path, options):
    app = echo()
    async with behind_a_socket(app) as url:
        through_socket = await facts(await request(method, url + path, **options))
    async with in_process(app) as url:
        assert await facts(await request(method, url + path, **options)) == through_socket


async def test_cookies_of_a_reply_can_be_handed_on_as_they_are():
    app = FastAPI()

    @app.get("/set")
    async def set_cookie() -> PlainTextResponse:
        reply = PlainTextResponse("")
        reply.set_cookie("odd", 'a"b=; c')
        return reply

    @app.get("/get")
    async def get(request: Request) -> dict[str, str]:
        return request.cookies

    async with in_process(app) as url:
        reply = await request("GET", url + "/set")
        assert await (await request("GET", url + "/get", cookies=reply.cookies)).json() == {"odd": 'a"b=; c'}


FIELDS = [
    *[
        "plain=1; Path=/",
        "plain=2",
        'quoted="a b\\073"; HttpOnly',
        " spaced = v ;x",
        "path=reserved",
        "=nameless",
        "valueless=",
    ],
    *["none", "tab=a\tb", "b@d=1", "late=é; expires=Thu, 01 Jan 1970 00:00:00 GMT", "ctrl=\x01", "plain=3; Secure"],
]


@pytest.mark.parametrize("again", [1, 2])
def test_a_jar_takes_from_a_reply_what_its_cookies_say(again):
    raw = [(b"Set-Cookie", field.encode()) for field in FIELDS * again] + [(b"x-other", b"a=b")]
    reply = EmbeddedResponse(EmbeddedRequest("GET", "http://it", "/"), 200, raw, b"")
    assert merged_cookies({"plain": "0", "kept": "1"}, reply) == merged_cookies(
        {"plain": "0", "kept": "1"}, reply.cookies
    )
    assert reply.cookie_values()["plain"] == "3"


async def test_the_body_can_be_read_as_a_stream():
    async with in_process(echo()) as url:
        reply = await request("GET", url + "/stream")
        assert [line async for line in reply.content][::2] == [b"data: 0\n", b"data: 1\n", b"data: 2\n"]
        again = await request("GET", url + "/stream")
        assert b"".join([piece async for piece in again.content.iter_chunked(4)]) == await again.read()
        assert again.content.at_eof()


async def test_raise_for_status_of_an_embedded_reply_is_aiohttps_own_error():
    reply = await reply_to(echo(), "GET", "/gone")
    with pytest.raises(ClientResponseError, match="410") as caught:
        reply.raise_for_status()
    assert caught.value.headers["x-a"] == "1"


async def test_a_handler_sees_nothing_of_its_callers_context():
    async with in_process(echo()) as url:
        with rollout_context("1-0"):
            reply = await request("GET", url + "/echo/a")
    assert (await reply.json())["rollout"] is None


async def test_an_application_that_ends_without_a_reply_is_a_500_and_one_that_stops_short_is_an_error():
    async def silent(scope, receive, send):
        return

    async def short(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})

    assert (await reply_to(silent, "GET", "/")).status == 500
    with pytest.raises(ClientPayloadError):
        await reply_to(short, "GET", "/")


async def test_the_caller_has_its_reply_before_background_work_ends():
    release = asyncio.Event()

    async def app(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"done"})
        await release.wait()

    server = register_embedded("127.0.0.1", 8, app)
    try:
        async with asyncio.timeout(60):
            assert await (await request("GET", server.base_url)).read() == b"done"
        assert len(server.running) == 1
    finally:
        release.set()
        unregister_embedded(server)
        await server.close()


async def test_what_is_raised_after_the_reply_is_logged(caplog):
    async def app(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"done"})
        raise ZeroDivisionError("too late")

    async with in_process(app) as url:
        assert (await request("GET", url)).status == 200
    assert "too late" in str(caplog.records[0].exc_info[1])


async def test_the_port_is_bound_when_its_url_is_handed_out_and_not_before():
    (port,) = free_ports(1)
    async with in_process(probe().build_app(), port) as url:
        await request("POST", url + "/next", json={"number": 1})
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port), timeout=1)
        assert hand_out(url) == hand_out(url) == url
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
        reply = await asyncio.to_thread(asyncio.run, through_another_loop(url))
        assert reply == b'{"number":2}'
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), timeout=1)


async def through_another_loop(url):
    from rollbook.servers.http.http_client import global_aiohttp_client_exit  # noqa: PLC0415  for the other loop

    try:
        return await (await request("POST", url + "/next", json={"number": 1})).read()
    finally:
        await global_aiohttp_client_exit()


async def test_a_caller_in_another_event_loop_opens_the_port_itself():
    (port,) = free_ports(1)
    async with in_process(probe().build_app(), port) as url:
        assert await asyncio.to_thread(asyncio.run, through_another_loop(url)) == b'{"number":2}'


async def test_a_taken_port_is_named_together_with_the_key_that_changes_it():
    with socket.create_server(("127.0.0.1", 0)) as held:
        port = held.getsockname()[1]
        server = register_embedded("127.0.0.1", port, echo(), name="colours", port_key="colours.x.y.port")
        try:
            with pytest.raises(PortTakenError, match=rf"port {port} .*'colours'.*\+\+colours\.x\.y\.port=<port>"):
                hand_out(f"{server.base_url}/mcp")
        finally:
            unregister_embedded(server)


async def test_two_servers_of_one_process_cannot_share_an_address():
    async with in_process(echo(), 9):
        with pytest.raises(PortTakenError, match=r"both have the address 127\.0\.0\.1:9"):
            register_embedded("localhost", 9, echo())


async def test_a_port_that_is_handed_out_and_closed_at_once_is_closed():
    (port,) = free_ports(1)
    async with in_process(echo(), port) as url:
        hand_out(url)
    await asyncio.sleep(0)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), timeout=1)


def test_a_server_whose_event_loop_has_ended_is_forgotten():
    async def registered():
        register_embedded("127.0.0.1", 9, echo())

    asyncio.run(registered())
    assert find_embedded("http://127.0.0.1:9") is None
    asyncio.run(registered())
    assert find_embedded("http://127.0.0.1:9") is None


async def test_opening_a_port_leaves_the_programs_signal_handlers_alone():
    (port,) = free_ports(1)
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    async with in_process(probe().build_app(), port) as url:
        hand_out(url)
        assert await asyncio.to_thread(asyncio.run, through_another_loop(url))
        assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before


@pytest.mark.parametrize(
    ("url", "found"),
    [
        ("http://127.0.0.1:9", True),
        ("http://localhost:9/x", True),
        ("http://127.0.0.1:9?x=1", True),
        ("http://127.0.0.1:90/x", False),
        ("https://127.0.0.1:9/x", False),
        ("http://other:9/x", False),
    ],
)
async def test_an_embedded_server_is_found_by_its_address_alone(url, found):
    async with in_process(echo(), 9):
        assert (find_embedded(url) is not None) is found


@pytest.mark.parametrize("url", ["http://127.0.0.1/x", "http://localhost", "http://127.0.0.1:80/x", "http://[::1]/x"])
async def test_a_server_on_the_port_of_http_is_found_by_addresses_that_leave_it_out(url):
    async with in_process(echo(), 80):
        assert find_embedded(url) is not None


async def test_a_server_is_found_at_an_address_that_was_asked_for_before_it_was_there():
    async with in_process(echo(), 9):
        assert find_embedded("http://127.0.0.1:10/") is None
        async with in_process(echo(), 10):
            assert find_embedded("http://127.0.0.1:10/") is not None
        assert find_embedded("http://127.0.0.1:10/") is None


async def test_a_redirect_is_followed_as_through_a_socket():
    (port,) = free_ports(1)
    app = FastAPI()

    @app.get("/folder/")
    async def folder() -> str:
        return "here"

    async with in_process(app, port) as url:
        assert await (await request("GET", url + "/folder")).json() == "here"
        assert (await request("GET", url + "/folder", allow_redirects=False)).status == 307
