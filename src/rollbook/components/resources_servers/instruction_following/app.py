"""Instructions whose keeping can be checked: the reward is 1 when the response keeps all of the row's.

Rules:
* In `fraction` mode the reward is the share that is kept.
* A constraint that a response breaks so badly that it cannot be checked is not kept.
* A row that names a constraint there is not, or leaves out what one needs, cannot be graded: its reward is masked.

Source: servers.md §7.3 (5).
"""

from collections.abc import Mapping
from typing import Any, ClassVar, Final, Literal

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, model_validator

from resources_servers.instruction_following import forms, keywords, languages, lengths
from resources_servers.instruction_following.reading import Check
from rollbook import (
    VERIFIER_ERROR,
    BaseResourcesServerConfig,
    BaseRunRequest,
    BaseVerifyRequest,
    BaseVerifyResponse,
    MissingPackageError,
    NeMoGymResponse,
    ReverifyMode,
    SimpleResourcesServer,
)

CHECKS: Final[Mapping[str, Check]] = keywords.CHECKS | lengths.CHECKS | forms.CHECKS | languages.CHECKS
FIELDS: Final = ("instruction_id_list", "kwargs", "prompt", "grading_mode")


class InstructionFollowingConfig(BaseResourcesServerConfig):
    """Nothing but what every resources server has."""

    REVERIFY_MODE: ClassVar[ReverifyMode] = ReverifyMode.STATELESS


class VerifierMetadata(BaseModel):
    """The constraints of a row: `kwargs[i]` holds what `instruction_id_list[i]` needs."""

    model_config = ConfigDict(extra="allow", serialize_by_alias=True)

    instruction_id_list: list[str] = Field(min_length=1)
    options: list[dict[str, Any] | None] = Field(validation_alias=AliasChoices("kwargs"), serialization_alias="kwargs")
    prompt: str = ""
    grading_mode: Literal["binary", "fraction"] = "binary"


class InstructionFollowingRunRequest(BaseRunRequest):
    """A row; its constraints may stand at its top, as older rows have them."""

    model_config = ConfigDict(extra="allow")

    verifier_metadata: VerifierMetadata

    @model_validator(mode="before")
    @classmethod
    def _constraints_at_the_top_are_moved(cls, row: Any) -> Any:
        if not isinstance(row, dict) or row.get("verifier_metadata"):
            return row
        return row | {"verifier_metadata": {name: row[name] for name in FIELDS if name in row}}


class InstructionFollowingVerifyRequest(InstructionFollowingRunRequest, BaseVerifyRequest):
    """A row with its response."""


class InstructionFollowingVerifyResponse(BaseVerifyResponse):
    """The row with its reward, and which constraints were kept."""

    model_config = ConfigDict(extra="allow")

    follow_all_instructions: bool
    follow_instruction_list: list[bool]


class InstructionFollowingResourcesServer(SimpleResourcesServer):
    """Checks that instructions are followed."""

    config: InstructionFollowingConfig

    async def verify(self, body: InstructionFollowingVerifyRequest) -> InstructionFollowingVerifyResponse:
        """Return the row with its reward; masked when its constraints cannot be checked."""
        asked = body.verifier_metadata
        found: dict[str, Any] = {"reward": 0.0, "follow_all_instructions": False, "follow_instruction_list": []}
        try:
            kept = followed(last_text(body.response), asked)
        except (LookupError, ValueError, TypeError, AttributeError, MissingPackageError) as error:
            reason = str(error) if isinstance(error, MissingPackageError) else f"verifier_metadata: {error!r}"
            found |= {"mask_sample": True, "failure_kind": VERIFIER_ERROR, "failure_reason": reason}
        else:
            share = sum(kept) / len(kept)
            found["reward"] = share if asked.grading_mode == "fraction" else float(all(kept))
            found |= {"follow_all_instructions": all(kept), "follow_instruction_list": kept}
        row = dict(body)
        return InstructionFollowingVerifyResponse(**(row | found))


def followed(text: str, asked: VerifierMetadata) -> list[bool]:
    """Return for each constraint whether a text keeps it; an empty text keeps none.

    Raises:
        LookupError: a constraint there is not, or one without what it needs.
        ValueError: as many constraints as options there are not.

    """
    unknown = [name for name in asked.instruction_id_list if name not in CHECKS]
    if unknown:
        raise LookupError(f"no constraint {unknown[0]!r}; there are {', '.join(sorted(CHECKS))}")
    pairs = zip(asked.instruction_id_list, asked.options, strict=True)
    return [CHECKS[name](text, given(options, asked)) and bool(text.strip()) for name, options in pairs]


def given(options: Mapping[str, Any] | None, asked: VerifierMetadata) -> dict[str, Any]:
    """Return the options of a constraint that hold anything; the request is repeated where no other text is named."""
    filled = {name: value for name, value in (options or {}).items() if value is not None}
    return {"prompt_to_repeat": asked.prompt} | filled


def last_text(response: NeMoGymResponse) -> str:
    """Return the text of a response's last item."""
    return response.model_copy(update={"output": response.output[-1:]}).output_text


if __name__ == "__main__":
    InstructionFollowingResourcesServer.run_webserver()
