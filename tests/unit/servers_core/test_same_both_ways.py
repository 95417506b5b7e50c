"""What a caller gets through a socket, it gets from a server of its own process: replies, errors and how often."""

import asyncio
from http.cookies import CookieError

import pytest
from aiohttp import (
    ClientError,
    ClientTimeout,
    ContentTypeError,
    InvalidUrlRedirectClientError,
    SocketTimeoutError,
    TooManyRedirects,
)
from fastapi import FastAPI, Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response, StreamingResponse

from ports import free_ports
from rollbook.servers.http.client_pool import set_global_aiohttp_client
from rollbook.servers.http.embedded_registry import register_embedded, unregister_embedded
from rollbook.servers.http.http_client import request
from unit.servers_core.stand_ins import behind_a_socket, in_process, posted

COOKIES = [
    'a={"x":1}; Path=/; HttpOnly',
    "b=2; Max-Age=7; SameSite=lax; Unknown=1",
    'c="quoted; part"; Secure',
    "d=s\xe9; Path=/",
    "e",
    "=f",
    "i=a=b",
    "j = spaced ",
    "k=",
]


class Count:
    asked = 0


def odd(count) -> FastAPI:
    """Answer in ways that few servers do; count what handlers run."""
    app = FastAPI()

    @app.api_route("/to/{status}", methods=["GET", "POST", "PUT"])
    async def to(status: int, where: str = "/seen?by=redirect") -> Response:
        count.asked += 1
        return RedirectResponse(where, status)

    @app.post("/nowhere")
    async def nowhere() -> Response:
        return Response(status_code=302)

    @app.api_route("/seen", methods=["GET", "POST", "PUT"])
    async def seen(request: Request) -> dict[str, object]:
        names = ("authorization", "cookie", "content-type", "content-length", "x-own")
        headers = {name: request.headers.get(name) for name in names}
        return {"method": request.method, "by": request.url.query, **headers, "body": (await request.body()).decode()}

    add_bodies(app)
    add_slow_ones(app, count)
    return app


def add_bodies(app):
    @app.post("/text")
    async def text() -> PlainTextResponse:
        return PlainTextResponse('{"a": 1}')

    @app.post("/json")
    async def json(kind: str) -> Response:
        return Response(b' {"a": [NaN, 123456789012345678901234567890, "\xc3\xa9"]} ', media_type=kind)

    @app.post("/cookies")
    async def cookies() -> Response:
        reply = Response()
        reply.raw_headers.extend((b"set-cookie", field.encode("latin-1")) for field in COOKIES)
        return reply


def add_slow_ones(app, count):
    @app.post("/slow")
    async def slow() -> str:
        count.asked += 1
        await asyncio.get_running_loop().create_future()
        return "never"

    @app.post("/drops")
    async def drops(every: float = 0) -> StreamingResponse:
        async def pieces():
            for number in range(4):
                await asyncio.sleep(every)
                yield f"{number}"

        return StreamingResponse(pieces())


async def both_ways(ask, **settings):
    """Return what `ask` finds through a socket and in this process: a value or an error, and the handlers run."""
    found = []
    for served in (behind_a_socket, in_process_anywhere):
        count = Count()
        set_global_aiohttp_client(settings)
        async with served(odd(count)) as url, asyncio.timeout(60):
            try:
                value = await ask(url)
            except (ClientError, TimeoutError, ValueError, CookieError) as error:
                value = (type(error), str(error).replace(url, ""))
        found.append((value, count.asked))
    set_global_aiohttp_client({})
    return found


def in_process_anywhere(app):
    return in_process(app, free_ports(1)[0])


def asked(method, path, read=None, **options):
    async def ask(url):
        reply = await request(method, url + path, **options)
        body = await (read(reply) if read else reply.text())
        where = [str(one.url).removeprefix(url) for one in (*reply.history, reply)]
        return reply.status, where, body

    return ask


