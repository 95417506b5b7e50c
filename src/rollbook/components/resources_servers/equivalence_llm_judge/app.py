"""Short answers that a judge model compares: the reward is 1 when it says that answer and reference are equal.

Rules:
* No judge is asked about an empty answer or one that is too long: they are unequal.
* A row's own pattern beats the configuration's, except for references that are longer than the threshold. Where a
  pattern takes nothing, the whole response is the answer.
* Where the row's own pattern cut the answer and it was found unequal, the whole response may earn a part.
* A verdict of "equal" may be asked for once more with the answers swapped, against judges that prefer a side.
* A judge that cannot be asked is no verdict: the row is masked. A row whose pattern does not compile is masked too.

Source: servers.md §7.3 (12).
"""

import asyncio
import re
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Final

from pydantic import BaseModel, ConfigDict, Field

from resources_servers.equivalence_llm_judge.extraction import (
    compiled,
    last_assistant_text,
    last_match,
    last_user_text,
)
from resources_servers.equivalence_llm_judge.judging import JudgeEvaluation, Labels, judge_request, verdict
from rollbook import (
    VERIFIER_ERROR,
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
    resolve_read_path,
)

EMPTY: Final = "empty_final_answer"
TOO_LONG: Final = "answer_too_long"


class LLMJudgeResourcesServerConfig(BaseResourcesServerConfig):
    """Who judges, what it is shown, and what its verdicts are worth; the README tells of each."""

    REVERIFY_MODE: ClassVar[ReverifyMode] = ReverifyMode.STATELESS

    judge_model_server: ModelServerRef
    judge_responses_create_params: NeMoGymResponseCreateParamsNonStreaming = Field(
        default_factory=lambda: NeMoGymResponseCreateParamsNonStreaming(input=[])
    )
    judge_prompt_template_fpath: str = "prompt_templates/equivalence_llm_judge.txt"
    judge_system_message: str | None = None
    judge_equal_label: str = "[[A=B]]"
    judge_not_equal_label: str = "[[A!=B]]"
    judge_endpoint_max_concurrency: int | None = Field(default=64, ge=1)
    question_extract_regex: str | None = None
    response_extract_regex: str | None = None
    max_answer_chars: int | None = Field(default=None, ge=1)
    check_twice_swap: bool = False
    reward_if_swap_fails: float = 0.0
    use_per_record_regex: bool = True
    extraction_length_threshold: int | None = 120
    check_full_generation_on_fail: bool = True
    reward_if_full_generation_succeeds: float = 0.5


class TemplateMetadata(BaseModel):
    """How the row's own prompt asks for the answer."""

    model_config = ConfigDict(extra="allow")

    output_regex: str | None = None


class LLMJudgeRunRequest(BaseRunRequest):
    """A row: the reference, and the question when it is not what the user said last."""

    model_config = ConfigDict(extra="allow")

    expected_answer: str
    question: str | None = None
    template_metadata: TemplateMetadata | None = None


class LLMJudgeVerifyRequest(LLMJudgeRunRequest, BaseVerifyRequest):
    """A row with its response."""


class LLMJudgeVerifyResponse(BaseVerifyResponse):
    """The row with its reward, the answer that was compared, and what the judge was asked and said."""

    model_config = ConfigDict(extra="allow")

    expected_answer: str
    extracted_answer: str | None = None
    judge_evaluations: list[JudgeEvaluation] = Field(default_factory=list)


