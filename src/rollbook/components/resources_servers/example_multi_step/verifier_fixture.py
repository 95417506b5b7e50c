"""Answers whose rewards are known: `gym env validate example_multi_step` asks the verifier about them."""

from collections.abc import Mapping
from pathlib import Path

from resources_servers.example_multi_step.app import ExampleMultiStepResourcesServer, ExampleMultiStepVerifyRequest
from rollbook import VerifierFixture, unserved_server


def gold_answer(row: Mapping[str, object]) -> object:
    """Return the answer to a row that is worth the best reward; None where no call is expected."""
    return row.get("expected_answers") or None


VERIFIER_FIXTURE = VerifierFixture(
    server_factory=lambda: unserved_server(ExampleMultiStepResourcesServer),
    request_model=ExampleMultiStepVerifyRequest,
    cases_path=Path(__file__).parent / "tests" / "verifier_cases.jsonl",
)
