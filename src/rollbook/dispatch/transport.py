"""The one seam between dispatch and the network.

Rules:
* One call is one request: a transport re-sends nothing whose body may have been read.
* Whatever carried an HTTP status is a `Reply`; everything else raises `SendFailed` with what is known of its delivery.
* Where an `Exchange` is given, the transport says in it how far the request has come. Cancelling a call closes its
  connection, or ends its handler.
"""

from typing import Protocol

from rollbook.records.exchange import Exchange, Reply, Upload


class Transport(Protocol):
    """Where requests go: servers in this process, or over HTTP."""

    async def send(self, server: str, path: str, body: bytes | Upload, exchange: Exchange | None = None) -> Reply:
        """Post `body` (JSON) to `path` of the server instance `server`.

        Raises:
            SendFailed: no whole reply came back.

        """
        ...
