"""Answers whose rewards are known: `gym env validate instruction_following` asks the verifier about them."""

from collections.abc import Mapping
from pathlib import Path

from resources_servers.instruction_following.app import (
    InstructionFollowingResourcesServer,
    InstructionFollowingVerifyRequest,
)
from rollbook import VerifierFixture, unserved_server


def gold_answer(row: Mapping[str, object]) -> str:
    """Return the answer to a row that is worth the best reward."""
    return str(row["expected_answer"])


VERIFIER_FIXTURE = VerifierFixture(
    server_factory=lambda: unserved_server(InstructionFollowingResourcesServer),
    request_model=InstructionFollowingVerifyRequest,
    cases_path=Path(__file__).parent / "tests" / "verifier_cases.jsonl",
)
