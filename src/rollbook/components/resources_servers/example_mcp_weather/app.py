"""A weather tool that is served over MCP too: the reward is 1 when the right city was asked for, and its weather told.

Rules:
* What was asked is known from the session alone, whichever door a call came through; what a response says of its calls
  counts for nothing.
* Capitals do not matter, neither in the city nor in the sentence.
* Of sessions, those used last are kept; seeding one forgets what was asked in it.

Source: servers.md §7.3 (19), §8.6.
"""

from typing import ClassVar, Final

from fastapi import FastAPI, Request
from pydantic import BaseModel, ConfigDict, Field, PrivateAttr

from rollbook import (
    SESSION_ID_KEY,
    BaseResourcesServerConfig,
    BaseRunRequest,
    BaseSeedSessionRequest,
    BaseSeedSessionResponse,
    BaseVerifyRequest,
    BaseVerifyResponse,
    ReverifyMode,
    SimpleResourcesServer,
)

TOOL: Final = "get_weather"
MOST_SESSIONS: Final = 4096


class McpWeatherConfig(BaseResourcesServerConfig):
    """Nothing but what every resources server has."""

    REVERIFY_MODE: ClassVar[ReverifyMode] = ReverifyMode.UNSUPPORTED


class GetWeatherRequest(BaseModel):
    """The arguments of the tool."""

    city: str = Field(max_length=200)


class GetWeatherResponse(BaseModel):
    """What the tool says of a city."""

    weather: str


class VerifierMetadata(BaseModel):
    """The city that the row asks for."""

    model_config = ConfigDict(extra="allow")

    expected_city: str


class McpWeatherRunRequest(BaseRunRequest):
    """A row."""

    model_config = ConfigDict(extra="allow")

    verifier_metadata: VerifierMetadata


class McpWeatherVerifyRequest(McpWeatherRunRequest, BaseVerifyRequest):
    """A row with its response."""


class McpWeatherVerifyResponse(BaseVerifyResponse):
    """The row with its reward, and which of its two halves was met."""

    model_config = ConfigDict(extra="allow")

    expected_weather: str
    tool_call_seen: bool
    final_response_mentions_weather: bool


class McpWeatherResourcesServer(SimpleResourcesServer):
    """Serves the weather, and remembers which cities each session asked for."""

    config: McpWeatherConfig

    _asked: dict[str, set[str]] = PrivateAttr(default_factory=dict)

    def setup_webserver(self) -> FastAPI:
        """Return the application with the tool's route."""
        app = super().setup_webserver()
        app.post(f"/{TOOL}")(self.get_weather)
        return app

    async def seed_session(self, request: Request, body: BaseSeedSessionRequest) -> BaseSeedSessionResponse:
        """Begin a session in which nothing was asked."""
        del body
        self._keep(request.session[SESSION_ID_KEY], set())
        return BaseSeedSessionResponse()

    async def get_weather(self, request: Request, body: GetWeatherRequest) -> GetWeatherResponse:
        """Return the weather of a city."""
        session_id = request.session[SESSION_ID_KEY]
        cities = self._asked.get(session_id, set())
        cities.add(body.city.casefold())
        self._keep(session_id, cities)
        return GetWeatherResponse(weather=weather_of(body.city))

    async def verify(self, request: Request, body: McpWeatherVerifyRequest) -> McpWeatherVerifyResponse:
        """Return the row with reward 1 when the tool was asked of its city and the text says the answer, else 0."""
        city = body.verifier_metadata.expected_city
        was_asked = city.casefold() in self._asked.get(request.session[SESSION_ID_KEY], ())
        is_said = weather_of(city).casefold() in body.response.output_text.casefold()
        row = body.model_dump(exclude={"response"}) | {"response": body.response}
        found = {"tool_call_seen": was_asked, "final_response_mentions_weather": is_said}
        reward = float(was_asked and is_said)
        return McpWeatherVerifyResponse(**(row | found | {"expected_weather": weather_of(city), "reward": reward}))

    def _keep(self, session_id: str, cities: set[str]) -> None:
        self._asked.pop(session_id, None)
        self._asked[session_id] = cities
        if len(self._asked) > MOST_SESSIONS:
            del self._asked[next(iter(self._asked))]


def weather_of(city: str) -> str:
    """Return what the tool says of a city."""
    return f"The weather in {city} is sunny and 72 F."


if __name__ == "__main__":
    McpWeatherResourcesServer.run_webserver()
