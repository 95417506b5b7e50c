"""The agent sessions of one process: what opens and closes them, and who is refused.

Rules:
* One lock a session: seeding, answering and closing never overlap.
* The same seed or close may come again and changes nothing; a different one under the same id is 409.
* A closed session leaves a receipt for a while: a close that comes again is answered from it, a late seed is refused.
* An open session has no end of its own, and no number of them closes one that may be in use: whoever seeds closes. What
  a client leaves open when it is killed stays, with what its agent holds for it, until the server ends.
* A clean-up that fails keeps its state, so that closing can be tried again; nothing else is done with that session.
* Past its receipt a cookie proves a session that is gone, and is 409.

Source: servers.md §3.8.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Final

from fastapi import HTTPException
from pydantic import BaseModel, ConfigDict, Field

from rollbook.records.episode_models import EpisodeId, TaskId
from rollbook.sandbox.access import SandboxAccess
from rollbook.servers.kinds.observations import AgentObservationBundle
from rollbook.servers.kinds.tool_access import ToolAccesses

AGENT_SESSION_ID_KEY: Final = "agent_session_id"
_CONFLICT: Final = 409


class AgentSeedSessionRequest(BaseModel):
    """Opens an agent session for one episode, with what the agent may use."""

    model_config = ConfigDict(extra="forbid")

    agent_session_id: str = Field(min_length=1)
    episode_id: EpisodeId
    task_id: TaskId
    tool_accesses: ToolAccesses = Field(default_factory=list)
    sandbox_access: SandboxAccess | None = None


class AgentSeedSessionResponse(BaseModel):
    """An open agent session."""

    agent_session_id: str


class AgentCloseSessionRequest(BaseModel):
    """Closes an agent session."""

    model_config = ConfigDict(extra="forbid")

    agent_session_id: str = Field(min_length=1)
    episode_id: EpisodeId


class AgentCloseSessionResponse(BaseModel):
    """A closed agent session, what it saw, and the cookies that its tool calls ended with."""

    agent_session_id: str
    agent_observations: AgentObservationBundle | None = None
    resources_cookies: dict[str, str] | None = None


@dataclass(slots=True)
class AgentSessionState:
    """What an agent keeps for one session; an agent subclasses it for more."""

    request: AgentSeedSessionRequest

    @property
    def agent_session_id(self) -> str:
        """The session's id."""
        return self.request.agent_session_id


class AgentSessionSetupError(Exception):
    """Raised by a seed hook that failed half way: `state` is kept for a later close, `error` is reported."""

    def __init__(self, state: AgentSessionState, error: BaseException) -> None:
        super().__init__(str(error))
        self.state = state
        self.error = error


@dataclass(eq=False, slots=True)
class _Session:
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    request: AgentSeedSessionRequest | None = None
    state: AgentSessionState | None = None
    half_open: bool = False
    closing: bool = False
    closed_for: EpisodeId | None = None
    receipt: AgentCloseSessionResponse | None = None

    @property
    def is_blank(self) -> bool:
        return self.request is None and self.receipt is None

    def refuse_unless_open(self, name: str) -> None:
        if self.receipt is not None:
            raise _conflict(name, "is closed")
        if self.closing:
            raise _conflict(name, "is closing")
        if self.half_open:
            raise _conflict(name, "could not be set up whole; close it")

    def refuse_other_episode(self, name: str, episode: EpisodeId) -> None:
        owner = self.request.episode_id if self.request else self.closed_for
        if owner is not None and owner != episode:
            raise _conflict(name, "belongs to another episode")


Seed = Callable[[AgentSeedSessionRequest], Awaitable[AgentSessionState]]
Close = Callable[[AgentSessionState], Awaitable[AgentCloseSessionResponse]]


