"""What is asked of a server once, and blocks: the configuration of a deployment, and whether somebody is there.

Rules:
* Nothing but the standard library goes there: who only asks once loads no client for it.
* No proxy of the environment stands in between.

Source: servers.md §2.1, §2.2, §4.3.
"""

import http.client
import json
import urllib.error
import urllib.request
from typing import Final, Literal

from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException
from yaml import YAMLError

from rollbook.config.recursion import as_deep_as_usual
from rollbook.config.types import BaseServerConfig
from rollbook.errors import HeadServerUnreachableError
from rollbook.servers.http.addresses import server_type_of

_NO_HEAD: Final = "what answers is no head server"
_HEAD_SECONDS: Final = 10.0


def fetch_global_config(head: BaseServerConfig, seconds: float = _HEAD_SECONDS) -> DictConfig:
    """Return the resolved configuration of the deployment behind `head`; blocks while it is fetched.

    Raises:
        HeadServerUnreachableError: no head server answers there, or what answers is none; names the URL.

    """
    url = f"http://{head.host}:{head.port}/global_config_dict_yaml"
    try:
        with _opener().open(url, timeout=seconds) as reply:
            return parsed_head_reply(url, reply.read())
    except OSError as error:
        raise head_unreachable(url, str(getattr(error, "reason", error))) from error
    except http.client.HTTPException as error:
        raise head_unreachable(url, _NO_HEAD) from error


def root_status(url: str, seconds: float) -> Literal["success", "timeout", "connection_error", "unknown_error"]:
    """Return what a GET of `url` finds within `seconds`; any HTTP answer is a success."""
    try:
        _opener().open(url, timeout=seconds).close()
    except urllib.error.HTTPError:
        return "success"
    except TimeoutError:
        return "timeout"
    except OSError as error:
        reason = getattr(error, "reason", error)
        return "timeout" if isinstance(reason, TimeoutError) else "connection_error"
    except (http.client.HTTPException, ValueError):
        return "unknown_error"
    return "success"


def _opener() -> urllib.request.OpenerDirector:
    return urllib.request.build_opener(urllib.request.ProxyHandler({}))


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
