"""Questions of HotpotQA without their texts: the reward is 1 when the answer says, strictly, what is expected.

Rules:
* The answer is that of the last JSON object in the response with an `answer`; without one, the whole response.
* Exact match, F1 and a loose comparison are told beside the reward; all of them make metrics.
* Metrics are told a second time (`filtered_`) without the tasks whose expected answer is unreliable.

Source: servers.md §7.2.
"""

import re
from typing import Any, ClassVar, Final

from pydantic import ConfigDict

from resources_servers.hotpotqa_qa.alternatives import is_said, is_said_strictly
from resources_servers.hotpotqa_qa.f1 import exact_match, f1
from resources_servers.hotpotqa_qa.reliability import why_unreliable
from rollbook import (
    BaseResourcesServerConfig,
    BaseRunRequest,
    BaseVerifyRequest,
    BaseVerifyResponse,
    ReverifyMode,
    SimpleResourcesServer,
    compute_pass_majority_metrics,
    highest_k_metrics,
    untrusted_json,
)

SCORES: Final = ("answer_em", "answer_f1", "is_correct", "is_correct_strict")
LONGEST_ANSWER: Final = 100_000
_OBJECT: Final = re.compile(r"\{[^{}]*\}")


class HotpotQAConfig(BaseResourcesServerConfig):
    """Nothing but what every resources server has."""

    REVERIFY_MODE: ClassVar[ReverifyMode] = ReverifyMode.STATELESS


class HotpotQARunRequest(BaseRunRequest):
    """A row: the expected answer."""

    model_config = ConfigDict(extra="allow")

    expected_answer: str


class HotpotQAVerifyRequest(HotpotQARunRequest, BaseVerifyRequest):
    """A row with its response."""


class HotpotQAVerifyResponse(BaseVerifyResponse):
    """The row with its reward, every score, and why the expected answer is unreliable, if it is."""

    model_config = ConfigDict(extra="allow")

    expected_answer: str
    extracted_answer: str | None
    answer_em: float
    answer_f1: float
    is_correct: float
    is_correct_strict: float
    gt_should_remove: bool
    gt_remove_reason: str


class HotpotQAResourcesServer(SimpleResourcesServer):
    """Grades answers to HotpotQA's questions."""

    config: HotpotQAConfig

    async def verify(self, body: HotpotQAVerifyRequest) -> HotpotQAVerifyResponse:
        """Return the row with reward 1 or 0."""
        answer, expected = extracted(body.response.output_text), body.expected_answer
        reason = why_unreliable(expected)
        scores = scored(answer, expected)
        found = scores | {
            "reward": scores["is_correct_strict"],
            "extracted_answer": answer,
            "gt_should_remove": bool(reason),
            "gt_remove_reason": reason,
        }
        row = dict(body)
        return HotpotQAVerifyResponse(**(row | found))

    def compute_metrics(self, tasks: list[list[dict[str, Any]]]) -> dict[str, Any]:
        """Return pass@k, pass@1 averages and majority votes of every score, in percent; of reliable tasks once more."""
        reliable = [rollouts for rollouts in tasks if rollouts and not rollouts[0].get("gt_should_remove")]
        every, some = measured(tasks), measured(reliable)
        some.pop("per_sample_aggregate", None)
        counts = {"filtered_num_tasks": len(reliable), "unfiltered_num_tasks": len(tasks)}
        return every | {f"filtered_{name}": value for name, value in some.items()} | counts

    def get_key_metrics(self, agent_metrics: dict[str, Any]) -> dict[str, Any]:
        """Return the metrics of the scores at the largest k."""
        forms = ("pass@1[avg-of-{k}]", "pass@{k}", "majority@{k}")
        found = (
            highest_k_metrics(agent_metrics, f"{prefix}{form}", score_names=list(SCORES))
            for prefix in ("", "filtered_")
            for form in forms
        )
        return {name: value for values in found for name, value in values.items()}


def measured(tasks: list[list[dict[str, Any]]]) -> dict[str, Any]:
    """Return the metrics of tasks, none of no tasks."""
    if not tasks:
        return {}
    metrics, *_ = compute_pass_majority_metrics(
        tasks,
        score_fn=lambda row: {name: float(row.get(name) or 0.0) for name in SCORES},
        answer_key="extracted_answer",
    )
    return metrics


def scored(answer: str | None, expected: str) -> dict[str, float]:
    """Return every score of an answer; one that is too long to be an answer has none."""
    if answer is None or len(answer) > LONGEST_ANSWER:
        return dict.fromkeys(SCORES, 0.0)
    loose, strict = float(is_said(answer, expected)), float(is_said_strictly(answer, expected))
    return dict(zip(SCORES, (exact_match(answer, expected), f1(answer, expected), loose, strict), strict=True))


def extracted(text: str) -> str | None:
    """Return the answer that a response gives, None for an empty one."""
    for found in reversed(_OBJECT.findall(text)):
        try:
            value = untrusted_json(found)
        except ValueError:
            continue
        if isinstance(value, dict) and "answer" in value:
            return non_blank(str(value["answer"]))
    return non_blank(text.strip())


def non_blank(text: str) -> str | None:
    """Return a text that says anything, else None."""
    return text if text.strip() else None


if __name__ == "__main__":
    HotpotQAResourcesServer.run_webserver()
