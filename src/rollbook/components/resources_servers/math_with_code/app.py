r"""Mathematics with a Python tool: the reward is 1 when the boxed answer is the row's.

Rules:
* Each session has a Python of its own that keeps its variables from call to call, in a sandbox with limits.
* Whatever code does is an answer of the tool: a call that took too long, died or printed without end says so.
* A session's program ends when its row is verified, when the session ends and when the server stops.
* The verdict asks the response alone, so that a saved response can be verified anywhere.

Source: servers.md §7.3 (3).
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, ClassVar

from fastapi import FastAPI, Request
from pydantic import BaseModel, ConfigDict, Field, PrivateAttr

from resources_servers.math_with_code.answers import equal, found_answer
from resources_servers.math_with_code.sessions import Limits, Ran, Sessions
from resources_servers.mcqa.votes import key_votes, votes
from rollbook import (
    SESSION_ID_KEY,
    BaseResourcesServerConfig,
    BaseRunRequest,
    BaseVerifyRequest,
    BaseVerifyResponse,
    ReverifyMode,
    SimpleResourcesServer,
)


class MathWithCodeConfig(BaseResourcesServerConfig):
    """The limits of a session's Python; the README tells of each."""

    REVERIFY_MODE: ClassVar[ReverifyMode] = ReverifyMode.STATELESS

    max_execution_time: float = Field(default=10, gt=0)
    max_session_s: float = Field(default=3600, gt=0)
    memory_mib: int = Field(default=2048, ge=64)
    max_output_chars: int = Field(default=20_000, ge=1)
    max_sessions: int = Field(default=64, ge=1)
    sandbox: dict[str, Any] | None = None


class MathWithCodeRunRequest(BaseRunRequest):
    """A row: the expected answer."""

    model_config = ConfigDict(extra="allow")

    expected_result: str


class MathWithCodeVerifyRequest(MathWithCodeRunRequest, BaseVerifyRequest):
    """A row with its response."""


class MathWithCodeVerifyResponse(BaseVerifyResponse):
    """The row with its reward and the answer that was found, null when none was."""

    model_config = ConfigDict(extra="allow")

    extracted_answer: str | None
    accuracy: bool


class ExecutePythonRequest(BaseModel):
    """Execute Python code; variables stay for the next call."""

    code: str


class EndSessionRequest(BaseModel):
    """End the session's Python; its variables are gone."""


class MathWithCodeResourcesServer(SimpleResourcesServer):
    """Runs Python for sessions and verifies their answers."""

    config: MathWithCodeConfig

    _sessions: Sessions | None = PrivateAttr(default=None)

    @property
    def sessions(self) -> Sessions:
        """The sessions of this server."""
        if self._sessions is None:
            config = self.config
            self._sessions = Sessions(
                Limits(
                    call_s=config.max_execution_time,
                    life_s=config.max_session_s,
                    memory_mib=config.memory_mib,
                    output_chars=config.max_output_chars,
                    sessions=config.max_sessions,
                    provider=config.sandbox,
                )
            )
        return self._sessions

    def setup_webserver(self) -> FastAPI:
        """Return the application with the routes of the tool."""
        app = super().setup_webserver()
        app.post("/execute_python")(self.execute_python)
        app.post("/end_session")(self.end_session)
        app.router.lifespan_context = self._lifespan
        return app

    async def execute_python(self, request: Request, body: ExecutePythonRequest) -> Ran:
        """Execute Python code and return what it printed and what its last expression stands for."""
        return await self.sessions.run(request.session[SESSION_ID_KEY], body.code)

    async def end_session(self, request: Request, body: EndSessionRequest) -> Ran:
        """End the session's Python; its variables are gone."""
        del body
        await self.sessions.end(request.session[SESSION_ID_KEY])
        return Ran(success=True)

    async def verify(self, request: Request, body: MathWithCodeVerifyRequest) -> MathWithCodeVerifyResponse:
        """Return the row with reward 1 or 0. The session's Python ends."""
        try:
            answer = found_answer(body.response)
            right = answer is not None and equal(answer, body.expected_result)
        finally:
            await self.sessions.end(request.session[SESSION_ID_KEY])
        row = body.model_dump(exclude={"response"}) | {"response": body.response}
        found = {"reward": float(right), "extracted_answer": answer, "accuracy": right}
        return MathWithCodeVerifyResponse(**(row | found))

    def compute_metrics(self, tasks: list[list[dict[str, Any]]]) -> dict[str, Any]:
        """Return pass@k, pass@1 averages and majority votes over the boxed answers, in percent."""
        return votes(tasks)

    def get_key_metrics(self, agent_metrics: dict[str, Any]) -> dict[str, Any]:
        """Return the means, and the pass and majority metrics at the largest k."""
        return key_votes(agent_metrics)

    @asynccontextmanager
    async def _lifespan(self, _app: FastAPI) -> AsyncIterator[None]:
        try:
            yield
        finally:
            await self.sessions.close()


if __name__ == "__main__":
    MathWithCodeResourcesServer.run_webserver()
