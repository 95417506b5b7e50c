"""One tool, `get_weather`: the reward is 1 when the model called it.

Rules:
* The weather of a city depends on its name alone: nothing is kept between calls, in either kind of session.
* That the tool was called is read off the response; what was asked of it does not matter.

Source: servers.md §7.3 (15).
"""

from typing import ClassVar, Final

from fastapi import FastAPI
from pydantic import BaseModel, ConfigDict

from rollbook import (
    BaseResourcesServerConfig,
    BaseVerifyRequest,
    BaseVerifyResponse,
    ReverifyMode,
    SimpleResourcesServer,
)

TOOL: Final = "get_weather"


class SingleToolCallConfig(BaseResourcesServerConfig):
    """Nothing but what every resources server has."""

    REVERIFY_MODE: ClassVar[ReverifyMode] = ReverifyMode.STATELESS


class GetWeatherRequest(BaseModel):
    """The arguments of the tool."""

    city: str


class GetWeatherResponse(BaseModel):
    """What the tool says of a city."""

    city: str
    weather_description: str


class SingleToolCallVerifyResponse(BaseVerifyResponse):
    """The row with its reward."""

    model_config = ConfigDict(extra="allow")


class SingleToolCallVerifyRequest(BaseVerifyRequest):
    """A row with its response, whatever else it carries."""

    model_config = ConfigDict(extra="allow")


class SingleToolCallResourcesServer(SimpleResourcesServer):
    """Serves the weather, and rewards those who ask for it."""

    config: SingleToolCallConfig

    def setup_webserver(self) -> FastAPI:
        """Return the application with the tool's route."""
        app = super().setup_webserver()
        app.post(f"/{TOOL}")(self.get_weather)
        return app

    async def get_weather(self, body: GetWeatherRequest) -> GetWeatherResponse:
        """Return the weather of a city: it is cold."""
        return GetWeatherResponse(city=body.city, weather_description=f"The weather in {body.city} is cold.")

    async def verify(self, body: SingleToolCallVerifyRequest) -> SingleToolCallVerifyResponse:
        """Return the row with reward 1 when its response calls the tool, else 0."""
        called = any(item.type == "function_call" and item.name == TOOL for item in body.response.output)
        row = {**vars(body), **(body.model_extra or {})}
        return SingleToolCallVerifyResponse(**row | {"reward": float(called)})


if __name__ == "__main__":
    SingleToolCallResourcesServer.run_webserver()
