"""Which rollout a server is working for: read from the path, held in a context variable, put before outgoing paths.

Rules:
* A prefix is put on once and taken off once; a path that carries one is left alone.
* Servers need not know of it: the middleware strips the prefix before routing.
* Reading a body for its rollout never changes the body.

Source: servers.md §3.7, §3.8, §4.3.
"""

import contextvars
import re
from collections.abc import Mapping
from contextlib import AbstractContextManager
from functools import lru_cache
from typing import Final, NamedTuple

from pydantic import BaseModel
from starlette.types import ASGIApp, Receive, Scope, Send

from rollbook.records.identity import ROLLOUT_ID_KEY_NAME, maybe_rollout_id

ROLLOUT_PATH_PREFIX: Final = "/ng-rollout/"
ROLLOUT_ID_HEADER: Final = "X-Rollout-Id"
ROLLOUT_ID_HEADER_BYTES: Final = ROLLOUT_ID_HEADER.lower().encode()
TRAINING_CAPTURE_SEGMENT: Final = "/training-token-capture"
_ROLLOUT_ID: Final = re.compile(r"[A-Za-z0-9._-]{1,256}")
_PREFIXED: Final = re.compile(r"/ng-rollout/(?P<id>[A-Za-z0-9._-]+)(?P<capture>/training-token-capture)?(?P<rest>/.*)?")


class RolloutContext(NamedTuple):
    """The rollout that the running handler serves. `rollout_id` is the attempt's capture key, for example `3-0-a1`."""

    rollout_id: str
    training_capture: bool = False


_current: contextvars.ContextVar[RolloutContext | None] = contextvars.ContextVar("rollbook_rollout", default=None)


def current_rollout() -> RolloutContext | None:
    """Return the rollout that the running handler serves, or None outside of one."""
    return _current.get()


def current_rollout_id() -> str | None:
    """Return the capture key of the rollout that the running handler serves, or None outside of one."""
    context = _current.get()
    return context.rollout_id if context else None


def enter(context: RolloutContext | None) -> None:
    """Work for the rollout of `context` from now on, in a task that ends with it; None leaves the context as it is."""
    if context is not None:
        _current.set(context)


class _Within:
    """A block that works for a rollout."""

    __slots__ = ("_context", "_token")

    def __init__(self, context: RolloutContext | None) -> None:
        self._context = context

    def __enter__(self) -> None:
        if self._context is not None:
            self._token = _current.set(self._context)

    def __exit__(self, *raised: object) -> None:
        if self._context is not None:
            _current.reset(self._token)


def within(context: RolloutContext | None) -> AbstractContextManager[None]:
    """Work for the rollout of `context` inside the block; None leaves the context as it is."""
    return _Within(context)


def rollout_context(rollout_id: str | None, *, training_capture: bool = False) -> AbstractContextManager[None]:
    """Work for `rollout_id` inside the block; None leaves the context as it is."""
    return _Within(None if rollout_id is None else RolloutContext(rollout_id, training_capture))


def rollout_path_prefix(rollout_id: str, *, token_capture: bool = False) -> str:
    """Return `/ng-rollout/<id>`, with `/training-token-capture` behind it where the call's tokens are wanted."""
    return f"{ROLLOUT_PATH_PREFIX}{rollout_id}{TRAINING_CAPTURE_SEGMENT if token_capture else ''}"


def apply_rollout_prefix(path: str, rollout_id: str | None, *, token_capture: bool = False) -> str:
    """Return `path` behind the rollout's prefix; unchanged without an id, or when it carries a prefix already.

    A server's address takes the prefix behind it, before a trailing `/v1`.
    """
    if rollout_id is None or ROLLOUT_PATH_PREFIX in path:
        return path
    prefix = rollout_path_prefix(rollout_id, token_capture=token_capture)
    if "://" not in path:
        return prefix + path
    root = path.rstrip("/")
    return root.removesuffix("/v1") + prefix + ("/v1" if root.endswith("/v1") else "")


def split_rollout_prefix(path: str) -> tuple[RolloutContext | None, str]:
    """Return the rollout that `path` names, if any, and the path without it."""
    match = _PREFIXED.fullmatch(path)
    if match is None:
        return None, path
    return RolloutContext(match["id"], match["capture"] is not None), match["rest"] or "/"


def rollout_id_from_run(body: BaseModel | Mapping[str, object]) -> str | None:
    """Return the capture key of the attempt that a `/run` or `/verify` body names, or None when it names none.

    Raises:
        InputError: the body's explicit id may not name a rollout.

    """
    if isinstance(body, Mapping):
        return maybe_rollout_id(body)
    extra = body.model_extra
    keys = extra if isinstance(extra, Mapping) else {}
    explicit = getattr(body, "capture_rollout_id", None)
    return maybe_rollout_id({**keys, ROLLOUT_ID_KEY_NAME: explicit} if isinstance(explicit, str) else keys)


maybe_rollout_id_from_run_body = rollout_id_from_run


class RolloutContextMiddleware:
    """Strips `/ng-rollout/<id>[/training-token-capture]` from a request's path and serves it inside that rollout.

    A request without the prefix is served inside the rollout that its `X-Rollout-Id` header names, if any.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        named, path = context_of(scope)
        if path != scope["path"]:
            scope = {**scope, "path": path, "raw_path": path.encode(), "path_params": path_params_of(named)}
        with within(named):
            await self.app(scope, receive, send)


def path_params_of(named: RolloutContext | None) -> dict[str, str]:
    """Return what a request behind a rollout's prefix finds in its path: `rollout_id`, like a route's parameter."""
    return {} if named is None else {"rollout_id": named.rollout_id}


def context_of(scope: Scope) -> tuple[RolloutContext | None, str]:
    """Return the rollout that a request is made for, by its path or else by its header, and the path behind it."""
    said = (value for name, value in scope["headers"] if name == ROLLOUT_ID_HEADER_BYTES)
    return named_context(scope["path"], next(said, None))


def named_context(path: str, said: bytes | None) -> tuple[RolloutContext | None, str]:
    """Return the same for a request to `path` whose header says `said`."""
    context = None
    if path.startswith(ROLLOUT_PATH_PREFIX):
        context, path = split_rollout_prefix(path)
    return (context or _named_by_header(said) if said is not None else context), path


@lru_cache(maxsize=1024)
def _named_by_header(said: bytes) -> RolloutContext | None:
    text = said.decode("latin-1")
    return RolloutContext(text) if _ROLLOUT_ID.fullmatch(text) else None
