"""Answers whose rewards are known: `gym env validate office` asks the verifier about them."""

from collections.abc import Mapping
from pathlib import Path

from resources_servers.office.app import OfficeResourcesServer, OfficeVerifyRequest
from rollbook import VerifierFixture, replay_episode, unserved_server


def gold_answer(row: Mapping[str, object]) -> object:
    """Return the calls that do what a row asks for; None for one that asks to leave all as it is."""
    return row["expected_calls"] or None


VERIFIER_FIXTURE = VerifierFixture(
    server_factory=lambda: unserved_server(OfficeResourcesServer),
    request_model=OfficeVerifyRequest,
    cases_path=Path(__file__).parent / "tests" / "verifier_cases.jsonl",
    invoke=replay_episode,
)
