"""Answers whose rewards are known: `gym env validate calendar` asks the verifier about them."""

from collections.abc import Mapping
from pathlib import Path

from resources_servers.calendar.app import CalendarResourcesServer, CalendarVerifyRequest
from rollbook import VerifierFixture, unserved_server


def gold_answer(row: Mapping[str, object]) -> str:
    """Return the answer to a row that is worth the best reward."""
    return str(row["expected_answer"])


VERIFIER_FIXTURE = VerifierFixture(
    server_factory=lambda: unserved_server(CalendarResourcesServer),
    request_model=CalendarVerifyRequest,
    cases_path=Path(__file__).parent / "tests" / "verifier_cases.jsonl",
)
