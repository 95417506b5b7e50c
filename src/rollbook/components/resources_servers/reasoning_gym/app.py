"""Generated reasoning puzzles: the reward is the score that the puzzle's own generator gives.

Rules:
* Scoring runs in a thread: some score functions take their time.
* A row that names no generator, or one that does not exist, is an error and no zero.

Source: servers.md §7.3 (7).
"""

import asyncio
from typing import Any, ClassVar

from fastapi import FastAPI
from pydantic import ConfigDict, Field

from resources_servers.reasoning_gym.scoring import extracted_answer, require_generators, score_of
from rollbook import (
    BaseResourcesServerConfig,
    BaseRunRequest,
    BaseVerifyRequest,
    BaseVerifyResponse,
    ReverifyMode,
    SimpleResourcesServer,
)


class ReasoningGymConfig(BaseResourcesServerConfig):
    """Nothing to configure."""

    REVERIFY_MODE: ClassVar[ReverifyMode] = ReverifyMode.STATELESS


class ReasoningGymRunRequest(BaseRunRequest):
    """A row: an entry of a generated data set, whose `metadata.source_dataset` names the generator."""

    model_config = ConfigDict(extra="allow")

    question: str
    answer: str | None = None
    metadata: dict[str, Any] = Field(default_factory=dict)


class ReasoningGymVerifyRequest(ReasoningGymRunRequest, BaseVerifyRequest):
    """A row with its response."""


class ReasoningGymVerifyResponse(BaseVerifyResponse):
    """The row with its reward, which is the score."""

    model_config = ConfigDict(extra="allow")

    task_name: str
    score: float
    extracted_answer: str


class ReasoningGymResourcesServer(SimpleResourcesServer):
    """Scores answers to generated puzzles."""

    config: ReasoningGymConfig

    def setup_webserver(self) -> FastAPI:
        """Return the application.

        Raises:
            MissingPackageError: the generators are not installed.

        """
        require_generators()
        return super().setup_webserver()

    async def verify(self, body: ReasoningGymVerifyRequest) -> ReasoningGymVerifyResponse:
        """Return the row with its score.

        Raises:
            ValueError: the row names no generator, or one that does not exist.

        """
        name = body.metadata.get("source_dataset")
        if not isinstance(name, str) or not name:
            raise ValueError("the row has no metadata.source_dataset, which names the generator that scores it")
        answer = extracted_answer(body.response.output_text)
        entry = {"question": body.question, "answer": body.answer, "metadata": body.metadata}
        score = await asyncio.to_thread(score_of, answer, name, entry)
        found = {"reward": score, "task_name": name, "score": score, "extracted_answer": answer}
        return ReasoningGymVerifyResponse(**(dict(body) | found))


if __name__ == "__main__":
    ReasoningGymResourcesServer.run_webserver()
