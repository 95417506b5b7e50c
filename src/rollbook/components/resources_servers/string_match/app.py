"""Short answers: the reward says how well the answer in the response agrees with the row's.

Rules:
* A response that gives no answer in the row's way is worth 0.
* `case_sensitive` allows nothing but the expected text itself.

Source: servers.md §7.3 (13).
"""

from typing import ClassVar

from pydantic import ConfigDict

from resources_servers.string_match.comparing import agreement
from resources_servers.string_match.extraction import ExtractionMode, extracted_answer
from rollbook import (
    BaseResourcesServerConfig,
    BaseRunRequest,
    BaseVerifyRequest,
    BaseVerifyResponse,
    ReverifyMode,
    SimpleResourcesServer,
)


class StringMatchConfig(BaseResourcesServerConfig):
    """Nothing but what every resources server has."""

    REVERIFY_MODE: ClassVar[ReverifyMode] = ReverifyMode.STATELESS


class StringMatchRunRequest(BaseRunRequest):
    """A row: the expected answer, and how it is to be given and compared."""

    model_config = ConfigDict(extra="allow")

    expected_answer: str
    extraction_mode: ExtractionMode = ExtractionMode.FINAL_ANSWER
    case_sensitive: bool = False


class StringMatchVerifyRequest(StringMatchRunRequest, BaseVerifyRequest):
    """A row with its response."""


class StringMatchVerifyResponse(BaseVerifyResponse):
    """The row with its reward and the answer that was found, null when none was."""

    model_config = ConfigDict(extra="allow")

    expected_answer: str
    extracted_answer: str | None


class StringMatchResourcesServer(SimpleResourcesServer):
    """Grades short answers."""

    config: StringMatchConfig

    async def verify(self, body: StringMatchVerifyRequest) -> StringMatchVerifyResponse:
        """Return the row with its reward: 1, 0.98 or 0."""
        answer = extracted_answer(body.response.output_text, body.extraction_mode)
        worth = 0.0
        if answer is not None:
            worth = agreement(answer, body.expected_answer, case_sensitive=body.case_sensitive)
        row = body.model_dump(exclude={"response"}) | {"response": body.response}
        return StringMatchVerifyResponse(**(row | {"reward": worth, "extracted_answer": answer}))


if __name__ == "__main__":
    StringMatchResourcesServer.run_webserver()
