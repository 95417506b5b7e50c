"""Where the redirect of an in-process reply leads: the next call, by the rules that aiohttp follows over a socket.

Rules:
* The reply that redirects is the answer to the call: the handler behind it runs once.
* 303, and 301 or 302 to a POST, go on as a GET without a body; every other redirect keeps method and body.
* Credentials and cookies stay with the origin that they were given for.

Source: servers.md §4.2; RFC 9110 §15.4.
"""

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final, NamedTuple, cast

from aiohttp import ClientResponse, InvalidUrlRedirectClientError, NonHttpUrlRedirectClientError, TooManyRedirects
from multidict import CIMultiDict
from yarl import URL

from rollbook.servers.http.embedded_response import EmbeddedResponse

MOSTREDIRECTS: Final = 10
REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_POST_BECOMES_GET: Final = frozenset({301, 302})
_CREDENTIALS: Final = ("Authorization", "Cookie", "Proxy-Authorization")


class Call(NamedTuple):
    """One request: `options` are aiohttp's keyword arguments."""

    method: str
    url: str
    options: Mapping[str, Any]


def next_call(call: Call, reply: EmbeddedResponse, earlier: Sequence[EmbeddedResponse]) -> Call | None:
    """Return the call that `reply` redirects to, or None when it is the answer; `earlier` are redirects before it.

    Raises:
        TooManyRedirects, InvalidUrlRedirectClientError, NonHttpUrlRedirectClientError: as over a socket.

    """
    if reply.status not in REDIRECTS or not call.options.get("allow_redirects", True):
        return None
    if len(earlier) + 1 >= MOSTREDIRECTS:
        history = cast("tuple[ClientResponse, ...]", (*earlier, reply))
        raise TooManyRedirects(history[0].request_info, history)
    location = reply.headers.get("Location") or reply.headers.get("URI")
    if location is None:
        return None
    target = _target(reply.url, location)
    options = dict(call.options)
    options.pop("params", None)
    headers = CIMultiDict(options.get("headers") or {})
    method = call.method.upper()
    if _goes_on_as_get(reply.status, method):
        method = "GET"
        options["data"] = None
        headers.popall("Content-Length", None)
    if target.origin() != reply.url.origin():
        options.pop("cookies", None)
        for name in _CREDENTIALS:
            headers.popall(name, None)
    return Call(method, str(target), {**options, "headers": headers})


def _goes_on_as_get(status: int, method: str) -> bool:
    if status == HTTPStatus.SEE_OTHER:
        return method != "HEAD"
    return status in _POST_BECOMES_GET and method == "POST"


def _target(base: URL, location: str) -> URL:
    """Return the absolute address of `location`, which may be relative to `base`."""
    try:
        target = URL(location)
        if target.scheme not in {"http", "https", ""}:
            raise NonHttpUrlRedirectClientError(location)
        if not target.absolute and not location.startswith(f"{target.scheme}://"):
            target = base.join(target)
        target.origin()
    except ValueError as error:
        if isinstance(error, NonHttpUrlRedirectClientError):
            raise
        raise InvalidUrlRedirectClientError(location, "the server redirects to something that is no URL") from error
    return target
