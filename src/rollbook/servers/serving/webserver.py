"""Serving one server in a process of its own: from the environment's configuration to uvicorn.

Rules:
* The launcher says which instance this is; nothing is read from the command line.
* A server ends when its launcher does: a pipe that only the launcher holds open tells it so.
* Forwarded addresses are believed only where that is switched on and from addresses that the configuration lists; a
  list that covers every address is refused.

Source: servers.md §2.4, §3.2.
"""

import ipaddress
import logging
import os
import re
import signal
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Final, Protocol, TextIO, cast

import uvicorn
from fastapi import FastAPI
from omegaconf import DictConfig, OmegaConf
from pydantic import ValidationError

from rollbook.config.names import NEMO_GYM_CONFIG_PATH_ENV_VAR_NAME
from rollbook.config.parser import get_global_config_dict
from rollbook.config.types import BaseRunServerInstanceConfig, BaseServerConfig
from rollbook.errors import ConfigError
from rollbook.servers.client import ServerClient
from rollbook.servers.http.addresses import server_block, server_type_of, top_level
from rollbook.servers.http.client_pool import choose_client_settings
from rollbook.servers.http.client_settings import NUM_WORKERS_ENV_VAR_NAME
from rollbook.servers.http.embedded_call import untraced
from rollbook.servers.http.listening import GRACEFUL_SHUTDOWN_SECONDS, KEEP_ALIVE_SECONDS, KeepAliveProtocol
from rollbook.servers.mcp.seal_key import hand_down_seal_key
from rollbook.servers.serving.garbage import looking_less
from rollbook.servers.serving.open_files import raise_open_file_limit

WORKER_ENV_VAR_NAME: Final = "IS_NEMO_GYM_FASTAPI_WORKER"
ENTRYPOINT_ENV_VAR_NAME: Final = "IS_NEMO_GYM_FASTAPI_ENTRYPOINT"
LAUNCHER_PIPE_ENV_VAR_NAME: Final = "ROLLBOOK_LAUNCHER_PIPE"
LOOPBACK: Final = "127.0.0.1"
_REFERENCE: Final = re.compile(r"\$\{(?P<key>[A-Za-z_][\w.]*)\}")
_WORKER_HEALTHCHECK_SECONDS: Final = 30
_LAST_SECONDS: Final = 3.0
_MAPPED_IPV4: Final = ipaddress.IPv6Network("::ffff:0:0/96")

_LOG = logging.getLogger(__name__)
_KEYS_OF_EVERY_BLOCK: Final = frozenset(
    {"allowed_agents", "allowed_model_types", "datasets", "domain", "skip_verification", "skip_verification_reward"}
    | {"description", "value", "verified", "verified_url"}
)
"""Keys of a server's block that the configuration itself reads, and those that tell a reader what it is."""


class Servable(Protocol):
    """A server as this module needs it."""

    def build_app(self) -> FastAPI:
        """Return the whole application."""
        ...


class ServableClass(Protocol):
    """A class of servers."""

    @classmethod
    def config_class(cls) -> type[BaseRunServerInstanceConfig]:
        """Return what a server's block is read as."""
        ...

    def __call__(self, *, config: BaseRunServerInstanceConfig, server_client: ServerClient) -> Servable:
        """Return one server."""
        ...


def is_nemo_gym_fastapi_entrypoint(file: str) -> bool:
    """Whether the module in `file` is what a worker process of a server was started for."""
    return bool(os.environ.get(WORKER_ENV_VAR_NAME)) and os.environ.get(ENTRYPOINT_ENV_VAR_NAME) == str(
        Path(file).resolve()
    )


def instance_config(server_class: ServableClass, config: DictConfig, name: str) -> BaseRunServerInstanceConfig:
    """Return the instance `name` as the class's own configuration type.

    Raises:
        ConfigError: the block does not validate; names instance and fields.

    """
    block = cast("dict[str, object]", OmegaConf.to_container(server_block(config, name), resolve=True))
    config_class = server_class.config_class()
    _warn_of_unknown_keys(config_class, block, name)
    try:
        return config_class.model_validate({**block, "name": name})
    except ValidationError as error:
        found = "; ".join(_fault(one["loc"], one["msg"], config, name) for one in error.errors())
        raise ConfigError(f"the block of server {name!r} does not validate: {found}") from error


