"""Several calls, one after another: the reward is 1 when the last extraction is the expected list, in its order.

Rules:
* A synonym's value is the sum of its characters' code points: nothing is kept between calls.
* The list is the one of the last `extract_synonym_values` call. A call that cannot be read, or
  with a number that is not whole, extracts nothing and is right for no row.

Source: servers.md §7.3 (16).
"""

from typing import Annotated, ClassVar, Final

from fastapi import FastAPI
from pydantic import BaseModel, ConfigDict, Field

from rollbook import (
    BaseResourcesServerConfig,
    BaseRunRequest,
    BaseVerifyRequest,
    BaseVerifyResponse,
    NeMoGymResponse,
    ReverifyMode,
    SimpleResourcesServer,
    untrusted_json,
)

EXTRACTION: Final = "extract_synonym_values"


class ExampleMultiStepResourcesServerConfig(BaseResourcesServerConfig):
    """Nothing but what every resources server has."""

    REVERIFY_MODE: ClassVar[ReverifyMode] = ReverifyMode.STATELESS


class GetSynonymValueRequest(BaseModel):
    """The synonym to be valued."""

    synonym: str


class GetSynonymValueResponse(BaseModel):
    """What a synonym is worth."""

    synonym_value: int


class ExtractSynonymValuesRequest(BaseModel):
    """The values that the model found."""

    synonym_values: list[int]


class ExtractSynonymValuesResponse(BaseModel):
    """That they were taken."""

    success: bool


class ExtractedValues(BaseModel):
    """The arguments of an extraction: numbers, and no texts that look like some."""

    synonym_values: list[Annotated[int, Field(strict=True)] | Annotated[float, Field(strict=True)]]


class ExampleMultiStepRunRequest(BaseRunRequest):
    """A row: the synonyms of the term that fits the question, and the term itself, which is not to be valued."""

    model_config = ConfigDict(extra="allow")

    expected_synonym_values: list[int]
    expected_synonyms: list[str] = Field(default_factory=list)
    minefield_label: str | None = None
    minefield_label_value: int | None = None


class ExampleMultiStepVerifyRequest(ExampleMultiStepRunRequest, BaseVerifyRequest):
    """A row with its response."""


class ExampleMultiStepVerifyResponse(BaseVerifyResponse):
    """The row with its reward, and what was wrong."""

    model_config = ConfigDict(extra="allow")

    parsed_synonym_values: list[int]
    accuracy: bool
    set_overlap: float
    original_term_minefield_hit: bool
    order_instruction_following_failure: bool


class ExampleMultiStepResourcesServer(SimpleResourcesServer):
    """Values synonyms, and takes the values back."""

    config: ExampleMultiStepResourcesServerConfig

    def setup_webserver(self) -> FastAPI:
        """Return the application with the routes of both tools."""
        app = super().setup_webserver()
        app.post("/get_synonym_value")(self.get_synonym_value)
        app.post(f"/{EXTRACTION}")(self.extract_synonym_values)
        return app

    async def get_synonym_value(self, body: GetSynonymValueRequest) -> GetSynonymValueResponse:
        """Return the sum of the code points of a synonym."""
        return GetSynonymValueResponse(synonym_value=sum(map(ord, body.synonym)))

    async def extract_synonym_values(self, body: ExtractSynonymValuesRequest) -> ExtractSynonymValuesResponse:
        """Say that the values were taken; they are judged when the row is verified."""
        del body
        return ExtractSynonymValuesResponse(success=True)

    async def verify(self, body: ExampleMultiStepVerifyRequest) -> ExampleMultiStepVerifyResponse:
        """Return the row with reward 1 when the last extraction is the expected list, else 0."""
        expected, handed_in = body.expected_synonym_values, extracted(body.response)
        right, found = handed_in == expected, handed_in or []
        judged = {
            "reward": float(right),
            "parsed_synonym_values": found,
            "accuracy": right,
            "set_overlap": len(set(found) & set(expected)) / len(set(expected)) if expected else float(not found),
            "original_term_minefield_hit": body.minefield_label_value in found,
            "order_instruction_following_failure": not right and set(expected) <= set(found),
        }
        row = dict(body)
        return ExampleMultiStepVerifyResponse(**(row | judged))


def extracted(response: NeMoGymResponse) -> list[int] | None:
    """Return the values of the last extraction, an empty list without one; None when it is no list of whole numbers."""
    calls = [item for item in response.output if item.type == "function_call" and item.name == EXTRACTION]
    if not calls:
        return []
    try:
        arguments = ExtractedValues.model_validate(untrusted_json(calls[-1].arguments))
    except ValueError:
        return None
    whole = all(isinstance(value, int) or value.is_integer() for value in arguments.synonym_values)
    return [int(value) for value in arguments.synonym_values] if whole else None


if __name__ == "__main__":
    ExampleMultiStepResourcesServer.run_webserver()
