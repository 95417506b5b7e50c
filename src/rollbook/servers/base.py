"""What every server is: a pydantic value that knows its configuration, its peers, and how to become a web server.

Rules:
* Constructing a server does no I/O: tests build one from a configuration and a stand-in client.
* `build_app` is the one way from a server to its application, whether it is served here or in a process of its own.
* A route that a server defines wins over the health routes that all servers have.

Source: servers.md §3.1, §3.2, §3.3.
"""

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Final

from fastapi import FastAPI
from pydantic import BaseModel, ConfigDict

from rollbook.config.types import BaseRunServerInstanceConfig, BaseServerConfig
from rollbook.servers.client import ServerClient
from rollbook.servers.correlation import RolloutContextMiddleware
from rollbook.servers.deadline import DeadlineMiddleware
from rollbook.servers.direct.direct_way import install_direct_way
from rollbook.servers.error_report import boundary_of
from rollbook.servers.errors_replies import install_error_replies
from rollbook.servers.middleware import ClientDisconnectCancellationMiddleware
from rollbook.servers.serving.webserver import is_nemo_gym_fastapi_entrypoint, serve_here
from rollbook.servers.session_key import SESSION_ID_KEY
from rollbook.servers.sessions import install_sessions

__all__ = ["SESSION_ID_KEY", "BaseServer", "SimpleServer", "is_nemo_gym_fastapi_entrypoint"]

HEALTH_PATHS: Final = ("/", "/livez", "/readyz", "/healthz", "/health")


class BaseServer(BaseModel):
    """A configuration and a client for the other servers."""

    model_config = ConfigDict(arbitrary_types_allowed=True)

    config: BaseServerConfig
    server_client: ServerClient

    _held_as_they_are: ClassVar[frozenset[str]] = frozenset()
    """The private attributes that are what was put there, and no descriptors."""

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        """Note which private attributes a subclass has."""
        super().__pydantic_init_subclass__(**kwargs)
        private = cls.__private_attributes__.items()
        cls._held_as_they_are = frozenset(name for name, given in private if not hasattr(given, "__get__"))

    def __getattr__(self, item: str) -> Any:
        """Return a private attribute, without pydantic's other questions, or raise `AttributeError`."""
        if item in self._held_as_they_are:
            held = self.__pydantic_private__
            if held is not None and item in held:
                return held[item]
        return super().__getattr__(item)  # type: ignore[misc]  # pydantic hides it from checkers

    @classmethod
    def config_class(cls) -> type[BaseRunServerInstanceConfig]:
        """Return the class that the `config` field is annotated with: what a server's block is read as."""
        annotation = cls.model_fields["config"].annotation
        if isinstance(annotation, type) and issubclass(annotation, BaseRunServerInstanceConfig):
            return annotation
        return BaseRunServerInstanceConfig


class SimpleServer(BaseServer):
    """A server whose routes `setup_webserver` puts on an application."""

    config: BaseRunServerInstanceConfig

    ray_enabled: ClassVar[bool | None] = False

    @property
    def session_middleware_key(self) -> str:
        """The session cookie's name and signing secret: `<class>___<instance>`."""
        return f"{type(self).__name__}___{self.config.name}"

    @abstractmethod
    def setup_webserver(self) -> FastAPI:
        """Return an application with this server's own routes."""
        raise NotImplementedError

    def setup_session_middleware(self, app: FastAPI) -> None:
        """Give every request a cookie session with an id, `request.session["session_id"]`."""
        install_sessions(app, self.session_middleware_key)

    def setup_rollout_context_middleware(self, app: FastAPI) -> None:
        """Serve paths behind `/ng-rollout/<id>` as the paths themselves, inside that rollout.

        It is there once, and outside of all that was added before the last call.
        """
        app.user_middleware = [added for added in app.user_middleware if not _reads_prefixes(added.cls)]
        app.add_middleware(RolloutContextMiddleware)

    def setup_exception_middleware(self, app: FastAPI) -> None:
        """Answer what a handler raises with an error reply."""
        install_error_replies(app, self.session_middleware_key)

    def setup_cancellation_middleware(self, app: FastAPI) -> None:
        """Cancel a handler whose client has gone."""
        app.add_middleware(ClientDisconnectCancellationMiddleware)

    def finish_webserver(self, app: FastAPI) -> None:
        """Add to the routes that `setup_webserver` made, before the health routes; a hook that does nothing here."""

    def relayed_paths(self) -> Mapping[str, str]:
        """Return the paths whose POSTs go on to another instance as they came, and its name; no path here.

        In one process such a POST may be sent to the instance behind at once.
        """
        return {}

    def build_app(self) -> FastAPI:
        """Return the whole application: own routes, health routes, error replies, cancellation on disconnect."""
        app = self.setup_webserver()
        self.finish_webserver(app)
        install_health_routes(app)
        self.setup_rollout_context_middleware(app)
        app.add_middleware(DeadlineMiddleware, boundary=boundary_of(app))
        self.setup_exception_middleware(app)
        self.setup_cancellation_middleware(app)
        install_direct_way(app)
        return app

    @classmethod
    def run_webserver(cls) -> FastAPI | None:
        """Serve this class as the instance that the environment names, until the process is told to stop.

        Returns the application instead in a worker process of a server that has several.

        Raises:
            ConfigError: the environment names no instance, or its block does not validate.

        """
        return serve_here(cls)


def _reads_prefixes(middleware: object) -> bool:
    return middleware is RolloutContextMiddleware


async def _alive() -> dict[str, str]:
    return {"status": "ok"}


def install_health_routes(app: FastAPI) -> None:
    """Answer the health paths with `{"status": "ok"}`, out of the schema and behind the app's own routes."""
    for path in HEALTH_PATHS:
        app.get(path, include_in_schema=False)(_alive)