def _fault(place: Sequence[str | int], words: str, config: DictConfig, name: str) -> str:
    """Return what is wrong with one value, and the key that sets it: what it refers to, where it only does that."""
    block = server_block(config, name)
    said = OmegaConf.to_container(block, resolve=False)
    if not place:
        return words
    raw = said.get(str(place[0])) if isinstance(said, dict) else None
    reference = _REFERENCE.fullmatch(raw) if isinstance(raw, str) else None
    field = ".".join(map(str, place))
    if reference is not None:
        return f"{field}: {words}; it is {raw}, so set ++{reference['key']}=<value>"
    kind = server_type_of(config, name)
    return f"{field}: {words}; set ++{name}.{kind}.{next(iter(config[name][kind]))}.{field}=<value>"


def _warn_of_unknown_keys(
    config_class: type[BaseRunServerInstanceConfig], block: Mapping[str, object], name: str
) -> None:
    """Name keys that the server would ignore without a word; a misspelt one changes what it does."""
    if config_class.model_config.get("extra") == "allow":
        return
    known = {alias for key, field in config_class.model_fields.items() for alias in (key, field.alias) if alias}
    for key in sorted(block.keys() - known - _KEYS_OF_EVERY_BLOCK):
        close = get_close_matches(key, known, n=1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        _LOG.warning("server %r ignores the key %r, which %s does not have%s", name, key, config_class.__name__, hint)


def head_server_config(config: DictConfig) -> BaseServerConfig:
    """Return where the head server of `config` listens: 127.0.0.1:11000 unless it says otherwise."""
    given = OmegaConf.to_container(config.get("head_server") or OmegaConf.create({}), resolve=True)
    return BaseServerConfig.model_validate({"host": LOOPBACK, "port": 11_000, **cast("dict[str, object]", given)})


def serve_here(server_class: ServableClass) -> FastAPI | None:
    """Serve `server_class` as the instance that the environment names; see `SimpleServer.run_webserver`."""
    follow_launcher()
    name = os.environ.get(NEMO_GYM_CONFIG_PATH_ENV_VAR_NAME)
    if not name:
        raise ConfigError(
            f"{NEMO_GYM_CONFIG_PATH_ENV_VAR_NAME} is not set: servers are started by `gym env start` or `gym eval run`"
        )
    config = get_global_config_dict()
    choose_client_settings(top_level(config))
    client = ServerClient(head_server_config(config), config)
    server = server_class(config=instance_config(server_class, config, name), server_client=client)
    if config.get("dry_run"):
        return None
    app = server.build_app()
    raise_open_file_limit()
    sys.stdout = cast("TextIO", PrefixedLines(sys.stdout, f"({name}) "))
    if os.environ.get(WORKER_ENV_VAR_NAME):
        return app
    run_until_stopped(app, config, name)
    return None


def run_until_stopped(app: FastAPI, config: DictConfig, name: str) -> None:
    """Serve `app` at the address of the instance `name`, with as many workers as its block asks for."""
    block = server_block(config, name)
    workers = int(block.get("num_workers") or 1)
    target = worker_target(config, name, workers) if workers > 1 else untraced(app)
    allowed = forwarded_allow_ips(config)
    looking_less()
    uvicorn.run(
        target,
        host=str(block.get("host") or LOOPBACK),
        port=int(block["port"]),
        workers=workers if workers > 1 else None,
        http=KeepAliveProtocol,
        interface="asgi3",
        access_log=bool(config.get("uvicorn_logging_show_200_ok")),
        proxy_headers=allowed is not None,
        forwarded_allow_ips=allowed,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=GRACEFUL_SHUTDOWN_SECONDS,  # type: ignore[arg-type]  # any number of seconds
        timeout_worker_healthcheck=int(config.get("uvicorn_timeout_worker_healthcheck") or _WORKER_HEALTHCHECK_SECONDS),
    )


def worker_target(config: DictConfig, name: str, workers: int) -> str:
    """Return the import string of the instance's application, after telling its workers who they are."""
    kind = server_type_of(config, name)
    implementation = next(iter(config[name][kind])) if kind else ""
    entrypoint = Path(str(server_block(config, name)["entrypoint"]))
    os.environ[WORKER_ENV_VAR_NAME] = "1"
    os.environ[ENTRYPOINT_ENV_VAR_NAME] = str(Path(sys.argv[0]).resolve())
    os.environ[NUM_WORKERS_ENV_VAR_NAME] = str(workers)
    hand_down_seal_key()
    return f"{kind}.{implementation}.{entrypoint.stem}:app"


def forwarded_allow_ips(config: Mapping[str, object] | DictConfig) -> list[str] | None:
    """Return the addresses whose forwarding headers are believed; None when those are believed from nobody.

    Raises:
        ConfigError: an entry is no address or network, or all together cover every address.

    """
    if not config.get("uvicorn_proxy_headers"):
        return None
    given = config.get("uvicorn_forwarded_allow_ips")
    if not given:
        _LOG.warning("uvicorn_proxy_headers has no effect without ++uvicorn_forwarded_allow_ips=<addresses>")
        return None
    entries = given.split(",") if isinstance(given, str) else [str(entry) for entry in cast("Sequence[object]", given)]
    entries = [entry.strip() for entry in entries]
    networks = [_network(entry) for entry in entries]
    if _covers_every_address(networks):
        raise _refused_forwarding(", ".join(entries))
    return entries


def _covers_every_address(networks: Sequence[ipaddress.IPv4Network | ipaddress.IPv6Network]) -> bool:
    """Whether `networks` are, all together, the whole of IPv4 or of IPv6, or IPv4 as IPv6 writes it."""
    four = ipaddress.collapse_addresses(network for network in networks if isinstance(network, ipaddress.IPv4Network))
    six = ipaddress.collapse_addresses(network for network in networks if isinstance(network, ipaddress.IPv6Network))
    return any(network.prefixlen == 0 for network in four) or any(_MAPPED_IPV4.subnet_of(network) for network in six)


def _network(entry: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
    try:
        return ipaddress.ip_network(entry, strict=False)
    except ValueError:
        raise _refused_forwarding(entry) from None


def _refused_forwarding(found: str) -> ConfigError:
    return ConfigError(
        f"uvicorn_forwarded_allow_ips holds {found!r}; list single addresses or networks, such as 10.1.2.0/24"
    )


def follow_launcher(end: Callable[[], None] | None = None) -> None:
    """End this process when the launcher that started it does; without a launcher nothing happens."""
    descriptor = os.environ.pop(LAUNCHER_PIPE_ENV_VAR_NAME, "")
    if descriptor.isdecimal():
        threading.Thread(target=_wait_for_end, args=(int(descriptor), end or _end_process), daemon=True).start()


def _wait_for_end(descriptor: int, end: Callable[[], None]) -> None:
    while os.read(descriptor, 1):
        pass
    end()


def _end_process() -> None:
    """Ask this process to stop, and stop it when it does not."""
    os.kill(os.getpid(), signal.SIGTERM)
    threading.Event().wait(_LAST_SECONDS)
    os.killpg(os.getpgid(0), signal.SIGKILL)


class PrefixedLines:
    """A text stream that writes a prefix before every line; everything else is the wrapped stream's."""

    def __init__(self, stream: TextIO, prefix: str) -> None:
        self._stream = stream
        self._prefix = prefix
        self._at_start = True

    def write(self, text: str) -> int:
        """Write `text`, prefixing each line that it begins."""
        for line in text.splitlines(keepends=True):
            self._stream.write(self._prefix + line if self._at_start else line)
            self._at_start = line.endswith("\n")
        return len(text)

    def __getattr__(self, name: str) -> object:
        return getattr(self._stream, name)
