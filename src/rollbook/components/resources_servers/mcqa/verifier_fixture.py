"""Answers whose rewards are known: `gym env validate mcqa` asks the verifier about them."""

from collections.abc import Mapping
from pathlib import Path

from resources_servers.mcqa.app import MCQAResourcesServer, MCQAVerifyRequest
from rollbook import VerifierFixture, unserved_server


def gold_answer(row: Mapping[str, object]) -> str:
    """Return the answer to a row that is worth the best reward."""
    return rf"\boxed{{{row['expected_answer']}}}"


VERIFIER_FIXTURE = VerifierFixture(
    server_factory=lambda: unserved_server(MCQAResourcesServer),
    request_model=MCQAVerifyRequest,
    cases_path=Path(__file__).parent / "tests" / "verifier_cases.jsonl",
)
