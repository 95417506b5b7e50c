"""Answers whose rewards are known: `gym env validate string_match` asks the verifier about them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from resources_servers.string_match.app import StringMatchResourcesServer, StringMatchVerifyRequest
from rollbook import VerifierFixture, unserved_server

_GIVEN: Final = {
    "boxed": r"\boxed{%s}",
    "final_answer": "Final answer: %s",
    "last_line": "So it is:\n%s",
    "full_response": "%s",
}


def gold_answer(row: Mapping[str, object]) -> str:
    """Return the answer to a row that is worth the best reward."""
    return _GIVEN[str(row.get("extraction_mode", "final_answer"))] % row["expected_answer"]


VERIFIER_FIXTURE = VerifierFixture(
    server_factory=lambda: unserved_server(StringMatchResourcesServer),
    request_model=StringMatchVerifyRequest,
    cases_path=Path(__file__).parent / "tests" / "verifier_cases.jsonl",
)
