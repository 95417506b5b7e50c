"""What is asked of a server once, and blocks: the configuration of a deployment, and whether somebody is there.

Rules:
* Nothing but the standard library goes there: who only asks once loads no client for it.
* No proxy of the environment stands in between.
* What is asked for has come when its time is over, however slowly it comes, or it has not; nothing grows without bound.
  That time holds for what a server does: a resolver takes its own, and each address of a host is given all of it.

Source: servers.md §2.1, §2.2, §4.3.
"""

import http.client
import io
import json
import socket
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Final, Literal
from urllib.parse import urlsplit

from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException
from typing_extensions import Buffer
from yaml import YAMLError

from rollbook.config.recursion import as_deep_as_usual
from rollbook.config.types import BaseServerConfig
from rollbook.errors import HeadServerUnreachableError
from rollbook.servers.http.addresses import server_type_of

_NO_HEAD: Final = "what answers is no head server"
_HEAD_SECONDS: Final = 10.0
MOST_BYTES: Final = 64 * 1024 * 1024
"""Of a deployment's configuration."""
_OK: Final = 200


def fetch_global_config(head: BaseServerConfig, seconds: float = _HEAD_SECONDS) -> DictConfig:
    """Return the resolved configuration of the deployment behind `head`; blocks until it is there.

    It is there `seconds` after the call, or the head is unreachable. Looking up the host's name takes the time that the
    system's resolver takes, and each of several addresses may take `seconds` to be reached.

    Raises:
        HeadServerUnreachableError: no head server answers there, or what answers is none; names the URL.

    """
    url = f"http://{head.host}:{head.port}/global_config_dict_yaml"
    ends = time.monotonic() + seconds
    try:
        connection = http.client.HTTPConnection(head.host, head.port, timeout=_left(ends))
        with _answer(connection, urlsplit(url).path, ends) as reply:
            if reply.status != _OK:
                raise head_unreachable(url, f"it answered {reply.status} {reply.reason}".rstrip())
            body = reply.read(MOST_BYTES + 1)
            missing = reply.length or 0
    except (OSError, UnicodeError) as error:
        raise head_unreachable(url, str(error)) from error
    except http.client.HTTPException as error:
        raise head_unreachable(url, _NO_HEAD) from error
    if len(body) > MOST_BYTES:
        raise head_unreachable(url, f"it answered with more than {MOST_BYTES} bytes")
    if missing:
        raise head_unreachable(url, f"its answer ended {missing} bytes before the length that it gives")
    return parsed_head_reply(url, body)


def root_status(url: str, seconds: float) -> Literal["success", "timeout", "connection_error", "unknown_error"]:
    """Return what a GET of `url` finds within `seconds`, however slow the answer; any HTTP answer is a success."""
    try:
        _answered(url, time.monotonic() + seconds)
    except TimeoutError:
        return "timeout"
    except OSError:
        return "connection_error"
    except (http.client.HTTPException, ValueError):
        return "unknown_error"
    return "success"


def _answered(url: str, ends: float) -> None:
    """Wait for the head of a reply from what listens at `url`.

    Raises:
        OSError, http.client.HTTPException, ValueError: none came by the time `ends`.

    """
    asked = urlsplit(url)
    kind = http.client.HTTPSConnection if asked.scheme == "https" else http.client.HTTPConnection
    connection = kind(asked.hostname or "", asked.port or kind.default_port, timeout=_left(ends))
    with _answer(connection, asked.path or "/", ends):
        return


@contextmanager
def _answer(connection: http.client.HTTPConnection, path: str, ends: float) -> Iterator[http.client.HTTPResponse]:
    """Yield the reply to a GET of `path`, of which the head has come; whatever is read of it comes by the time `ends`.

    Raises:
        OSError, http.client.HTTPException, ValueError: no head came.

    """
    with closing(connection):
        connection.request("GET", path, headers={"Connection": "close"})
        with closing(http.client.HTTPResponse(_ReadUntil(connection.sock, ends), method="GET")) as reply:  # type: ignore[arg-type]
            reply.begin()
            yield reply


def _left(ends: float) -> float:
    """Return how many seconds are left.

    Raises:
        TimeoutError: none.

    """
    left = ends - time.monotonic()
    if left <= 0:
        raise TimeoutError("timed out")
    return left


class _ReadUntil(io.RawIOBase):
    """What a socket is told, all of it by the time `ends`."""

    def __init__(self, told: socket.socket, ends: float) -> None:
        self._told = told
        self._ends = ends

    def makefile(self, _mode: str) -> io.BufferedReader:
        """Return it as a reply is read from a socket."""
        return io.BufferedReader(self)

    def readable(self) -> bool:
        """Say that it can be read."""
        return True

    def readinto(self, buffer: Buffer, /) -> int:
        """Read what is there."""
        self._told.settimeout(_left(self._ends))
        return self._told.recv_into(buffer)


def head_unreachable(url: str, found: str) -> HeadServerUnreachableError:
    """Return the error for a head server that does not answer at `url`."""
    return HeadServerUnreachableError(
        f"no head server answers at {url} ({found}); start one with `gym env start`, "
        "or say where it listens: ++head_server.host=<host> ++head_server.port=<port>, in Python head_server_config"
    )


def parsed_head_reply(url: str, body: bytes) -> DictConfig:
    """Return the configuration that a head server's reply holds: a JSON string of YAML.

    Raises:
        HeadServerUnreachableError: the reply is none of a head server's.

    """
    try:
        text = json.loads(body)
        with as_deep_as_usual():
            config = OmegaConf.create(text) if isinstance(text, str) else None
        if isinstance(config, DictConfig) and any(server_type_of(config, str(key)) for key in config):
            return config
    except (ValueError, RecursionError, YAMLError, OmegaConfBaseException) as error:
        raise head_unreachable(url, _NO_HEAD) from error
    raise head_unreachable(url, _NO_HEAD)
