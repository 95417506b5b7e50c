"""Blackjack with an infinite deck: hands, their values, and the dealer's rule.

Rules:
* Cards come from the chance that a hand is dealt with, so a seeded hand is the same every time.
* An ace is worth eleven as long as that does not go over twenty-one.
* The dealer draws below seventeen and stands from there on, soft or not.

Source: servers.md §7.3 (8).
"""

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

RANKS: Final = ("2", "3", "4", "5", "6", "7", "8", "9", "10", "J", "Q", "K", "A")
GOAL: Final = 21
DEALER_STANDS: Final = 17
_ACE_BONUS: Final = 10
_VALUES: Final = {rank: min(place + 2, 10) for place, rank in enumerate(RANKS)} | {"A": 1}
_ACTION: Final = re.compile(r"<action>\s*(hit|stand)\s*</action>", re.IGNORECASE)


@dataclass(slots=True)
class Table:
    """One hand being played."""

    deck: random.Random
    player: list[str]
    dealer: list[str]

    def draw(self, hand: list[str]) -> None:
        """Put one more card into `hand`."""
        hand.append(self.deck.choice(RANKS))


def dealt(seed: str | None) -> Table:
    """Return a table with two cards each; without a seed they are anybody's guess."""
    table = Table(random.Random(seed), [], [])  # noqa: S311  cards of a game, no secret
    for hand in (table.player, table.dealer, table.player, table.dealer):
        table.draw(hand)
    return table


def value(hand: Sequence[str]) -> int:
    """Return what a hand is worth."""
    hard = sum(_VALUES[card] for card in hand)
    return hard + _ACE_BONUS if "A" in hand and hard + _ACE_BONUS <= GOAL else hard


def hits(text: str) -> bool:
    """Whether `text` asks for a card; whatever asks for nothing stands."""
    action = _ACTION.search(text)
    return action is not None and action[1].lower() == "hit"


def shown(table: Table) -> str:
    """Return what the player sees."""
    cards = ", ".join(table.player)
    return f"Your hand: {cards} (total: {value(table.player)}). Dealer shows: {table.dealer[0]}."


def settle(table: Table) -> tuple[float, str]:
    """Play the dealer's hand; return the player's reward and what to call it."""
    while value(table.dealer) < DEALER_STANDS:
        table.draw(table.dealer)
    player, dealer = value(table.player), value(table.dealer)
    if dealer > GOAL or player > dealer:
        return 1.0, "win"
    return (0.0, "draw") if player == dealer else (-1.0, "loss")
