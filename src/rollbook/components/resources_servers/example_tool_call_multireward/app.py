"""One tool call, rewarded in three parts: that it is right, that it is valid, and that it stands alone.

Rules:
* Each part is worth 1, the reward is their sum; all parts are in the result, for training on them one by one.
* Right: some call has the expected name and, among its arguments, the expected ones.
* Valid: some call has every argument that the row's tool requires. Alone: one call, and no message beside it.

Source: servers.md §3.7, §7.3 (18).
"""

from collections.abc import Sequence
from typing import Any, ClassVar, Final

from fastapi import FastAPI
from pydantic import BaseModel, ConfigDict

from rollbook import (
    BaseMultiRewardVerifyResponse,
    BaseResourcesServerConfig,
    BaseRunRequest,
    BaseVerifyRequest,
    NeMoGymResponse,
    ReverifyMode,
    SimpleResourcesServer,
    untrusted_json,
)

TOOL: Final = "get_weather"
PARTS: Final = ("correctness", "schema_valid", "format")


class ToolCallMultiRewardConfig(BaseResourcesServerConfig):
    """Nothing but what every resources server has."""

    REVERIFY_MODE: ClassVar[ReverifyMode] = ReverifyMode.STATELESS


class GetWeatherRequest(BaseModel):
    """The arguments of the tool."""

    city: str


class GetWeatherResponse(BaseModel):
    """What the tool says of a city."""

    city: str
    weather_description: str


class Call(BaseModel):
    """A call of a tool; arguments that are no JSON object are none."""

    name: str
    arguments: dict[str, Any] = {}


class ToolCallMultiRewardRunRequest(BaseRunRequest):
    """A row: the call that it expects."""

    model_config = ConfigDict(extra="allow")

    expected_call: Call | None = None


class ToolCallMultiRewardVerifyRequest(ToolCallMultiRewardRunRequest, BaseVerifyRequest):
    """A row with its response."""


class ToolCallMultiRewardVerifyResponse(BaseMultiRewardVerifyResponse):
    """The row with its reward, the three parts of it, and the calls that were made."""

    model_config = ConfigDict(extra="allow")

    correctness: float
    schema_valid: float
    format: float
    predicted_calls: list[Call]


class ToolCallMultiRewardResourcesServer(SimpleResourcesServer):
    """Serves the weather, and rewards those who ask for it well."""

    config: ToolCallMultiRewardConfig

    def setup_webserver(self) -> FastAPI:
        """Return the application with the tool's route."""
        app = super().setup_webserver()
        app.post(f"/{TOOL}")(self.get_weather)
        return app

    async def get_weather(self, body: GetWeatherRequest) -> GetWeatherResponse:
        """Return the weather of a city: it is sunny."""
        return GetWeatherResponse(city=body.city, weather_description=f"The weather in {body.city} is sunny.")

    async def verify(self, body: ToolCallMultiRewardVerifyRequest) -> ToolCallMultiRewardVerifyResponse:
        """Return the row with its parts and their sum, 0 to 3."""
        calls = calls_of(body.response)
        spoken = any(item.type == "message" for item in body.response.output)
        values = (
            is_right(calls, body.expected_call),
            is_valid(calls, required_of(body)),
            len(calls) == 1 and not spoken,
        )
        parts = dict(zip(PARTS, map(float, values), strict=True))
        found = parts | {"reward": sum(parts.values()), "reward_components": parts, "predicted_calls": calls}
        row = dict(body)
        return ToolCallMultiRewardVerifyResponse(**(row | found))


def calls_of(response: NeMoGymResponse) -> list[Call]:
    """Return the calls that a response made."""
    return [
        Call(name=item.name, arguments=arguments_in(item.arguments))
        for item in response.output
        if item.type == "function_call"
    ]


def arguments_in(text: str) -> dict[str, Any]:
    """Return the arguments that a call's text holds, none when it is no JSON object."""
    try:
        found = untrusted_json(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def required_of(body: ToolCallMultiRewardVerifyRequest) -> list[str]:
    """Return the arguments that the row's first tool requires."""
    tools = body.responses_create_params.model_dump()["tools"]
    schema = next((tool["parameters"] for tool in tools if tool["type"] == "function"), None) or {}
    return [str(name) for name in schema.get("required", ["city"])]


def is_right(calls: Sequence[Call], expected: Call | None) -> bool:
    """Return whether some call is the expected one."""
    return expected is not None and any(
        call.name == expected.name and expected.arguments.items() <= call.arguments.items() for call in calls
    )


def is_valid(calls: Sequence[Call], required: Sequence[str]) -> bool:
    """Return whether some call has every argument that is required."""
    return any(all(name in call.arguments for name in required) for call in calls)


if __name__ == "__main__":
    ToolCallMultiRewardResourcesServer.run_webserver()