BOTH = {"data": b"body", "headers": {"Authorization": "Bearer x", "X-Own": "1"}, "cookies": {"c": "1"}}
REDIRECTS = [
    *[(method, f"/to/{status}") for method in ("POST", "PUT", "GET") for status in (301, 302, 303, 307, 308)],
    ("POST", "/to/303?where=/to/303"),
    ("POST", "/to/307?where=seen%3Fby=relative"),
    ("POST", "/to/303?where=ftp://host/"),
    ("POST", "/to/303?where=http://"),
    ("POST", "/to/303?where=/to/304"),
]


@pytest.mark.parametrize(("method", "path"), REDIRECTS)
async def test_a_redirect_leads_to_the_same_place_and_its_handler_runs_as_often(method, path):
    through_socket, here = await both_ways(asked(method, path, **BOTH))
    assert here[1] == through_socket[1]
    if "=http" in path:
        assert here[0][0] is through_socket[0][0] is InvalidUrlRedirectClientError
    else:
        assert here == through_socket


async def test_a_redirect_that_is_not_to_be_followed_is_the_reply():
    through_socket, here = await both_ways(asked("POST", "/to/303", allow_redirects=False))
    assert here == through_socket == ((303, ["/to/303"], ""), 1)


async def test_a_redirect_to_nowhere_is_the_reply():
    through_socket, here = await both_ways(asked("POST", "/nowhere"))
    assert here[0][0] == through_socket[0][0] == 302


async def test_an_endless_redirect_ends_after_ten():
    count = Count()
    app = FastAPI()

    @app.get("/round")
    async def again() -> Response:
        count.asked += 1
        return RedirectResponse("/round", 302)

    errors = []
    for served in (behind_a_socket, in_process_anywhere):
        async with served(app) as url:
            with pytest.raises(TooManyRedirects) as caught:
                await request("GET", url + "/round")
        errors.append((type(caught.value), len(caught.value.history), count.asked))
        count.asked = 0
    assert errors[0] == errors[1]


async def test_credentials_do_not_follow_a_redirect_to_another_server():
    async with in_process(odd(Count()), 8) as other, in_process(odd(Count()), 9) as url:
        reply = await request("POST", f"{url}/to/307?where={other}/seen", **BOTH)
        body = await reply.json()
        same = await (await request("POST", f"{url}/to/307?where={url}/seen", **BOTH)).json()
    assert (body["authorization"], body["cookie"], body["x-own"], body["body"]) == (None, None, "1", "body")
    assert (same["authorization"], same["cookie"]) == ("Bearer x", "c=1")


async def test_a_redirect_out_of_this_process_goes_through_a_socket():
    async with behind_a_socket(odd(Count())) as outside, in_process(odd(Count()), 9) as url:
        reply = await request("POST", f"{url}/to/303?where={outside}/seen", data=b"x")
        assert (await reply.json())["method"] == "GET"
        assert str(reply.url).startswith(outside)


@pytest.mark.parametrize("served", [behind_a_socket, in_process_anywhere])
async def test_a_rollout_that_is_redirected_has_the_redirect_as_its_reply(served):
    count = Count()
    async with served(odd(count)) as url:
        reply = await posted(url, "/to/301")
    assert (reply.status, reply.headers["location"], count.asked) == (301, "/seen?by=redirect", 1)


HEADERS = [
    {"X-Own": "a\u2013b"},
    {"X-Own": "caf\xe9"},
    {"X-Own": "1\r\nx-b: 2"},
    {"X-Own": "1\0"},
    {"X-Own": " padded "},
    {"X Own": "1"},
    [("X-Own", "1")],
    [("X-Own", "1"), ("X-Own", "2")],
]


@pytest.mark.parametrize("headers", HEADERS)
async def test_a_header_arrives_or_is_refused_alike(headers):
    through_socket, here = await both_ways(asked("POST", "/seen", data=b"{}", headers=headers))
    assert here == through_socket


