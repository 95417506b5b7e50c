"""Answers whose rewards are known: `gym env validate math_with_code` asks the verifier about them."""

from collections.abc import Mapping
from pathlib import Path

from resources_servers.math_with_code.app import MathWithCodeResourcesServer, MathWithCodeVerifyRequest
from rollbook import VerifierFixture, replay_episode, unserved_server


def gold_answer(row: Mapping[str, object]) -> str:
    """Return the answer to a row that is worth the best reward."""
    return rf"\boxed{{{row['expected_result']}}}"


VERIFIER_FIXTURE = VerifierFixture(
    server_factory=lambda: unserved_server(MathWithCodeResourcesServer),
    request_model=MathWithCodeVerifyRequest,
    cases_path=Path(__file__).parent / "tests" / "verifier_cases.jsonl",
    invoke=replay_episode,
)
