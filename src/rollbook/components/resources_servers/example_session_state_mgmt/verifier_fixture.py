"""Answers whose rewards are known: `gym env validate example_session_state_mgmt` asks the verifier about them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from resources_servers.example_session_state_mgmt.app import (
    StatefulCounterResourcesServer,
    StatefulCounterRunRequest,
    StatefulCounterVerifyRequest,
)
from rollbook import VerifierFixture, replay_episode, unserved_server


def gold_answer(row: Mapping[str, object]) -> list[dict[str, Any]] | None:
    """Return the call that brings the counter where a row wants it; None where it stands there already."""
    wanted = StatefulCounterRunRequest.model_validate(row)
    left = wanted.expected_count - wanted.initial_count
    return [{"name": "increment_counter", "arguments": {"count": left}}] if left else None


VERIFIER_FIXTURE = VerifierFixture(
    server_factory=lambda: unserved_server(StatefulCounterResourcesServer),
    request_model=StatefulCounterVerifyRequest,
    cases_path=Path(__file__).parent / "tests" / "verifier_cases.jsonl",
    invoke=replay_episode,
)