@pytest.mark.parametrize("cookies", [{"c": "v\u2013"}, {"c": "\xe9"}, {"\xe9\u2013": "v"}, {"c": "a\r\nb"}])
async def test_a_cookie_arrives_or_is_refused_alike(cookies):
    through_socket, here = await both_ways(asked("POST", "/seen", data=b"{}", cookies=cookies))
    assert here == through_socket


async def test_cookies_that_a_reply_sets_are_read_alike():
    async def ask(url):
        reply = await request("POST", url + "/cookies")
        return {name: (one.value, one.coded_value, dict(one)) for name, one in reply.cookies.items()}

    through_socket, here = await both_ways(ask)
    assert here == through_socket
    assert set(here[0]) == {"a", "b", "c", "i", "j", "k"}


KINDS = ["application/json", "application/problem+json; charset=utf-8", "text/json", 'application/json; charset="x"']


@pytest.mark.parametrize(
    ("path", "options"),
    [
        ("/text", {}),
        ("/text", {"content_type": None}),
        ("/text", {"content_type": "text/plain"}),
        *[(f"/json?kind={kind.replace('+', '%2B')}", {}) for kind in KINDS],
    ],
)
async def test_a_body_is_read_as_json_where_aiohttp_reads_it(path, options):
    async def ask(url):
        reply = await request("POST", url + path)
        try:
            return repr(await reply.json(**options))
        except ValueError as error:
            return type(error)
        except ContentTypeError as error:
            return type(error), error.status, error.message

    through_socket, here = await both_ways(ask)
    assert here == through_socket


@pytest.mark.parametrize(
    ("settings", "options", "error"),
    [
        ({"global_aiohttp_read_timeout_seconds": 0.3}, {}, SocketTimeoutError),
        ({}, {"timeout": ClientTimeout(sock_read=0.3)}, SocketTimeoutError),
        ({}, {"timeout": ClientTimeout(sock_read=0.3, total=5)}, SocketTimeoutError),
        ({"global_aiohttp_total_timeout_seconds": 0.3}, {}, TimeoutError),
        ({"global_aiohttp_total_timeout_seconds": 30}, {"timeout": ClientTimeout(total=0.3)}, TimeoutError),
        ({}, {"timeout": ClientTimeout(total=0.3, sock_read=5)}, TimeoutError),
        ({}, {"timeout": ClientTimeout(total=0.3), "_replay": True}, TimeoutError),
        ({"global_aiohttp_model_call_timeout_seconds": 0.3}, {"_model_call": True}, TimeoutError),
    ],
)
async def test_a_silent_handler_runs_into_the_same_limit_and_is_not_asked_again(settings, options, error):
    through_socket, here = await both_ways(asked("POST", "/slow", **options), **settings)
    assert here[0] == through_socket[0]
    assert here[0][0] is error
    assert max(here[1], through_socket[1]) <= 1


async def test_a_reply_that_comes_in_pieces_is_not_silent():
    options = {"timeout": ClientTimeout(sock_read=1.2)}
    through_socket, here = await both_ways(asked("POST", "/drops?every=0.4", **options))
    assert here == through_socket == ((200, ["/drops?every=0.4"], "0123"), 0)


async def test_a_limit_of_nought_is_no_limit():
    options = {"timeout": ClientTimeout(total=0, sock_read=0)}
    through_socket, here = await both_ways(asked("POST", "/drops", **options))
    assert here == through_socket == ((200, ["/drops"], "0123"), 0)


async def test_a_handler_that_ran_into_a_limit_is_cancelled():
    server = register_embedded("127.0.0.1", 9, odd(Count()))
    for limit in (ClientTimeout(total=0.5), ClientTimeout(sock_read=0.5)):
        with pytest.raises(TimeoutError):
            await request("POST", server.base_url + "/slow", timeout=limit)
    left = set(server.running)
    assert left
    await asyncio.wait(left, timeout=60)
    unregister_embedded(server)
    assert not server.running
