import copy
import json
import pickle
from typing import Any
from unittest.mock import MagicMock

import httpx
import pytest
from fastapi import FastAPI
from pydantic import PrivateAttr

from rollbook.config.types import BaseRunServerInstanceConfig
from rollbook.servers.base import HEALTH_PATHS
from rollbook.servers.client import ServerClient, raise_for_status, request
from rollbook.servers.errors_replies import one_line
from unit.servers_core.stand_ins import Probe, behind_a_socket, in_process, probe, reply_to


def test_a_server_is_built_without_any_io():
    config = BaseRunServerInstanceConfig(host="nowhere", port=1, entrypoint="", name="x")
    server = Probe(config=config, server_client=MagicMock(spec=ServerClient))
    assert server.session_middleware_key == "Probe___x"


class Described:
    """Says what it is held by."""

    def __get__(self, holder: object, kind: type | None = None) -> object:
        return self if holder is None else type(holder).__name__


class Private(Probe):
    _number: int = 1
    _words: list[str] = PrivateAttr(default_factory=list)
    _described: Any = PrivateAttr(default=Described())
    _unset: int
    _late: int = 0

    def model_post_init(self, context: Any, /) -> None:
        super().model_post_init(context)
        self._late = self._number + 1


class MorePrivate(Private):
    _number: int = 40
    _own: str = "own"


def private_values(server):
    names = ("_number", "_words", "_described", "_late", "_own", "_unset", "_nowhere")
    return {name: getattr(server, name) for name in names if hasattr(server, name)}


def test_a_subclass_has_its_private_attributes_and_so_have_its_copies():
    config = BaseRunServerInstanceConfig(host="nowhere", port=1, entrypoint="", name="x")
    first, other = (MorePrivate(config=config, server_client=MagicMock(spec=ServerClient)) for _ in range(2))
    first._words.append("a")
    expected = {"_number": 40, "_words": ["a"], "_described": "MorePrivate", "_late": 41, "_own": "own"}
    assert private_values(first) == expected
    assert private_values(other) == expected | {"_words": []}
    assert private_values(first.model_copy()) == expected
    first._late = 7
    assert private_values(copy.copy(first)) == expected | {"_late": 7}
    del first._own
    with pytest.raises(AttributeError, match="'MorePrivate' object has no attribute '_own'"):
        first._own  # noqa: B018  reading it is the point


async def test_health_paths_answer_ok_and_are_not_in_the_schema():
    async with in_process(probe().build_app()) as url:
        bodies = {await (await request("GET", url + path)).read() for path in HEALTH_PATHS if path != "/health"}
        schema = await (await request("GET", url + "/openapi.json")).json()
    assert bodies == {b'{"status":"ok"}'}
    assert not {"/", "/livez", "/readyz"} & set(schema["paths"])


async def test_a_servers_own_route_wins_over_a_health_path():
    assert await (await reply_to(probe().build_app(), "GET", "/health")).json() == {"status": "its own"}


@pytest.mark.parametrize(
    ("how", "status", "body"),
    [
        ("value", 500, b"\"ValueError('no')\""),
        ("cancelled", 500, b'"Request was cancelled"'),
        ("unearthly", 500, b'"An unknown error occurred"'),
        ("teapot", 418, b'{"detail":"short and stout"}'),
    ],
)
async def test_an_error_reply_has_exactly_the_fields_body(how, status, body):
    reply = await reply_to(probe().build_app(), "POST", f"/fail/{how}")
    assert (reply.status, await reply.read(), reply.headers["content-type"]) == (status, body, "application/json")


async def test_a_handler_error_is_one_bounded_line_and_a_traceback_for_debug_alone(caplog):
    caplog.set_level("DEBUG", logger="rollbook.servers.errors_replies")
    await reply_to(probe().build_app(), "POST", "/fail/value")
    shown, detail = [record for record in caplog.records if record.name == "rollbook.servers.errors_replies"]
    assert (shown.levelname, shown.exc_info) == ("ERROR", None)
    assert shown.getMessage().endswith(": POST /fail/value raised ValueError: no")
    assert (detail.levelname, detail.exc_info[0]) == ("DEBUG", ValueError)


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (ValueError(), "ValueError"),
        (ValueError("a\n  b"), "ValueError: a b"),
        (ValueError("x" * 1025), f"ValueError: {'x' * 1024} …"),
        (ValueError("http://u:pw@h/v1 is gone"), "ValueError: http://****@h/v1 is gone"),
    ],
)
def test_an_error_is_told_on_one_line(error, line):
    assert one_line(error) == line


