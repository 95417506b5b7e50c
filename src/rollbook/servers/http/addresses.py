"""Where a server is, from the resolved configuration alone.

Rules:
* There is no registry beyond the configuration: an instance's block holds its host and port.
* A name that is no instance is an error that lists the names that come close.

Source: servers.md §1.4, §2.1.
"""

from collections.abc import Mapping
from difflib import get_close_matches

from omegaconf import DictConfig, OmegaConf

from rollbook.config.names import SERVER_TYPES
from rollbook.errors import ServerRefNotFoundError


def server_type_of(config: DictConfig, name: str) -> str | None:
    """Return the type of the instance `name`, or None when the configuration has no such instance."""
    outer = config.get(name)
    if not isinstance(outer, DictConfig):
        return None
    return next((kind for kind in SERVER_TYPES if kind in outer), None)


def server_block(config: DictConfig, name: str) -> DictConfig:
    """Return the innermost block of the instance `name`.

    Raises:
        ServerRefNotFoundError: the configuration has no such instance.

    """
    kind = server_type_of(config, name)
    if kind is not None:
        block = next(iter(config[name][kind].values()), None)
        if isinstance(block, DictConfig):
            return block
    names = [str(key) for key in config if server_type_of(config, str(key))]
    close = get_close_matches(name, names) or names
    raise ServerRefNotFoundError(f"no server {name!r} in the configuration; there is {', '.join(close) or 'none'}")


def port_key_of(config: DictConfig, name: str) -> str:
    """Return the dotted path of an instance's port, as one types it to change it."""
    kind = server_type_of(config, name)
    implementation = next(iter(config[name][kind]), "") if kind else ""
    return f"{name}.{kind}.{implementation}.port"


def base_url_of(block: DictConfig | Mapping[str, object]) -> str:
    """Return `http://host:port` of a server's block."""
    return f"http://{block['host']}:{block['port']}"


def top_level(config: DictConfig) -> Mapping[str, object]:
    """Return the plain values that stand at the top of `config`: switches and knobs."""
    return {str(key): config.get(key) for key in config if not OmegaConf.is_config(config.get(key))}


class AddressBook:
    """The addresses of one configuration's instances, each looked up once."""

    def __init__(self, config: DictConfig) -> None:
        self._config = config
        self._known: dict[str, str] = {}

    def base_url(self, name: str) -> str:
        """Return `http://host:port` of an instance.

        Raises:
            ServerRefNotFoundError: the configuration has no such instance.

        """
        known = self._known.get(name)
        if known is None:
            known = self._known[name] = base_url_of(server_block(self._config, name))
        return known
