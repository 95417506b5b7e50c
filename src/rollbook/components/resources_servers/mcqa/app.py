"""Multiple-choice questions: the reward is 1 when the letter that the model chose is the row's.

Rules:
* The configuration's grading mode beats the row's; a row without one is graded strictly.
* A row whose own pattern does not compile cannot be graded: its reward is masked, whatever the response says.

Source: servers.md §7.3 (1).
"""

import re
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field

from resources_servers.mcqa.grading import GradingMode, Question, chosen_letter, compiled_patterns, option_texts
from resources_servers.mcqa.votes import key_votes, votes
from rollbook import (
    VERIFIER_ERROR,
    BaseResourcesServerConfig,
    BaseRunRequest,
    BaseVerifyRequest,
    BaseVerifyResponse,
    ReverifyMode,
    SimpleResourcesServer,
)


class MCQAResourcesServerConfig(BaseResourcesServerConfig):
    """`grading_mode`, when given, is used for every row."""

    REVERIFY_MODE: ClassVar[ReverifyMode] = ReverifyMode.STATELESS

    grading_mode: GradingMode | None = None


class TemplateMetadata(BaseModel):
    """How the row's own prompt asks for the answer."""

    model_config = ConfigDict(extra="allow")

    output_regex: str | list[str] | None = None
    answer_prefix: str | None = None


class MCQARunRequest(BaseRunRequest):
    """A row: `options` is a list of `{letter: text}`."""

    model_config = ConfigDict(extra="allow")

    options: list[dict[str, str | None]] = Field(default_factory=list)
    expected_answer: str
    grading_mode: GradingMode | None = None
    template_metadata: TemplateMetadata | None = None


class MCQAVerifyRequest(MCQARunRequest, BaseVerifyRequest):
    """A row with its response."""


class MCQAVerifyResponse(BaseVerifyResponse):
    """The row with its reward and the letter that was found, null when none was."""

    model_config = ConfigDict(extra="allow")

    expected_answer: str
    extracted_answer: str | None = None


class MCQAResourcesServer(SimpleResourcesServer):
    """Grades multiple-choice answers."""

    config: MCQAResourcesServerConfig

    async def verify(self, body: MCQAVerifyRequest) -> MCQAVerifyResponse:
        """Return the row with reward 1 or 0; masked when the row's own pattern does not compile."""
        template = body.template_metadata or TemplateMetadata()
        row = dict(body)
        try:
            patterns = compiled_patterns(template.output_regex)
        except re.error as error:
            reason = (
                f"template_metadata.output_regex: {error.pattern!r} is no regular expression: {error}; mend the row"
            )
            mask = {"mask_sample": True, "failure_kind": VERIFIER_ERROR, "failure_reason": reason}
            return MCQAVerifyResponse(**(row | {"reward": 0.0, "extracted_answer": None} | mask))
        question = Question(option_texts(body.options), patterns, template.answer_prefix)
        mode = self.config.grading_mode or body.grading_mode or GradingMode.STRICT_SINGLE_LETTER_BOXED
        letter = chosen_letter(body.response.output_text, question, mode)
        right = letter == body.expected_answer.strip().upper()
        return MCQAVerifyResponse(**(row | {"reward": float(right), "extracted_answer": letter}))

    def compute_metrics(self, tasks: list[list[dict[str, Any]]]) -> dict[str, Any]:
        """Return pass@k, pass@1 averages and majority votes over the extracted letters, in percent."""
        return votes(tasks)

    def get_key_metrics(self, agent_metrics: dict[str, Any]) -> dict[str, Any]:
        """Return the means, and the pass and majority metrics at the largest k."""
        return key_votes(agent_metrics)


if __name__ == "__main__":
    MCQAResourcesServer.run_webserver()
