"""The error for a status of 400 or more, with the body that the server sent.

Rules:
* It crosses process boundaries: pickling keeps status, address and body.
* In a message it bears the name of the aiohttp error that it is, as saved rows of the field have it.
* A response decides by itself what its status is: its own `raise_for_status()` is asked.
* Of a long body the beginning is kept, and it says so: every hop quotes it again, and quoting multiplies.

Source: servers.md §3.5, §4.2.
"""

from typing import Any, Final

from aiohttp import ClientResponse, ClientResponseError, RequestInfo
from multidict import CIMultiDict, CIMultiDictProxy
from yarl import URL

from rollbook.servers.http.embedded_response import EmbeddedResponse

BODY_BYTES: Final = 65_536
_MARK_BYTES: Final = 64


def capped_body(body: bytes) -> bytes:
    """Return a body of `BODY_BYTES` at most, which ends in a mark where more was sent."""
    if len(body) <= BODY_BYTES:
        return body
    return body[: BODY_BYTES - _MARK_BYTES] + b" ... [cut here, %d bytes in all]" % len(body)


class InnerServerError(ClientResponseError):
    """A server answered with a status of 400 or more. `response_content` is the body that it sent, capped."""

    def __init__(
        self, method: str, url: str, reason: tuple[int, str], headers: dict[str, str], response_content: bytes
    ) -> None:
        status, message = reason
        info = RequestInfo(URL(url), method, CIMultiDictProxy(CIMultiDict()), URL(url))
        super().__init__(info, (), status=status, message=message, headers=CIMultiDictProxy(CIMultiDict(headers)))
        self.response_content = capped_body(response_content)
        self._parts = (method, url, reason, headers, self.response_content)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self._parts


InnerServerError.__name__ = ClientResponseError.__name__


async def raise_for_status(response: ClientResponse) -> None:
    """Raise for a status of 400 or more, after reading the body.

    Raises:
        InnerServerError: an `aiohttp.ClientResponseError` whose `response_content` is the body as bytes, capped. A
            stand-in for a response raises what it raises, with that attribute.

    """
    if response.ok:
        return
    body = await _body_of(response)
    try:
        response.raise_for_status()
    except ClientResponseError as error:
        raise _with_body(error, body) from None
    reason = (response.status, response.reason or "")
    raise InnerServerError(response.method, str(response.url), reason, dict(response.headers), body)


async def _body_of(response: Any) -> bytes:
    """Return the body; aiohttp's response and ours keep it for a second reading, a stand-in has the stream alone."""
    source = response if isinstance(response, ClientResponse | EmbeddedResponse) else response.content
    body: bytes = await source.read()
    return body


def _with_body(error: ClientResponseError, body: bytes) -> ClientResponseError:
    """Return `error` with the body of its response, and able to cross processes where it says what was asked."""
    asked: object = error.request_info
    if isinstance(asked, RequestInfo):
        reason, headers = (error.status, error.message), dict(error.headers or {})
        return InnerServerError(asked.method, str(asked.url), reason, headers, body)
    vars(error)["response_content"] = capped_body(body)
    return error
