"""Answers whose rewards are known: `gym env validate blackjack` asks the verifier about them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from resources_servers.blackjack.app import BlackjackServer
from resources_servers.blackjack.cards import GOAL, dealt, settle, value
from resources_servers.gymnasium import EnvStepRequest, episode_seed
from rollbook import VerifierFixture, replay_episode, unserved_server

HIT: Final = "<action>hit</action>"
STAND: Final = "<action>stand</action>"


def gold_answer(row: Mapping[str, object]) -> list[str] | None:
    """Return the turns that win a row's hand.

    None where its cards are not known, where nobody can win it, and where it is not lost by whoever says nothing.
    """
    seed = episode_seed(row, None, "")
    if seed is None or worth(seed, 0) >= 0:
        return None
    hits = next((hits for hits in range(1, GOAL) if worth(seed, hits) > 0), None)
    return None if hits is None else [*[HIT] * hits, STAND]


def worth(seed: str, hits: int) -> float:
    """Return the reward of a hand that is hit so often before it stands."""
    table = dealt(seed)
    for _ in range(hits):
        table.draw(table.player)
    return settle(table)[0] if value(table.player) <= GOAL else -1.0


VERIFIER_FIXTURE = VerifierFixture(
    server_factory=lambda: unserved_server(BlackjackServer),
    request_model=EnvStepRequest,
    cases_path=Path(__file__).parent / "tests" / "verifier_cases.jsonl",
    invoke=replay_episode,
    reward_range=(-1.0, 1.0),
)
