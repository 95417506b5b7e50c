"""Blackjack: the reward of a hand is 1 when it is won, 0 when it is drawn, -1 when it is lost.

Rules:
* A row with a `seed` is dealt the same cards every time, in each of its repeats.
* Other rows are dealt by `deal_seed`, the instance and the rollout, whatever the attempt: a rollout that is run again,
  in this process or in another, meets the same cards.
* Cards are random where `deal_seed` is null, or the rollout is not known.

Source: servers.md §7.3 (8).
"""

from typing import Any, Final

from fastapi import HTTPException

from resources_servers.blackjack.cards import GOAL, Table, dealt, hits, settle, shown, value
from resources_servers.gymnasium import (
    GymnasiumServer,
    GymnasiumServerConfig,
    Observed,
    Stepped,
    episode_seed,
    extract_text,
)
from rollbook import NeMoGymResponse

CONFLICT: Final = 409


class BlackjackConfig(GymnasiumServerConfig):
    """`deal_seed`: null deals rows without a seed of their own at random."""

    deal_seed: int | None = 0


class BlackjackServer(GymnasiumServer):
    """Deals and settles hands."""

    config: BlackjackConfig

    async def reset(self, metadata: dict[str, Any], session_id: str) -> Observed:
        """Deal."""
        table = dealt(episode_seed(metadata, self.config.deal_seed, self.config.name))
        self.session_state[session_id] = table
        return shown(table), {}

    async def step(self, action: NeMoGymResponse, metadata: dict[str, Any], session_id: str) -> Stepped:
        """Hit or stand.

        Raises:
            HTTPException: 409; no hand is being played in this session.

        """
        del metadata
        table: Table | None = self.session_state.get(session_id)
        if table is None:
            raise HTTPException(CONFLICT, "no hand is being played in this session; post the row to /reset first")
        if not hits(extract_text(action)):
            reward, result = settle(table)
            return None, reward, True, False, _info(table, result)
        table.draw(table.player)
        if value(table.player) > GOAL:
            return None, -1.0, True, False, _info(table, "bust")
        return shown(table), 0.0, False, False, {}


def _info(table: Table, result: str) -> dict[str, Any]:
    return {"result": result, "player_total": value(table.player), "dealer_total": value(table.dealer)}


if __name__ == "__main__":
    BlackjackServer.run_webserver()
