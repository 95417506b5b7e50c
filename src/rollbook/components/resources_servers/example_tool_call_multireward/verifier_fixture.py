"""Answers whose rewards are known: `gym env validate example_tool_call_multireward` asks the verifier about them."""

import json
from collections.abc import Mapping
from pathlib import Path

from resources_servers.example_tool_call_multireward.app import (
    ToolCallMultiRewardResourcesServer,
    ToolCallMultiRewardVerifyRequest,
)
from rollbook import VerifierFixture, unserved_server


def gold_answer(row: Mapping[str, object]) -> list[dict[str, str]] | None:
    """Return the answer to a row that is worth the best reward."""
    call = row.get("expected_call")
    if not isinstance(call, dict):
        return None
    return [
        {"type": "function_call", "call_id": "call_0", "name": call["name"], "arguments": json.dumps(call["arguments"])}
    ]


VERIFIER_FIXTURE = VerifierFixture(
    server_factory=lambda: unserved_server(ToolCallMultiRewardResourcesServer),
    request_model=ToolCallMultiRewardVerifyRequest,
    cases_path=Path(__file__).parent / "tests" / "verifier_cases.jsonl",
)
