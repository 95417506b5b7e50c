"""The HTTP client's part of a configuration, as an object.

Rules:
* A field has the name and the default of the key at a configuration's top level.

Source: servers.md §4.1.
"""

from pydantic import BaseModel, NonNegativeInt, PositiveInt


class GlobalAIOHTTPAsyncClientConfig(BaseModel):
    """Pool sizes in connections, times in seconds; `intended_concurrency` only has a pool that is too small told."""

    global_aiohttp_connector_limit: NonNegativeInt = 102_400
    global_aiohttp_connector_limit_per_host: NonNegativeInt = 1024
    global_aiohttp_client_request_debug: bool = False
    global_aiohttp_tcp_keepalive_idle_seconds: PositiveInt = 60
    global_aiohttp_tcp_keepalive_interval_seconds: PositiveInt = 10
    global_aiohttp_tcp_keepalive_probes: PositiveInt = 3
    global_aiohttp_intended_concurrency: PositiveInt | None = None
    global_aiohttp_intended_concurrency_per_host: PositiveInt | None = None