async def test_a_body_that_does_not_validate_is_answered_as_fastapi_does_and_logged(caplog):
    reply = await reply_to(probe().build_app(), "POST", "/next", json={"number": "x" * 9000})
    assert reply.status == 422
    assert (await reply.json())["detail"][0]["loc"] == ["body", "number"]
    dump = next(record.getMessage() for record in caplog.records if "does not validate" in record.getMessage())
    assert len(dump) < 4200


async def test_an_inner_error_nests_its_body_as_bytes_one_level_per_hop(caplog):
    inner, middle = probe("inner"), probe("middle")
    async with behind_a_socket(inner.build_app()) as inner_url, behind_a_socket(middle.build_app()) as middle_url:
        middle._inner = inner_url
        reply = await request("POST", middle_url + "/forward?key=secret")
        text = json.loads(await reply.read())
    expected = b"\"ValueError('no')\""
    assert reply.status == 500
    assert text == f"Hit an exception in Probe___middle calling an inner server: {expected!r}"
    lines = [record.getMessage() for record in caplog.records if "[upstream_request_failed]" in record.getMessage()]
    assert len(lines) == 1
    assert f"server=Probe___middle method=POST url={inner_url}/fail/value status=500" in lines[0]


async def test_the_error_of_raise_for_status_keeps_its_body_across_processes():
    async with behind_a_socket(probe().build_app()) as url:
        reply = await request("POST", url + "/fail/value")
        with pytest.raises(Exception, match="500") as caught:
            await raise_for_status(reply)
    copied = pickle.loads(pickle.dumps(caught.value))  # noqa: S301  our own bytes
    assert (copied.status, copied.response_content) == (500, b"\"ValueError('no')\"")


async def session_id(url, **options):
    reply = await request("POST", url + "/session", **options)
    return (await reply.json())["id"], reply


async def test_every_reply_sets_the_session_cookie_named_after_class_and_instance():
    async with in_process(probe("my_probe").build_app()) as url:
        first, reply = await session_id(url)
        again, resumed = await session_id(url, cookies=reply.cookies)
        other, _ = await session_id(url)
        replies = [reply, resumed, await request("GET", url + "/livez"), await request("POST", url + "/fail/teapot")]
    for cookie in [reply.headers["set-cookie"] for reply in replies]:
        assert cookie.startswith("Probe___my_probe=")
        assert cookie.endswith("; path=/; Max-Age=1209600; httponly; samesite=lax")
    assert first == again != other


async def test_a_session_outlives_the_server_that_signed_it():
    async with in_process(probe("my_probe").build_app()) as url:
        first, reply = await session_id(url)
    async with in_process(probe("my_probe").build_app()) as url:
        assert (await session_id(url, cookies={"Probe___my_probe": reply.cookies["Probe___my_probe"].value}))[
            0
        ] == first


async def test_a_cookie_signed_by_another_instance_opens_no_session():
    async with in_process(probe("one").build_app()) as url:
        first, reply = await session_id(url)
    async with in_process(probe("two").build_app()) as url:
        assert (await session_id(url, cookies={"Probe___two": reply.cookies["Probe___one"].value}))[0] != first


async def test_an_application_of_ones_own_is_given_the_same_error_replies():
    config = BaseRunServerInstanceConfig(host="nowhere", port=1, entrypoint="", name="x")
    server = Probe(config=config, server_client=MagicMock(spec=ServerClient))
    app = FastAPI()
    server.setup_exception_middleware(app)
    server.setup_cancellation_middleware(app)

    @app.get("/boom")
    async def boom() -> None:
        raise RuntimeError("boom")

    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://x") as caller:
        reply = await caller.get("/boom")
    assert (reply.status_code, "boom" in reply.text) == (500, True)
