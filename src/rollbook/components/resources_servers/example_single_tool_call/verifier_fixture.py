"""Answers whose rewards are known: `gym env validate example_single_tool_call` asks the verifier about them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from resources_servers.example_single_tool_call.app import (
    TOOL,
    SingleToolCallResourcesServer,
    SingleToolCallVerifyRequest,
)
from rollbook import VerifierFixture, replay_episode, unserved_server


def gold_answer(row: Mapping[str, object]) -> list[dict[str, Any]]:
    """Return an answer that is worth the best reward, in every row: the tool is called."""
    del row
    return [{"name": TOOL, "arguments": {"city": "Oslo"}}]


VERIFIER_FIXTURE = VerifierFixture(
    server_factory=lambda: unserved_server(SingleToolCallResourcesServer),
    request_model=SingleToolCallVerifyRequest,
    cases_path=Path(__file__).parent / "tests" / "verifier_cases.jsonl",
    invoke=replay_episode,
)
