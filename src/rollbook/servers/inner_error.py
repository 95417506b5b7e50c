"""The error for a status of 400 or more, with the body that the server sent.

Rules:
* It crosses process boundaries: pickling keeps status, address and body.

Source: servers.md §3.5, §4.2.
"""

from typing import Any

from aiohttp import ClientResponse, ClientResponseError, RequestInfo
from multidict import CIMultiDict, CIMultiDictProxy
from yarl import URL


class InnerServerError(ClientResponseError):
    """A server answered with a status of 400 or more. `response_content` is the body that it sent."""

    def __init__(
        self, method: str, url: str, reason: tuple[int, str], headers: dict[str, str], response_content: bytes
    ) -> None:
        status, message = reason
        info = RequestInfo(URL(url), method, CIMultiDictProxy(CIMultiDict()), URL(url))
        super().__init__(info, (), status=status, message=message, headers=CIMultiDictProxy(CIMultiDict(headers)))
        self.response_content = response_content
        self._parts = (method, url, reason, headers, response_content)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self._parts


async def raise_for_status(response: ClientResponse) -> None:
    """Raise for a status of 400 or more, after reading the body.

    Raises:
        InnerServerError: an `aiohttp.ClientResponseError` whose `response_content` is the body as bytes.

    """
    if response.ok:
        return
    raise InnerServerError(
        response.method,
        str(response.url),
        (response.status, response.reason or ""),
        dict(response.headers),
        await response.read(),
    )
