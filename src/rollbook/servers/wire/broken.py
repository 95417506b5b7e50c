"""What keeps a request from bringing a whole reply, by the names that the field's artifacts carry.

Rules:
* A kind says what was seen, by aiohttp's name for it where it has one; what is known of the delivery is the exchange's.
* Running out of files, ports or memory is this machine's fault and has a name of its own.

Source: collection.md §3.6, §3.7.
"""

import errno
import socket
import ssl
from enum import StrEnum
from typing import Final

from rollbook.errors import RollbookError


class Kind(StrEnum):
    """What was seen."""

    BAD_URL = "InvalidURL"
    NOT_HTTP = "NonHttpUrlClientError"
    NOT_CONNECTED = "ClientConnectorError"
    UNKNOWN_HOST = "ClientConnectorDNSError"
    NO_TLS = "ClientConnectorSSLError"
    NO_TRUST = "ClientConnectorCertificateError"
    TOO_LATE = "ConnectionTimeoutError"
    LOCAL = "LocalResourceError"
    CLIENT_CLOSED = "ClientConnectionError"
    DISCONNECTED = "ServerDisconnectedError"
    RESET = "ClientOSError"
    NO_HTTP = "ClientResponseError"
    CUT_SHORT = "ClientPayloadError"
    UNKNOWN_ENCODING = "ContentEncodingError"
    TOO_LARGE = "ReplyTooLarge"


_LOCAL_FAULTS: Final = frozenset(
    {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM, errno.EADDRNOTAVAIL, errno.EAGAIN}
)


class Broken(RollbookError):  # noqa: N818  an observation of one exchange, not an error of the program
    """A request that brought no whole reply; `SendFailed` says to the caller whose it was."""

    def __init__(self, kind: Kind, said: str) -> None:
        super().__init__(said)
        self.kind = kind
        self.said = said


def not_connected(error: Exception) -> Broken:
    """Return what it means that a connection did not come up."""
    said = str(error) or type(error).__name__
    match error:
        case ssl.SSLCertVerificationError():
            return Broken(Kind.NO_TRUST, said)
        case ssl.SSLError():
            return Broken(Kind.NO_TLS, said)
        case socket.gaierror():
            return Broken(Kind.UNKNOWN_HOST, said)
        case UnicodeError():
            return Broken(Kind.BAD_URL, said)
        case OSError(errno=number) if number in _LOCAL_FAULTS:
            return Broken(Kind.LOCAL, said)
        case _:
            return Broken(Kind.NOT_CONNECTED, said)
