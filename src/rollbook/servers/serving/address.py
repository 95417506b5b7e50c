"""The address that a server is to have.

Rules:
* A server without one is an error that says what to type.
"""

from omegaconf import DictConfig

from rollbook.config.types import ServerInstanceConfig
from rollbook.errors import ConfigError
from rollbook.servers.http.addresses import port_key_of


def address_of(config: DictConfig, instance: ServerInstanceConfig) -> tuple[str, int]:
    """Return the host and port of an instance.

    Raises:
        ConfigError: it has none.

    """
    if instance.host and instance.port and instance.port > 0:
        return instance.host, instance.port
    raise ConfigError(
        f"server {instance.name!r} has no address; give it one: ++{port_key_of(config, instance.name)}=<port>"
    )
