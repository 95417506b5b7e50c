"""The client that servers and drivers call other servers with, by instance name.

Rules:
* An address comes from the configuration, and is static for the life of the run; the environment may point a model
  server elsewhere, at any time.
* Handing out a URL opens the port behind it; calling a server of this process by name opens nothing.
* Cookies are the caller's: what a server gave is forwarded by whoever wants the session.

Source: servers.md §4.3, §2.2.
"""

import asyncio
import os
from collections.abc import Mapping
from copy import copy
from enum import StrEnum
from typing import Any, Final, Self

from aiohttp import ClientError, ClientResponse, ClientTimeout
from omegaconf import DictConfig, OmegaConf
from pydantic import BaseModel

from rollbook.config.capture_flags import capture_flags
from rollbook.config.names import MODELS, NEMO_GYM_CONFIG_DICT_ENV_VAR_NAME, RESOURCES_SERVERS
from rollbook.config.parser import get_global_config_dict
from rollbook.config.types import BaseServerConfig
from rollbook.errors import HeadServerUnreachableError
from rollbook.records.exchange import DEADLINE_HEADER
from rollbook.servers.correlation import ROLLOUT_ID_HEADER, apply_rollout_prefix, current_rollout, rollout_id_from_run
from rollbook.servers.deadline import sent_on
from rollbook.servers.head_lookup import fetch_global_config, root_status
from rollbook.servers.http.addresses import AddressBook, base_url_of, server_block, server_type_of, top_level
from rollbook.servers.http.client_pool import set_global_aiohttp_client
from rollbook.servers.http.embedded_registry import find_embedded, hand_out, hosts_servers
from rollbook.servers.http.http_client import get_response_json, raise_for_status, request
from rollbook.servers.session_key import SESSION_ID_KEY

__all__ = [
    "MODEL_SERVER_BASE_URL_ENV_VAR_NAME",
    "MODEL_SERVER_NAME_ENV_VAR_NAME",
    "SESSION_ID_KEY",
    "HeadServerUnreachableError",
    "ServerClient",
    "ServerStatus",
    "get_response_json",
    "get_server_url",
    "raise_for_status",
    "request",
    "resolve_model_base_url",
    "setup_server_client",
]

MODEL_SERVER_NAME_ENV_VAR_NAME: Final = "NEMO_GYM_MODEL_SERVER_NAME"
MODEL_SERVER_BASE_URL_ENV_VAR_NAME: Final = "NEMO_GYM_MODEL_SERVER_BASE_URL"
OBSERVABILITY_ENABLED_KEY_NAME: Final = "observability_enabled"
_MODEL_ROUTES: Final = frozenset({"/v1/responses", "/v1/chat/completions", "/v1/messages"})
_DEADLINE: Final = DEADLINE_HEADER.lower()
_STATUS_SECONDS: Final = 5.0


class ServerStatus(StrEnum):
    """What a probe found. Any HTTP answer, even 404, is a success."""

    SUCCESS = "success"
    CONNECTION_ERROR = "connection_error"
    TIMEOUT = "timeout"
    UNKNOWN_ERROR = "unknown_error"


