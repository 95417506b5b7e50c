"""Answers whose rewards are known: `gym env validate wordle` asks the verifier about them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from resources_servers.gymnasium import EnvStepRequest
from resources_servers.wordle.app import WordleResourcesServer
from resources_servers.wordle.words import targets
from rollbook import VerifierFixture, replay_episode, unserved_server


def gold_answer(row: Mapping[str, object]) -> list[dict[str, Any]] | None:
    """Return the calls that are worth the best reward: the word as second guess, as luck at the first pays less.

    None for a row whose word is drawn by its rollout.
    """
    word = row.get("custom_target")
    if not isinstance(word, str):
        return None
    first = next(other for other in targets() if other != word)
    return [{"name": "submit_guess", "arguments": {"guess": guess}} for guess in (first, word)]


VERIFIER_FIXTURE = VerifierFixture(
    server_factory=lambda: unserved_server(WordleResourcesServer),
    request_model=EnvStepRequest,
    cases_path=Path(__file__).parent / "tests" / "verifier_cases.jsonl",
    invoke=replay_episode,
    reward_range=(0.0, 1.8),
)