class AgentSessions:
    """Sessions by id. `receipt_seconds` is how long a closed one is remembered; `now` gives seconds."""

    def __init__(self, receipt_seconds: float, now: Callable[[], float] = time.monotonic) -> None:
        self._receipt_seconds = receipt_seconds
        self._now = now
        self._sessions: dict[str, _Session] = {}
        self._receipts: dict[str, float] = {}

    async def seed(self, cookie: str | None, body: AgentSeedSessionRequest, hook: Seed) -> None:
        """Open a session with what `hook` returns; one that is open with the same body stays as it is.

        `cookie` is the session id that the request's cookie is bound to.

        Raises:
            HTTPException: 409; see the module's rules.

        """
        name = body.agent_session_id
        self._refuse_cookie(cookie, name)
        if name in self._sessions:
            self._sessions[name].refuse_unless_open(name)
        async with self._held(name) as session:
            session.refuse_unless_open(name)
            if session.request is None:
                await _set_up(session, body, hook)
            elif session.request != body:
                raise _conflict(name, "was seeded with another body")

    async def close(self, cookie: str | None, body: AgentCloseSessionRequest, hook: Close) -> AgentCloseSessionResponse:
        """Close a session with `hook` and return its receipt; an id that was never seeded is closed from now on.

        Raises:
            HTTPException: 409; see the module's rules.

        """
        name = body.agent_session_id
        self._refuse_cookie(cookie, name)
        known = self._sessions.get(name)
        if known is not None:
            known.refuse_other_episode(name, body.episode_id)
            known.closing = True
        async with self._held(name) as session:
            session.refuse_other_episode(name, body.episode_id)
            if session.receipt is None:
                session.closing = True
                self._keep_receipt(session, body, await _cleaned_up(session, body, hook))
            return session.receipt or AgentCloseSessionResponse(agent_session_id=name)

    def active(self, cookie: str | None) -> AbstractAsyncContextManager[AgentSessionState | None]:
        """Hold the session that `cookie` is bound to, and give its state; None for a request outside of a session.

        Raises:
            HTTPException: 409; the session is closed, closing, half set up, or forgotten.

        """
        return nullcontext() if cookie is None else self._open(cookie)

    @asynccontextmanager
    async def _open(self, cookie: str) -> AsyncIterator[AgentSessionState]:
        self._refuse_cookie(cookie, cookie)
        self._sessions[cookie].refuse_unless_open(cookie)
        async with self._held(cookie) as session:
            session.refuse_unless_open(cookie)
            if session.state is None:
                raise _conflict(cookie, "is gone")
            yield session.state

    def open_state(self, name: str) -> AgentSessionState:
        """Return the state of an open session, which may be closed while it is used.

        Raises:
            HTTPException: 409; the session is closed, closing, half set up, or forgotten.

        """
        self._refuse_cookie(name, name)
        session = self._sessions[name]
        session.refuse_unless_open(name)
        if session.state is None:
            raise _conflict(name, "is gone")
        return session.state

    def _refuse_cookie(self, cookie: str | None, name: str) -> None:
        self._forget_old_receipts()
        if cookie is None:
            return
        if cookie != name:
            raise _conflict(name, f"is not the one of this cookie, which is bound to {cookie!r}")
        if cookie not in self._sessions:
            raise _conflict(name, "is gone: its receipt has expired, or the server was started again")

    def _forget_old_receipts(self) -> None:
        """Forget receipts past their time; they stand in the order in which they end."""
        now = self._now()
        while self._receipts:
            name, end = next(iter(self._receipts.items()))
            if end > now:
                return
            del self._receipts[name]
            del self._sessions[name]

    def _keep_receipt(
        self, session: _Session, body: AgentCloseSessionRequest, receipt: AgentCloseSessionResponse
    ) -> None:
        session.receipt = receipt
        session.closed_for = body.episode_id
        session.request = session.state = None
        self._receipts[body.agent_session_id] = self._now() + self._receipt_seconds

    @asynccontextmanager
    async def _held(self, name: str) -> AsyncIterator[_Session]:
        """Hold the lock of `name`; a session that nothing was put into is forgotten again."""
        while True:
            session = self._sessions.setdefault(name, _Session())
            async with session.lock:
                if self._sessions.get(name) is not session:
                    continue
                try:
                    yield session
                finally:
                    if session.is_blank:
                        del self._sessions[name]
                return


async def _set_up(session: _Session, body: AgentSeedSessionRequest, hook: Seed) -> None:
    session.request = body
    try:
        session.state = await hook(body)
    except AgentSessionSetupError as half:
        session.state = half.state
        session.half_open = True
        raise half.error from half
    except BaseException:
        session.request = None
        raise


async def _cleaned_up(session: _Session, body: AgentCloseSessionRequest, hook: Close) -> AgentCloseSessionResponse:
    if session.state is None:
        return AgentCloseSessionResponse(agent_session_id=body.agent_session_id)
    return await hook(session.state)


def _conflict(name: str, what: str) -> HTTPException:
    return HTTPException(_CONFLICT, f"agent session {name!r} {what}")
