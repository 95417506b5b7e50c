"""Answers whose rewards are known: `gym env validate example_multi_step` asks the verifier about them."""

import json
from collections.abc import Mapping
from pathlib import Path

from resources_servers.example_multi_step.app import ExampleMultiStepResourcesServer, ExampleMultiStepVerifyRequest
from rollbook import VerifierFixture, unserved_server


def gold_answer(row: Mapping[str, object]) -> list[dict[str, str]] | None:
    """Return the answer to a row that is worth the best reward."""
    calls = row.get("expected_answers")
    if not isinstance(calls, list) or not calls:
        return None
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
    server_factory=lambda: unserved_server(ExampleMultiStepResourcesServer),
    request_model=ExampleMultiStepVerifyRequest,
    cases_path=Path(__file__).parent / "tests" / "verifier_cases.jsonl",
)
