"""Answers whose rewards are known: `gym env validate structured_outputs` asks the verifier about them."""

import json
from collections.abc import Mapping
from pathlib import Path

from resources_servers.structured_outputs.app import StructuredOutputsResourcesServer, StructuredOutputsVerifyRequest
from rollbook import VerifierFixture, unserved_server


def gold_answer(row: Mapping[str, object]) -> str | list[dict[str, str]]:
    """Return the answer to a row that is worth the best reward."""
    calls = row.get("expected_answers")
    if not isinstance(calls, list):
        return str(row["expected_answer"])
    return [
        {
            "type": "function_call",
            "call_id": f"call_{number}",
            "name": call["name"],
            "arguments": json.dumps(call["arguments"]),
        }
        for number, call in enumerate(calls)
    ]


VERIFIER_FIXTURE = VerifierFixture(
    server_factory=lambda: unserved_server(StructuredOutputsResourcesServer),
    request_model=StructuredOutputsVerifyRequest,
    cases_path=Path(__file__).parent / "tests" / "verifier_cases.jsonl",
)
