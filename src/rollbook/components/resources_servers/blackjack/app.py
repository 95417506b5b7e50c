"""Blackjack: the reward of a hand is 1 when it is won, 0 when it is drawn, -1 when it is lost.

Rules:
* A row with a `seed` is dealt the same cards every time.
* With `deal_seed` the cards follow from it and from the rollout's indices; without either they are random.

Source: servers.md §7.3 (8).
"""

from collections.abc import Mapping
from typing import Any

from fastapi import HTTPException

from resources_servers.blackjack.cards import GOAL, Table, dealt, hits, settle, shown, value
from resources_servers.gymnasium import GymnasiumServer, Observed, Stepped, extract_text
from rollbook import (
    ROLLOUT_INDEX_KEY_NAME,
    TASK_INDEX_KEY_NAME,
    BaseResourcesServerConfig,
    NeMoGymResponse,
)


class BlackjackConfig(BaseResourcesServerConfig):
    """`deal_seed`: null deals rows without a seed of their own at random."""

    deal_seed: int | None = None


class BlackjackServer(GymnasiumServer):
    """Deals and settles hands."""

    config: BlackjackConfig

    async def reset(self, metadata: dict[str, Any], session_id: str) -> Observed:
        """Deal."""
        table = dealt(self._seed(metadata))
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
            raise HTTPException(409, "no hand is being played in this session; post the row to /reset first")
        if not hits(extract_text(action)):
            reward, result = settle(table)
            return None, reward, True, False, _info(table, result)
        table.draw(table.player)
        if value(table.player) > GOAL:
            return None, -1.0, True, False, _info(table, "bust")
        return shown(table), 0.0, False, False, {}

    def _seed(self, metadata: Mapping[str, object]) -> str | None:
        if metadata.get("seed") is not None:
            return f"row {metadata['seed']}"
        if self.config.deal_seed is None:
            return None
        task, rollout = metadata.get(TASK_INDEX_KEY_NAME), metadata.get(ROLLOUT_INDEX_KEY_NAME)
        return f"deal {self.config.deal_seed} {task} {rollout}"


def _info(table: Table, result: str) -> dict[str, Any]:
    return {"result": result, "player_total": value(table.player), "dealer_total": value(table.dealer)}


if __name__ == "__main__":
    BlackjackServer.run_webserver()
