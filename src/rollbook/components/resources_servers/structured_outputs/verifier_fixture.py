"""Answers whose rewards are known: `gym env validate structured_outputs` asks the verifier about them."""

from collections.abc import Mapping
from pathlib import Path

from resources_servers.structured_outputs.app import StructuredOutputsResourcesServer, StructuredOutputsVerifyRequest
from rollbook import VerifierFixture, unserved_server


def gold_answer(row: Mapping[str, object]) -> object:
    """Return the answer to a row that is worth the best reward: its calls, else its text."""
    return row.get("expected_answers") or row["expected_answer"]


VERIFIER_FIXTURE = VerifierFixture(
    server_factory=lambda: unserved_server(StructuredOutputsResourcesServer),
    request_model=StructuredOutputsVerifyRequest,
    cases_path=Path(__file__).parent / "tests" / "verifier_cases.jsonl",
)
