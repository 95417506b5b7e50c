"""Answers whose rewards are known: `gym env validate hotpotqa_qa` asks the verifier about them."""

import json
from collections.abc import Mapping
from pathlib import Path

from resources_servers.hotpotqa_qa.app import HotpotQAResourcesServer, HotpotQAVerifyRequest
from rollbook import VerifierFixture, unserved_server


def gold_answer(row: Mapping[str, object]) -> str:
    """Return the answer to a row that is worth the best reward."""
    return json.dumps({"answer": row["expected_answer"]})


VERIFIER_FIXTURE = VerifierFixture(
    server_factory=lambda: unserved_server(HotpotQAResourcesServer),
    request_model=HotpotQAVerifyRequest,
    cases_path=Path(__file__).parent / "tests" / "verifier_cases.jsonl",
)
