"""One page of metrics, fetched within bounds.

Rules:
* A page that is not there is a value that says why, not an exception.
* Why a page is not there never repeats an address, which may hold a password.
* A page takes a few seconds and 1 MiB at most. It is asked for uncompressed, so that its size is what arrives.
"""

from dataclasses import dataclass
from typing import Final

from aiohttp import ClientError, ClientResponse, ClientSession, ClientTimeout

MOST_BYTES: Final = 1024 * 1024
_BAD_STATUS: Final = 400


@dataclass(frozen=True, slots=True)
class Page:
    """The text of a page, or `missing`: why there is none."""

    text: str = ""
    missing: str = ""


async def fetch_page(url: str, seconds: float) -> Page:
    """Return what stands at `url`; it has `seconds` to arrive."""
    limits = ClientTimeout(total=seconds)
    try:
        async with (
            ClientSession(timeout=limits, headers={"Accept-Encoding": "identity"}) as session,
            session.get(url) as reply,
        ):
            if reply.status >= _BAD_STATUS:
                return Page(missing=f"it answers {reply.status}")
            body = await _bounded(reply)
    except TimeoutError:
        return Page(missing=f"no answer within {seconds:g} s")
    except OSError as error:
        return Page(missing=str(error))
    except ClientError as error:
        return Page(missing=type(error).__name__)
    if len(body) > MOST_BYTES:
        return Page(missing=f"its answer is longer than {MOST_BYTES} bytes")
    return Page(body.decode("utf-8", "replace"))


async def _bounded(reply: ClientResponse) -> bytes:
    """Return the body, or a little more of it than may be used."""
    body = bytearray()
    async for chunk in reply.content.iter_any():
        body += chunk
        if len(body) > MOST_BYTES:
            break
    return bytes(body)
