"""Answers whose rewards are known: `gym env validate gpqa_diamond` asks the verifier about them."""

from collections.abc import Mapping
from pathlib import Path

from resources_servers.gpqa_diamond.app import GPQADiamondResourcesServer
from resources_servers.mcqa.app import MCQAVerifyRequest
from rollbook import VerifierFixture, unserved_server


def gold_answer(row: Mapping[str, object]) -> str:
    """Return the answer to a row that is worth the best reward."""
    return rf"\boxed{{{row['expected_answer']}}}"


VERIFIER_FIXTURE = VerifierFixture(
    server_factory=lambda: unserved_server(GPQADiamondResourcesServer),
    request_model=MCQAVerifyRequest,
    cases_path=Path(__file__).parent / "tests" / "verifier_cases.jsonl",
)
