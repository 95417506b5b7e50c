"""A server that nobody can call and that reaches nobody: for checks and tests that run without servers.

Rules:
* It is built as a served one is, from its class and settings; it has no address, and its client knows no other server.

Source: servers.md §8.12.
"""

from typing import Any, Final, TypeVar

from omegaconf import OmegaConf

from rollbook.config.types import BaseServerConfig
from rollbook.servers.base import SimpleServer
from rollbook.servers.client import ServerClient

ServerT = TypeVar("ServerT", bound=SimpleServer)
_NOWHERE: Final = {"host": "127.0.0.1", "port": 0, "entrypoint": "app.py"}


def unserved_server(kind: type[ServerT], **settings: Any) -> ServerT:
    """Return a server of class `kind` whose configuration has these `settings`, by the names of its fields.

    Raises:
        pydantic.ValidationError: a setting that its configuration does not have, or has otherwise.

    """
    config: Any = kind.model_fields["config"].annotation
    client = ServerClient(BaseServerConfig(host="127.0.0.1", port=0), OmegaConf.create({}))
    told = {**_NOWHERE, "name": kind.__name__, **settings}
    return kind(config=config.model_validate(told), server_client=client)
