r"""Mathematics: the reward is 1 when the boxed answer equals the row's, by computer algebra or by a judge model.

Rules:
* A response without a filled `\boxed{}` scores nothing, and nobody is asked.
* The judge is asked only where computer algebra does not say "equal", and must say so twice, in both orders.
* A judge that cannot be asked is no verdict: the row is masked.

Source: servers.md §7.3 (2).
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, ClassVar, Final, Self

from fastapi import FastAPI
from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, model_validator

from resources_servers.math_with_judge.judging import judge_request, says_equal
from resources_servers.math_with_judge.workers import WorkerPool, require_library
from resources_servers.mcqa.boxed import last_boxed
from resources_servers.mcqa.votes import key_votes, votes
from rollbook import (
    BaseResourcesServerConfig,
    BaseRunRequest,
    BaseVerifyRequest,
    BaseVerifyResponse,
    ModelServerRef,
    NeMoGymResponse,
    NeMoGymResponseCreateParamsNonStreaming,
    ReverifyMode,
    SimpleResourcesServer,
    call_judge,
)

_ENOUGH: Final = 0.5
_DELIMITERS: Final = (("\\(", "\\)"), ("\\[", "\\]"), ("$$", "$$"), ("$", "$"))


class MathWithJudgeConfig(BaseResourcesServerConfig):
    """How answers are compared; a judge's request is `judge_responses_create_params` with the question as its input."""

    REVERIFY_MODE: ClassVar[ReverifyMode] = ReverifyMode.STATELESS

    judge_model_server: ModelServerRef | None = None
    judge_responses_create_params: NeMoGymResponseCreateParamsNonStreaming = Field(
        default_factory=lambda: NeMoGymResponseCreateParamsNonStreaming(input=[])
    )
    should_use_judge: bool = True
    library_verifier_timeout_seconds: float = Field(default=10, gt=0)
    library_verifier_max_concurrency: int = Field(default=32, ge=1)

    @model_validator(mode="after")
    def _a_judge_has_a_server(self) -> Self:
        if self.should_use_judge and self.judge_model_server is None:
            raise ValueError(
                "should_use_judge is true and judge_model_server is not set; name a model server: "
                "{type: responses_api_models, name: policy_model}, or set should_use_judge to false"
            )
        return self


class MathWithJudgeRunRequest(BaseRunRequest):
    """A row."""

    model_config = ConfigDict(extra="allow")

    question: str
    expected_answer: str


class MathWithJudgeVerifyRequest(MathWithJudgeRunRequest, BaseVerifyRequest):
    """A row with its response."""


class JudgeEvaluation(BaseModel):
    """One question to the judge, and what it answered."""

    responses_create_params: NeMoGymResponseCreateParamsNonStreaming
    response: NeMoGymResponse


class MathWithJudgeVerifyResponse(BaseVerifyResponse):
    """The row with its reward; `judge_evaluations` is null where no judge was asked."""

    model_config = ConfigDict(extra="allow")

    expected_answer: str
    extracted_answer: str | None = None
    library_reward: float
    judge_evaluations: list[JudgeEvaluation] | None = None


class MathWithJudgeResourcesServer(SimpleResourcesServer):
    """Verifies mathematical answers."""

    config: MathWithJudgeConfig

    _workers: WorkerPool | None = PrivateAttr(default=None)

    def setup_webserver(self) -> FastAPI:
        """Return the application.

        Raises:
            MissingPackageError: the comparing library is not installed.

        """
        require_library()
        app = super().setup_webserver()
        app.router.lifespan_context = self._lifespan
        return app

    @property
    def workers(self) -> WorkerPool:
        """The processes that compare answers; none is started before it is needed."""
        if self._workers is None:
            config = self.config
            self._workers = WorkerPool(config.library_verifier_timeout_seconds, config.library_verifier_max_concurrency)
        return self._workers

    async def verify(self, body: MathWithJudgeVerifyRequest) -> MathWithJudgeVerifyResponse:
        """Return the row with reward 1 or 0.

        Raises:
            JudgeError: the judge could not be asked.

        """
        text = body.response.output_text
        boxed = (last_boxed(text) or "").strip()
        row = dict(body)
        if not boxed:
            return MathWithJudgeVerifyResponse(**(row | _found(0.0, None, 0.0, None)))
        gold = without_delimiters(body.expected_answer)
        library = await self.workers.compare(f"\\boxed{{{gold}}}", text)
        reward, evaluations = library, None
        if library <= _ENOUGH and self.config.should_use_judge:
            reward, evaluations = await self._judged(body.question, body.expected_answer, boxed)
        return MathWithJudgeVerifyResponse(**(row | _found(reward, boxed, library, evaluations)))

    def compute_metrics(self, tasks: list[list[dict[str, Any]]]) -> dict[str, Any]:
        """Return pass@k, pass@1 averages and majority votes over the boxed answers, in percent."""
        return votes(tasks)

    def get_key_metrics(self, agent_metrics: dict[str, Any]) -> dict[str, Any]:
        """Return the means, and the pass and majority metrics at the largest k."""
        return key_votes(agent_metrics)

    @asynccontextmanager
    async def _lifespan(self, _app: FastAPI) -> AsyncIterator[None]:
        try:
            yield
        finally:
            workers, self._workers = self._workers, None
            if workers is not None:
                await workers.close()

    async def _judged(self, question: str, expected: str, boxed: str) -> tuple[float, list[JudgeEvaluation]]:
        """Ask whether the answers are equal, and once more in the other order when they are."""
        first = await self._evaluation(question, expected, boxed)
        if not says_equal(first.response):
            return 0.0, [first]
        second = await self._evaluation(question, boxed, expected)
        return float(says_equal(second.response)), [first, second]

    async def _evaluation(self, question: str, first: str, second: str) -> JudgeEvaluation:
        params = judge_request(self.config.judge_responses_create_params, question, first, second)
        server = self.config.judge_model_server
        response = await call_judge(
            self.server_client,
            server_name=server.name if server else "",
            url_path="/v1/responses",
            json=params,
            response_model=NeMoGymResponse,
        )
        return JudgeEvaluation(responses_create_params=params, response=response)


def _found(
    reward: float, boxed: str | None, library: float, evaluations: list[JudgeEvaluation] | None
) -> dict[str, Any]:
    return {
        "reward": reward,
        "extracted_answer": boxed,
        "library_reward": library,
        "judge_evaluations": evaluations,
    }


def without_delimiters(answer: str) -> str:
    """Return an answer without the delimiters that put it in math mode."""
    stripped = answer.strip()
    for opening, closing in _DELIMITERS:
        whole = stripped.startswith(opening) and stripped.endswith(closing)
        if whole and len(stripped) >= len(opening) + len(closing):
            return stripped[len(opening) : len(stripped) - len(closing)].strip()
    return stripped


if __name__ == "__main__":
    MathWithJudgeResourcesServer.run_webserver()
