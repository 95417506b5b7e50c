"""Function calls: the reward is 1 when the response makes the calls that the row expects, all of them and no others.

Rules:
* A row that expects no call is worth 1 when none is made.
* Calls are read off the response; no tool is served, and what a model says beside its calls does not matter.

Source: servers.md §7.3 (21).
"""

from typing import ClassVar

from pydantic import ConfigDict, Field

from resources_servers.xlam_fc.matching import ExpectedCall, PredictedCall, matched, predicted
from rollbook import (
    BaseResourcesServerConfig,
    BaseRunRequest,
    BaseVerifyRequest,
    BaseVerifyResponse,
    ReverifyMode,
    SimpleResourcesServer,
)


class XlamFcResourcesServerConfig(BaseResourcesServerConfig):
    """Nothing but what every resources server has."""

    REVERIFY_MODE: ClassVar[ReverifyMode] = ReverifyMode.STATELESS


class XlamFcRunRequest(BaseRunRequest):
    """A row: the calls that it expects."""

    model_config = ConfigDict(extra="allow")

    expected_answers: list[ExpectedCall] = Field(default_factory=list)


class XlamFcVerifyRequest(XlamFcRunRequest, BaseVerifyRequest):
    """A row with its response."""


class XlamFcVerifyResponse(BaseVerifyResponse):
    """The row with its reward, and how many calls were expected, made, and right."""

    model_config = ConfigDict(extra="allow")

    num_expected: int
    num_predicted: int
    num_correct: int
    predicted_calls: list[PredictedCall]


class XlamFcResourcesServer(SimpleResourcesServer):
    """Grades function calls."""

    config: XlamFcResourcesServerConfig

    async def verify(self, body: XlamFcVerifyRequest) -> XlamFcVerifyResponse:
        """Return the row with reward 1 when the calls are those expected, else 0."""
        made = [predicted(item.name, item.arguments) for item in body.response.output if item.type == "function_call"]
        correct = matched(body.expected_answers, made)
        right = correct == len(body.expected_answers) == len(made)
        found = {
            "reward": float(right),
            "num_expected": len(body.expected_answers),
            "num_predicted": len(made),
            "num_correct": correct,
            "predicted_calls": made,
        }
        return XlamFcVerifyResponse(**(body.model_dump(exclude={"response"}) | {"response": body.response} | found))


if __name__ == "__main__":
    XlamFcResourcesServer.run_webserver()
