import random

import pytest

from resources_servers.blackjack.app import BlackjackServer
from resources_servers.blackjack.cards import RANKS, Table, dealt, hits, settle, shown, value
from unit.shelf.calling import built, example_rows, response, served, shared_rows

HIT, STAND = "<action>hit</action>", "<action>stand</action>"
ROW = example_rows("blackjack")[0]


class Stacked(random.Random):
    """A deck whose next cards are known."""

    def __init__(self, *cards):
        super().__init__(0)
        self.cards = list(cards)

    def choice(self, ranks):
        return self.cards.pop(0)


@pytest.mark.parametrize(
    ("hand", "worth"),
    [("2 3", 5), ("K Q", 20), ("A K", 21), ("A A", 12), ("A A 9", 21), ("A 6 K", 17), ("K Q J", 30), ("10 J A", 21)],
)
def test_an_ace_is_worth_eleven_while_that_helps(hand, worth):
    assert value(hand.split()) == worth


@pytest.mark.parametrize(
    ("text", "draws"),
    [
        (HIT, True),
        ("<ACTION> Hit </ACTION>", True),
        (f"I think.\n{HIT} then {STAND}", True),
        (STAND, False),
        (f"{STAND} {HIT}", False),
        ("hit", False),
        ("<action>double</action>", False),
        ("<action>hit", False),
        ("", False),
    ],
)
def test_whatever_does_not_ask_for_a_card_stands(text, draws):
    assert hits(text) is draws


@pytest.mark.parametrize(
    ("player", "dealer", "deck", "reward", "result"),
    [
        ("K 9", "K 8", "", 1.0, "win"),
        ("K 8", "K 8", "", 0.0, "draw"),
        ("K 7", "K 8", "", -1.0, "loss"),
        ("2 3", "K 6", "K", 1.0, "win"),
        ("K K", "K 6", "5", -1.0, "loss"),
        ("K 9", "A 6", "", 1.0, "win"),
        ("K 9", "A 5", "K 3", 0.0, "draw"),
    ],
)
def test_the_dealer_draws_below_seventeen(player, dealer, deck, reward, result):
    table = Table(Stacked(*deck.split()), player.split(), dealer.split())
    assert settle(table) == (reward, result)


def test_the_player_sees_the_total_and_one_card_of_the_dealer():
    assert shown(Table(Stacked(), ["K", "6"], ["9", "Q"])) == "Your hand: K, 6 (total: 16). Dealer shows: 9."


def test_every_rank_is_dealt_as_often_as_any_other():
    counts = dict.fromkeys(RANKS, 0)
    for seed in range(2000):
        for card in dealt(str(seed)).player:
            counts[card] += 1
    assert all(count == pytest.approx(4000 / 13, rel=0.25) for count in counts.values())


async def played(server, row, action):
    """The whole hand as the player meets it: observations and the last step."""
    player = server.newcomer()
    seen = [(await player.ok("/reset", row))["observation"]]
    while True:
        step = await player.ok("/step", {**row, "response": response(action)})
        seen.append(step["observation"])
        if step["terminated"]:
            return seen, step


async def test_a_player_who_only_hits_goes_bust():
    async with served(built(BlackjackServer)) as server:
        seen, last = await played(server, ROW, HIT)
    assert (last["reward"], last["info"]["result"]) == (-1.0, "bust")
    assert last["info"]["player_total"] > 21
    assert seen[-1] is None


@pytest.mark.parametrize("read", [example_rows, shared_rows])
async def test_a_hand_of_a_row_ends_with_a_result_and_its_reward(read):
    async with served(built(BlackjackServer)) as server:
        for row in read("blackjack"):
            _, last = await played(server, row, STAND)
            assert last["reward"] == {"win": 1.0, "draw": 0.0, "loss": -1.0}[last["info"]["result"]]


def indexed(task, rollout, **fields):
    return {key: value for key, value in ROW.items() if key != "seed"} | {
        "_ng_task_index": task,
        "_ng_rollout_index": rollout,
        **fields,
    }


async def deals(rows, **options):
    async with served(built(BlackjackServer, **options)) as server:
        return [(await played(server, row, HIT))[0] for row in rows]


async def test_a_seeded_row_is_dealt_the_same_cards_in_every_repeat():
    hands = await deals([indexed(0, repeat, seed=7) for repeat in range(3)], deal_seed=5)
    assert hands[0] == hands[1] == hands[2]
    assert hands != await deals([indexed(0, repeat, seed=8) for repeat in range(3)])


async def test_with_a_deal_seed_cards_follow_from_the_rollout():
    rows = [indexed(task, rollout) for task in range(4) for rollout in range(4)]
    hands = await deals(rows, deal_seed=5)
    assert hands == await deals(rows, deal_seed=5)
    assert len({tuple(hand) for hand in hands}) > 12
    assert hands != await deals(rows, deal_seed=6)


async def test_without_any_seed_cards_are_random():
    rows = [indexed(0, 0)] * 12
    hands = await deals(rows)
    assert len({tuple(hand) for hand in hands}) > 1


async def test_a_step_without_a_hand_says_what_to_do():
    async with served(built(BlackjackServer)) as server:
        reply = await server.post("/step", {**ROW, "response": response(HIT)})
    assert (reply.status, "/reset first" in reply.json()["detail"]) == (409, True)