class ServerClient:
    """Calls servers by instance name.

    `global_config_dict` is the resolved configuration that holds their addresses, `head_server_config` where the head
    server of the deployment listens. A subclass may declare fields of its own; they are given by name.
    """

    def __init__(self, head_server_config: BaseServerConfig, global_config_dict: DictConfig, **fields: Any) -> None:
        self.head_server_config = head_server_config
        self.global_config_dict = global_config_dict
        self._addresses = AddressBook(global_config_dict)
        self._fixed: dict[str, str] = {}
        self._models: set[str] = set()
        self._observes = bool(global_config_dict.get(OBSERVABILITY_ENABLED_KEY_NAME))
        self.observes_model_calls = global_config_dict.get(OBSERVABILITY_ENABLED_KEY_NAME) is True
        self.capture_flags = capture_flags(global_config_dict)
        if type(self) is not ServerClient:
            vars(self).update({**_declared(type(self)), **fields})

    @classmethod
    def model_construct(cls, _fields_set: set[str] | None = None, **fields: Any) -> Self:
        """Return a client with these `fields` as they are; an empty configuration stands in for one that is not given.

        The field's client is a pydantic model, and tests make one that lacks what they do not use.
        """
        missing: dict[str, Any] = {"head_server_config": None, "global_config_dict": {}}
        return cls(**{**missing, **fields})

    @classmethod
    def load_head_server_config(cls) -> BaseServerConfig:
        """Return where the head server listens, as this process's configuration says."""
        return BaseServerConfig.model_validate(OmegaConf.to_container(get_global_config_dict().head_server))

    @classmethod
    def load_from_global_config(cls, head_server_config: BaseServerConfig | None = None) -> Self:
        """Return a client for the deployment of this process, or else for the one behind the head server.

        Raises:
            ServingError: the head server does not answer; names its URL. Also a `ValueError`.

        """
        if os.environ.get(NEMO_GYM_CONFIG_DICT_ENV_VAR_NAME) or hosts_servers():
            return cls(head_server_config or cls.load_head_server_config(), get_global_config_dict())
        head = head_server_config or cls.load_head_server_config()
        return cls(head, fetch_global_config(head))

    async def post(self, server_name: str, url_path: str, **kwargs: Any) -> ClientResponse:
        """POST to a server; keyword arguments as for `request`."""
        return await self.request(server_name, url_path, "POST", **kwargs)

    async def get(self, server_name: str, url_path: str, **kwargs: Any) -> ClientResponse:
        """GET from a server; keyword arguments as for `request`."""
        return await self.request(server_name, url_path, "GET", **kwargs)

    async def request(self, server_name: str, url_path: str, method: str, **kwargs: Any) -> ClientResponse:
        """Send a request to `url_path` of `server_name`; a pydantic `json` goes without the fields nobody set.

        Raises:
            aiohttp.ClientError, TimeoutError: no reply came.
            ServerRefNotFoundError: the configuration has no such server.

        """
        body = kwargs.get("json")
        if isinstance(body, BaseModel):
            kwargs["json"] = body.model_dump(exclude_unset=True)
        context = current_rollout()
        if context is not None:
            given = kwargs.get("headers")
            kwargs["headers"] = {ROLLOUT_ID_HEADER: context.rollout_id, **(given or {})}
        left = sent_on()
        if left is not None:
            given = {name: value for name, value in (kwargs.get("headers") or {}).items() if name.lower() != _DEADLINE}
            kwargs["headers"] = {**given, DEADLINE_HEADER: left}
        base_url = self._fixed.get(server_name) or self._address(server_name)
        path = self._correlated(server_name, url_path, body) if self._observes else url_path
        return await request(method, base_url + path, _internal=True, _server_name=server_name, **kwargs)

    def poll_for_status(self, server_name: str) -> ServerStatus:
        """Return what a GET of the server's root finds within 5 s; blocks meanwhile.

        A server of this process is there as soon as it has its address: nothing is asked of it.
        """
        url = self._address(server_name)
        return ServerStatus.SUCCESS if find_embedded(url) else ServerStatus(root_status(url, _STATUS_SECONDS))

    def _build_server_base_url(self, server_config_dict: DictConfig | Mapping[str, object]) -> str:
        """Return `http://host:port` of a server's block, open for anybody's use."""
        return hand_out(base_url_of(server_config_dict))

    def _address(self, server_name: str) -> str:
        """Return where an instance is reached now; what is no model server stays where it is."""
        if server_name not in self._models:
            if server_type_of(self.global_config_dict, server_name) not in {MODELS, None}:
                base_url = self._fixed[server_name] = self._addresses.base_url(server_name)
                return base_url
            self._models.add(server_name)
        return model_server_override(server_name) or self._addresses.base_url(server_name)

    def _correlated(self, server_name: str, url_path: str, body: object) -> str:
        """Return the path behind the prefix of the rollout that this call is made for."""
        config = self.global_config_dict
        if model_server_override(server_name):
            return url_path
        kind = server_type_of(config, server_name)
        context = current_rollout()
        if kind == MODELS and url_path in _MODEL_ROUTES:
            if context is None:
                return url_path
            return apply_rollout_prefix(url_path, context.rollout_id, token_capture=context.training_capture)
        if kind != RESOURCES_SERVERS:
            return url_path
        found = context.rollout_id if context else None
        if found is None and url_path == "/verify" and isinstance(body, (BaseModel, Mapping)):
            found = rollout_id_from_run(body)
        return apply_rollout_prefix(url_path, found)


def model_server_override(server_name: str) -> str | None:
    """Return the URL that the environment gives for a model server, as an agent sets it for its subprocess."""
    if os.environ.get(MODEL_SERVER_NAME_ENV_VAR_NAME) != server_name:
        return None
    url = os.environ.get(MODEL_SERVER_BASE_URL_ENV_VAR_NAME)
    return url.rstrip("/").removesuffix("/v1") if url else None


def _declared(kind: type[ServerClient]) -> dict[str, object]:
    """Return copies of the defaults that a subclass declares for its own fields, as a model would make them."""
    own = kind.__mro__[: kind.__mro__.index(ServerClient)]
    names = [name for one in own for name in vars(one).get("__annotations__", {})]
    return {name: copy(getattr(kind, name)) for name in names if hasattr(kind, name)}


def get_server_url(global_config_dict: DictConfig, server_name: str) -> str:
    """Return `http://host:port` of an instance, open for anybody's use.

    Raises:
        PortTakenError: the server lives in this process, and another program holds its port.

    """
    return hand_out(base_url_of(server_block(global_config_dict, server_name)))


def resolve_model_base_url(
    server_client: ServerClient,
    model_server_name: str,
    rollout_id: str | None = None,
    *,
    training_capture: bool = False,
) -> str:
    """Return `http://host:port[/ng-rollout/<id>[/training-token-capture]]/v1` for a program outside of this process.

    The prefix is there for a `rollout_id`, and for the running handler's where the deployment observes model calls. A
    model endpoint that the server's is overridden with knows no prefix.
    """
    config = server_client.global_config_dict
    override = model_server_override(model_server_name)
    base = override or get_server_url(config, model_server_name)
    found = rollout_id
    if not found and config.get(OBSERVABILITY_ENABLED_KEY_NAME):
        found = context.rollout_id if (context := current_rollout()) else None
    return base + apply_rollout_prefix("/v1", None if override else found, token_capture=training_capture)


async def probe(url: str, seconds: float) -> ServerStatus:
    """Return what a GET of `url` finds; any HTTP answer is a success."""
    try:
        reply = await request(
            "GET", url, _connect_grace=0.0, timeout=ClientTimeout(total=seconds), allow_redirects=False
        )
        await reply.read()
    except TimeoutError:
        return ServerStatus.TIMEOUT
    except ClientError as error:
        return ServerStatus.CONNECTION_ERROR if isinstance(error, OSError) else ServerStatus.UNKNOWN_ERROR
    return ServerStatus.SUCCESS


def setup_server_client(head_server_config: BaseServerConfig | None = None) -> ServerClient:
    """Return a client for scripts; inside a running loop its connections follow the deployment's knobs."""
    client = ServerClient.load_from_global_config(head_server_config)
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return client
    set_global_aiohttp_client(top_level(client.global_config_dict))
    return client
