import pickle

import orjson
import pytest
from aiohttp import ClientResponseError, RequestInfo
from multidict import CIMultiDict, CIMultiDictProxy
from yarl import URL

from rollbook.servers.errors_replies import reply_text
from rollbook.servers.http.inner_error import BODY_BYTES, InnerServerError, raise_for_status

HOPS = 6


def inner_error(body):
    return InnerServerError("POST", "http://h/verify", (500, "x"), {}, body)


@pytest.mark.parametrize("size", [0, 1000, BODY_BYTES])
def test_a_body_of_usual_length_is_quoted_as_it_is(size):
    body = b"x" * size
    assert reply_text(inner_error(body), "A___a") == f"Hit an exception in A___a calling an inner server: {body!r}"


def test_a_long_body_is_cut_and_says_so_also_in_another_process():
    error = pickle.loads(pickle.dumps(inner_error(b"x" * 1_000_000)))  # noqa: S301  our own bytes
    assert len(error.response_content) <= BODY_BYTES
    assert error.response_content.startswith(b"x" * (BODY_BYTES - 100))
    assert error.response_content.endswith(b"x ... [cut here, 1000000 bytes in all]")


def test_a_body_that_somebody_else_attached_is_cut_too():
    info = RequestInfo(URL("http://h/"), "POST", CIMultiDictProxy(CIMultiDict()), URL("http://h/"))
    error = ClientResponseError(info, (), status=500)
    error.response_content = b"x" * 1_000_000
    assert len(reply_text(error, "A___a")) < BODY_BYTES + 100


class StandIn:
    """A response of somebody's test: no address, no method, an error of its own."""

    ok = False

    def __init__(self):
        self.content = self

    async def read(self):
        return b"busy"

    def raise_for_status(self):
        raise ClientResponseError(None, (), status=429)


async def test_a_stand_in_raises_its_own_error_with_its_body():
    with pytest.raises(ClientResponseError) as caught:
        await raise_for_status(StandIn())
    assert (caught.value.status, caught.value.response_content) == (429, b"busy")


def test_a_message_names_the_error_as_aiohttp_does():
    assert f"{type(inner_error(b'')).__name__}: {inner_error(b'')}".startswith("ClientResponseError: 500")


@pytest.mark.parametrize("text", ["x", '"', "\\", "\u00e9"])
def test_quoting_at_every_hop_ends_at_a_few_times_the_cap(text):
    body = (text * 1000).encode()
    for _ in range(HOPS):
        body = orjson.dumps(reply_text(inner_error(body), "A___a"))
    assert len(body) < 5 * BODY_BYTES
