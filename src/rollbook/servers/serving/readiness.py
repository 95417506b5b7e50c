"""Waiting for the model endpoints that model servers forward to.

Rules:
* Any HTTP answer means up: a wrong key or path is the first rollout's business.
* The first failure is logged at once, with the address; a host name that does not resolve is not waited for.
* A limit of 0 seconds skips the wait.

Source: servers.md §2.3.
"""

import asyncio
import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from aiohttp import ClientConnectorDNSError, ClientError, ClientTimeout
from omegaconf import DictConfig

from rollbook.config.instances import server_instances
from rollbook.config.names import MODELS
from rollbook.errors import EndpointNotReadyError
from rollbook.servers.http.http_client import request
from rollbook.servers.http.redaction import redacted_url

_LOG = logging.getLogger(__name__)
TIMEOUT_KEY: Final = "model_endpoint_readiness_timeout_seconds"
_DEFAULT_SECONDS: Final = 600.0
_PROBE_SECONDS: Final = 5.0
_PAUSES: Final = (0.1, 0.2, 0.5, 1.0)
_URL_SUFFIX: Final = "base_url"


@dataclass(frozen=True, slots=True)
class ModelEndpoint:
    """One address that a model server forwards to, and the dotted key that gives it."""

    key: str
    url: str

    @property
    def probe_url(self) -> str:
        """What a probe asks for."""
        return f"{self.url}/models" if self.url.endswith("/v1") else self.url


def model_endpoints(config: DictConfig) -> tuple[ModelEndpoint, ...]:
    """Return the endpoints of all model servers of a resolved configuration, each address once."""
    found: dict[str, ModelEndpoint] = {}
    for instance in server_instances(config):
        if instance.server_type == MODELS:
            prefix = f"{instance.name}.{instance.server_type}.{instance.implementation}"
            for key, url in _urls(instance.settings, prefix):
                found.setdefault(url, ModelEndpoint(key, url))
    return tuple(found.values())


def _urls(block: Mapping[str, object], prefix: str) -> Iterator[tuple[str, str]]:
    for name, value in block.items():
        key = f"{prefix}.{name}"
        if isinstance(value, Mapping):
            yield from _urls(value, key)
        elif name.endswith(_URL_SUFFIX):
            values = value if isinstance(value, list) else [value]
            yield from ((key, url.rstrip("/")) for url in values if isinstance(url, str) and url.startswith("http"))


async def wait_for_model_endpoints(config: DictConfig) -> None:
    """Return when every model endpoint answers.

    Raises:
        EndpointNotReadyError: one did not in time, or its host name does not resolve; names its address and key.

    """
    given = config.get(TIMEOUT_KEY)
    seconds = _DEFAULT_SECONDS if given is None else float(given)
    if seconds > 0:
        await asyncio.gather(*(wait_for_endpoint(endpoint, seconds) for endpoint in model_endpoints(config)))


async def wait_for_endpoint(endpoint: ModelEndpoint, seconds: float) -> None:
    """Return when `endpoint` answers; see `wait_for_model_endpoints`."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + seconds
    tries = 0
    while True:
        error = await _failure(endpoint)
        if error is None:
            return
        pause = _PAUSES[min(tries, len(_PAUSES) - 1)]
        if isinstance(error, ClientConnectorDNSError) or loop.time() + pause > deadline:
            raise EndpointNotReadyError(
                f"the model endpoint {redacted_url(endpoint.url)} ({endpoint.key}) does not answer: {error}; start it, "
                f"give another address (++{endpoint.key}=<url>), or skip this check (++{TIMEOUT_KEY}=0)"
            ) from error
        if tries == 0:
            _LOG.warning(
                "waiting for the model endpoint %s, for %g s at most (++%s=S): %s",
                redacted_url(endpoint.url),
                seconds,
                TIMEOUT_KEY,
                error,
            )
        tries += 1
        await asyncio.sleep(pause)


async def _failure(endpoint: ModelEndpoint) -> Exception | None:
    try:
        reply = await request(
            "GET", endpoint.probe_url, _connect_grace=0.0, timeout=ClientTimeout(total=_PROBE_SECONDS)
        )
        reply.release()
    except (ClientError, TimeoutError) as error:
        return error
    return None
