"""An office of mails, a calendar, files and customers: the reward is 1 when it ends as the expected calls leave it.

Rules:
* Each session has an office of its own; what a tool cannot do it says, and changes nothing. Of sessions that nobody
  verifies, those used last are kept.
* The state is judged by playing the response's calls again, so that a saved response can be verified anywhere.
* A row whose expected calls fail is no measure: its reward is masked.
"""

from typing import Any, ClassVar, Final

from fastapi import FastAPI, Request
from pydantic import BaseModel, ConfigDict, Field

from resources_servers.office.records import Office, opened
from resources_servers.office.tools import TOOLS
from resources_servers.office.verifying import after, differences, done, read
from rollbook import (
    SESSION_ID_KEY,
    VERIFIER_ERROR,
    BaseResourcesServerConfig,
    BaseRunRequest,
    BaseSeedSessionRequest,
    BaseSeedSessionResponse,
    BaseVerifyRequest,
    BaseVerifyResponse,
    ReverifyMode,
    SimpleResourcesServer,
)

MOST_OFFICES: Final = 4096


class OfficeConfig(BaseResourcesServerConfig):
    """Nothing but what every resources server has."""

    REVERIFY_MODE: ClassVar[ReverifyMode] = ReverifyMode.STATELESS


class ExpectedCall(BaseModel):
    """A call that does what the row asks for."""

    name: str
    arguments: dict[str, Any] = Field(default_factory=dict)


class OfficeRunRequest(BaseRunRequest):
    """A row: the calls that do what it asks for, and the fields whose words are the model's own."""

    model_config = ConfigDict(extra="allow")

    expected_calls: list[ExpectedCall]
    free_fields: list[str] = Field(default_factory=list)


class OfficeVerifyRequest(OfficeRunRequest, BaseVerifyRequest):
    """A row with its response."""


class OfficeVerifyResponse(BaseVerifyResponse):
    """The row with its reward, and in what the office differs from the expected one."""

    model_config = ConfigDict(extra="allow")

    differences: list[str]


class OfficeResourcesServer(SimpleResourcesServer):
    """Keeps an office for each session."""

    config: OfficeConfig
    offices: dict[str, Office] = Field(default_factory=dict)

    def setup_webserver(self) -> FastAPI:
        """Return the application with a route for every tool."""
        app = super().setup_webserver()
        for name in TOOLS:
            app.post(f"/{name}", name=name)(self._tool(name))
        return app

    async def seed_session(self, request: Request, body: BaseSeedSessionRequest) -> BaseSeedSessionResponse:
        """Give the session an office as every session finds it."""
        del body
        self._keep(request.session[SESSION_ID_KEY], opened())
        return BaseSeedSessionResponse()

    async def verify(self, request: Request, body: OfficeVerifyRequest) -> OfficeVerifyResponse:
        """Return the row with reward 1 or 0; masked when its expected calls fail. The session's office is dropped."""
        self.offices.pop(request.session[SESSION_ID_KEY], None)
        row = dict(body)
        office = opened()
        for call in body.expected_calls:
            answer = done(office, call.name, call.arguments)
            if "error" in answer:
                failure = {"mask_sample": True, "failure_kind": VERIFIER_ERROR}
                reason = {"failure_reason": f"expected_calls: {call.name}: {answer['error']}", "differences": []}
                return OfficeVerifyResponse(**(row | {"reward": 0.0} | failure | reason))
        made = [(item.name, read(item.arguments)) for item in body.response.output if item.type == "function_call"]
        found = differences(after(made), office, frozenset(body.free_fields))
        return OfficeVerifyResponse(**(row | {"reward": float(not found), "differences": found}))

    def _tool(self, name: str) -> Any:
        async def call(request: Request, arguments: dict[str, Any]) -> dict[str, Any]:
            session_id = request.session[SESSION_ID_KEY]
            kept = self.offices.pop(session_id, None)
            office = self._keep(session_id, kept or opened())
            return done(office, name, arguments)

        call.__doc__ = TOOLS[name].arguments.__doc__
        return call

    def _keep(self, session_id: str, office: Office) -> Office:
        self.offices[session_id] = office
        if len(self.offices) > MOST_OFFICES:
            del self.offices[next(iter(self.offices))]
        return office


def tool_definitions() -> list[dict[str, Any]]:
    """Return the tools as a row's `responses_create_params.tools` has them."""
    return [
        {
            "type": "function",
            "name": name,
            "description": tool.arguments.__doc__,
            "parameters": tool.arguments.model_json_schema(),
            "strict": False,
        }
        for name, tool in TOOLS.items()
    ]


if __name__ == "__main__":
    OfficeResourcesServer.run_webserver()