class LLMJudgeResourcesServer(SimpleResourcesServer):
    """Asks a judge whether answers are equal."""

    config: LLMJudgeResourcesServerConfig

    async def verify(self, body: LLMJudgeVerifyRequest) -> LLMJudgeVerifyResponse:
        """Return the row with its reward.

        Raises:
            JudgeError: the judge could not be asked.

        """
        row = body.model_dump(exclude={"response"}) | {"response": body.response, "judge_evaluations": []}
        try:
            found = await self._judged(body)
        except re.error as error:
            reason = f"{error.pattern!r} is no regular expression: {error}; mend template_metadata.output_regex"
            found = {"reward": 0.0, "mask_sample": True, "failure_kind": VERIFIER_ERROR, "failure_reason": reason}
        return LLMJudgeVerifyResponse(**(row | found))

    def compute_metrics(self, tasks: list[list[dict[str, Any]]]) -> dict[str, Any]:
        """Return the share, in percent, of the judge's answers without a verdict; nothing when it was never asked."""
        asked = [one for rollouts in tasks for row in rollouts for one in row.get("judge_evaluations") or ()]
        if not asked:
            return {}
        unread = sum(one.get("verdict_label") is None for one in asked)
        return {"judgement_parsing_issue_rate": 100.0 * unread / len(asked)}

    @cached_property
    def _template(self) -> str:
        path = Path(self.config.judge_prompt_template_fpath)
        beside = Path(__file__).parent / path
        return (beside if beside.is_file() else resolve_read_path(path)).read_text(encoding="utf-8")

    @cached_property
    def _room(self) -> asyncio.Semaphore | None:
        most = self.config.judge_endpoint_max_concurrency
        return None if most is None else asyncio.Semaphore(most)

    async def _judged(self, body: LLMJudgeVerifyRequest) -> dict[str, Any]:
        """Return what a verification found."""
        config = self.config
        own = config.use_per_record_regex and body.template_metadata and body.template_metadata.output_regex
        threshold = config.extraction_length_threshold
        long = bool(own) and threshold is not None and len(body.expected_answer) > threshold
        pattern = compiled(None if long else own or config.response_extract_regex)
        whole = last_assistant_text(body.response)
        if not whole:
            return {"reward": 0.0, "failure_reason": EMPTY}
        answer = (last_match(pattern, whole) if pattern else None) or whole
        if config.max_answer_chars is not None and len(answer) > config.max_answer_chars:
            return {"reward": 0.0, "failure_reason": TOO_LONG}
        question = self._question(body)
        reward, evaluations = await self._compared(question, body.expected_answer, answer)
        cut = bool(own) and answer != whole
        if cut and not self._is_equal(evaluations[0]) and config.check_full_generation_on_fail:
            evaluations.append(await self._asked(question, body.expected_answer, whole))
            reward = config.reward_if_full_generation_succeeds if self._is_equal(evaluations[-1]) else 0.0
        return {"reward": reward, "extracted_answer": answer, "judge_evaluations": evaluations}

    def _question(self, body: LLMJudgeVerifyRequest) -> str:
        """Return the question that a judge is shown."""
        if body.question is not None:
            return body.question
        text = last_user_text(body.responses_create_params)
        pattern = compiled(self.config.question_extract_regex)
        return (last_match(pattern, text) if pattern else None) or text

    async def _compared(self, question: str, expected: str, answer: str) -> tuple[float, list[JudgeEvaluation]]:
        """Ask whether the answers are equal, and once more with them swapped, where that is asked for."""
        first = await self._asked(question, expected, answer)
        if not self._is_equal(first):
            return 0.0, [first]
        if not self.config.check_twice_swap:
            return 1.0, [first]
        second = await self._asked(question, answer, expected)
        return (1.0 if self._is_equal(second) else self.config.reward_if_swap_fails), [first, second]

    def _is_equal(self, evaluation: JudgeEvaluation) -> bool:
        return evaluation.verdict_label == self.config.judge_equal_label

    async def _asked(self, question: str, expected: str, answer: str) -> JudgeEvaluation:
        """Ask the judge once, when there is room."""
        fields = {"question": question, "expected_answer": expected, "generated_answer": answer}
        if self._room is None:
            return await self._evaluation(fields)
        async with self._room:
            return await self._evaluation(fields)

    async def _evaluation(self, fields: Mapping[str, str]) -> JudgeEvaluation:
        config = self.config
        params = judge_request(
            config.judge_responses_create_params, self._template, fields, config.judge_system_message
        )
        response = await call_judge(
            self.server_client,
            server_name=config.judge_model_server.name,
            url_path="/v1/responses",
            json=params,
            response_model=NeMoGymResponse,
        )
        labels = Labels(equal=config.judge_equal_label, not_equal=config.judge_not_equal_label)
        label = verdict(response.output_text, labels)
        return JudgeEvaluation(responses_create_params=params, response=response, verdict_label=label)


if __name__ == "__main__":
    LLMJudgeResourcesServer.run_webserver()
