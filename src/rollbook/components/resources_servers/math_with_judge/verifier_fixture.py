"""Answers whose rewards are known: `gym env validate math_with_judge` asks the verifier about them."""

from collections.abc import Mapping
from pathlib import Path

from resources_servers.math_with_judge.app import MathWithJudgeResourcesServer, MathWithJudgeVerifyRequest
from rollbook import VerifierFixture, unserved_server


def gold_answer(row: Mapping[str, object]) -> str:
    """Return the answer to a row that is worth the best reward."""
    return rf"\boxed{{{row['expected_answer']}}}"


VERIFIER_FIXTURE = VerifierFixture(
    server_factory=lambda: unserved_server(
        MathWithJudgeResourcesServer, should_use_judge=False, judge_responses_create_params={"input": []}
    ),
    request_model=MathWithJudgeVerifyRequest,
    cases_path=Path(__file__).parent / "tests" / "verifier_cases.jsonl",
)
