"""Answers whose rewards are known: `gym env validate xlam_fc` asks the verifier about them."""

from collections.abc import Mapping
from pathlib import Path

from resources_servers.xlam_fc.app import XlamFcResourcesServer, XlamFcVerifyRequest
from rollbook import VerifierFixture, unserved_server


def gold_answer(row: Mapping[str, object]) -> object:
    """Return the answer to a row that is worth the best reward; None where no call is expected."""
    return row.get("expected_answers") or None


VERIFIER_FIXTURE = VerifierFixture(
    server_factory=lambda: unserved_server(XlamFcResourcesServer),
    request_model=XlamFcVerifyRequest,
    cases_path=Path(__file__).parent / "tests" / "verifier_cases.jsonl",
)
