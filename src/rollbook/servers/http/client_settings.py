"""The knobs of the HTTP client, as the configuration's top level gives them.

Rules:
* All are optional; a value of the wrong type is an error that names its key.
* A time limit of 0 is no limit. A call of a model endpoint has one of its own, an hour unless told otherwise; a rollout
  and its steps have none, since an agent may be at work for hours. What a run sends has the limits of the run instead.
* Pool sizes are divided among the workers of a server that has several.

Source: servers.md §2.4, §4.1.
"""

import os
from collections.abc import Mapping
from typing import Final

import msgspec

from rollbook.errors import ConfigError

NUM_WORKERS_ENV_VAR_NAME: Final = "NEMO_GYM_FASTAPI_NUM_WORKERS"
_PREFIX: Final = "global_aiohttp_"


class ClientSettings(msgspec.Struct, frozen=True):
    """Sizes in connections, times in seconds; None means no limit.

    `connect_seconds` bounds the opening of one connection, `read_seconds` the silence between two reads of a reply,
    `total_seconds` a whole exchange, `model_call_seconds` a whole exchange with a model endpoint,
    `connect_grace_seconds` how long a server that cannot be connected to is tried.
    `trust_env` has proxy variables of the environment obeyed, for endpoints beyond a proxy; it concerns every call of a
    server, so `NO_PROXY` is to name the hosts of our own servers. Rollouts are sent by a client of their own
    (`servers/wire`), which takes the keepalive options alone: it obeys no proxy, and their limits are the run's.
    """

    connector_limit: int = 102_400
    connector_limit_per_host: int = 1024
    connect_seconds: float = 10.0
    read_seconds: float | None = None
    total_seconds: float | None = None
    model_call_seconds: float | None = 3600.0
    connect_grace_seconds: float = 60.0
    pool_keepalive_seconds: float = 4.0
    keepalive_idle_seconds: int = 60
    keepalive_interval_seconds: int = 10
    keepalive_probes: int = 3
    request_debug: bool = False
    trust_env: bool = False

    @property
    def limits_exchanges(self) -> bool:
        """Whether the calls of one server to another have a limit in time."""
        return self.total_seconds is not None or self.read_seconds is not None

    @property
    def tcp_keepalive(self) -> Mapping[str, int]:
        """The socket options that have the kernel probe an idle peer."""
        return {
            "TCP_KEEPIDLE": self.keepalive_idle_seconds,
            "TCP_KEEPINTVL": self.keepalive_interval_seconds,
            "TCP_KEEPCNT": self.keepalive_probes,
        }


_LIMITS: Final = frozenset({"read_seconds", "total_seconds", "model_call_seconds"})
_KEYS: Final = {
    "connector_limit": "connector_limit",
    "connector_limit_per_host": "connector_limit_per_host",
    "connect_seconds": "connect_timeout_seconds",
    "read_seconds": "read_timeout_seconds",
    "total_seconds": "total_timeout_seconds",
    "model_call_seconds": "model_call_timeout_seconds",
    "connect_grace_seconds": "connect_grace_seconds",
    "pool_keepalive_seconds": "pool_keepalive_seconds",
    "keepalive_idle_seconds": "tcp_keepalive_idle_seconds",
    "keepalive_interval_seconds": "tcp_keepalive_interval_seconds",
    "keepalive_probes": "tcp_keepalive_probes",
    "request_debug": "client_request_debug",
    "trust_env": "trust_env",
}


def read_client_settings(config: Mapping[str, object], environ: Mapping[str, str] = os.environ) -> ClientSettings:
    """Return the settings that the top level of `config` gives.

    Raises:
        ConfigError: a value is no number where one is needed.

    """
    defaults = ClientSettings()
    given: dict[str, float | bool] = {}
    for field, key in _KEYS.items():
        value = config.get(_PREFIX + key)
        if value is not None:
            given[field] = _number(_PREFIX + key, value)
    workers = max(1, int(environ.get(NUM_WORKERS_ENV_VAR_NAME) or 1))
    for field in ("connector_limit", "connector_limit_per_host"):
        limit = int(given.get(field, getattr(defaults, field)))
        given[field] = max(1, limit // workers) if limit else 0
    for field in ("keepalive_idle_seconds", "keepalive_interval_seconds", "keepalive_probes"):
        given[field] = int(given.get(field, getattr(defaults, field)))
    unlimited = dict.fromkeys(field for field in _LIMITS if given.get(field, 1) <= 0)
    return ClientSettings(**{**given, **unlimited})  # type: ignore[arg-type]  # whole numbers where whole numbers are wanted


def _number(key: str, value: object) -> float | bool:
    if isinstance(value, (int, float)):
        return value
    raise ConfigError(f"{key} is {value!r}; give a number: ++{key}=<number>")
