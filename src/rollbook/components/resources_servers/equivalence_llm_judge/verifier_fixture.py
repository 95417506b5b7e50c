"""Answers whose rewards are known: `gym env validate equivalence_llm_judge` asks the verifier about them."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from resources_servers.equivalence_llm_judge.app import LLMJudgeResourcesServer, LLMJudgeVerifyRequest
from rollbook import VerifierFixture, unserved_server

_ANSWERS: Final = re.compile(r"Reference \(A\):\n(.*?)\n\nCandidate \(B\):\n(.*?)\n\nReason briefly", re.DOTALL)


def judge_says(prompt: str) -> str:
    """Return the verdict of a judge that takes answers for equal when they have the same letters."""
    answers = _ANSWERS.search(prompt)
    same = answers is not None and answers[1].casefold() == answers[2].casefold()
    return "[[A=B]]" if same else "[[A!=B]]"


def gold_answer(row: Mapping[str, object]) -> object:
    """Return the answer to a row that is worth the best reward."""
    return row["expected_answer"]


VERIFIER_FIXTURE = VerifierFixture(
    server_factory=lambda: unserved_server(
        LLMJudgeResourcesServer,
        model_says=judge_says,
        judge_model_server={"type": "responses_api_models", "name": "judge"},
    ),
    request_model=LLMJudgeVerifyRequest,
    cases_path=Path(__file__).parent / "tests" / "verifier_cases.jsonl",
)
