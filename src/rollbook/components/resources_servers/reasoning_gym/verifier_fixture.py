"""Answers whose rewards are known: `gym env validate reasoning_gym` asks the verifier about them."""

from collections.abc import Mapping
from pathlib import Path

from resources_servers.reasoning_gym.app import ReasoningGymResourcesServer, ReasoningGymVerifyRequest
from rollbook import VerifierFixture, unserved_server


def gold_answer(row: Mapping[str, object]) -> str:
    """Return the answer to a row that is worth the best reward."""
    return f"<answer>{row['answer']}</answer>"


VERIFIER_FIXTURE = VerifierFixture(
    server_factory=lambda: unserved_server(ReasoningGymResourcesServer),
    request_model=ReasoningGymVerifyRequest,
    cases_path=Path(__file__).parent / "tests" / "verifier_cases.jsonl",
)
