"""How a saved answer is sent to be judged: what dispatch posts to `/run` goes to `/verify`.

Rules:
* Judging without state may be done twice: where a request may have been read and brought no reply, it is sent again, a
  few times. Whoever keeps state between requests is asked once.

Source: collection.md §3.6, §9.1.
"""

from typing import Final

from rollbook.clock import Clock
from rollbook.dispatch.transport import Transport
from rollbook.outcomes.retry import wait_before
from rollbook.records.exchange import Exchange, Reply, SendFailed, Upload
from rollbook.records.failure_kinds import Delivery

SENT_AGAIN: Final = 3
_RUN: Final = "/run"
_VERIFY: Final = "/verify"
_LOST: Final = frozenset({502, 504})
"""Statuses of whoever stands between: the request may have been read."""


class VerifyTransport:
    """A transport whose requests are judgings; `sent_again` so often where nobody knows what became of one."""

    def __init__(self, inner: Transport, clock: Clock, sent_again: int) -> None:
        self._inner = inner
        self._clock = clock
        self._sent_again = sent_again

    async def send(self, server: str, path: str, body: bytes | Upload, exchange: Exchange | None = None) -> Reply:
        """Post `body`; see `Transport.send`."""
        path = _VERIFY if path == _RUN else path
        for number in range(1, self._sent_again + 1):
            try:
                reply = await self._inner.send(server, path, body, exchange)
            except SendFailed as failure:
                if failure.delivery is not Delivery.POSSIBLY_DELIVERED:
                    raise
            else:
                if reply.status not in _LOST:
                    return reply
            await self._clock.sleep(wait_before(number, None, 1.0))
        return await self._inner.send(server, path, body, exchange)
