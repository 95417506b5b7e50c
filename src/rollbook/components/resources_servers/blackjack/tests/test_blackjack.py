import asyncio
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


def unseeded(**fields):
    return {key: value for key, value in ROW.items() if key != "seed"} | fields


def indexed(task, rollout, **fields):
    return unseeded(_ng_task_index=task, _ng_rollout_index=rollout, **fields)


async def deals(rows, headers=None, **options):
    """The first observation of each row, each with its own headers."""
    async with served(built(BlackjackServer, **options)) as server:
        return [
            (await server.newcomer().ok("/reset", row, **sent))["observation"]
            for row, sent in zip(rows, headers or [{}] * len(rows), strict=True)
        ]


@pytest.mark.parametrize("seed", [{"seed": 7}, {"metadata": {"seed": 7}}, {"seed": 7, "metadata": {"seed": 9}}])
async def test_a_seeded_row_is_dealt_the_same_cards_whatever_the_repeat_and_the_instance(seed):
    (expected,) = await deals([unseeded(seed=7)])
    assert await deals([indexed(0, repeat, **seed) for repeat in range(3)], deal_seed=5, name="b") == [expected] * 3


async def test_a_row_without_a_seed_is_dealt_by_the_rollout_that_the_request_names():
    ids = [f"{task}-{repeat}" for task in range(4) for repeat in range(4)]
    rows, headers = [unseeded()] * len(ids), [{"X_Rollout_Id": name} for name in ids]
    hands = await deals(rows, headers)
    assert hands == await deals(rows, headers)
    assert hands == await deals([indexed(task, repeat) for task in range(4) for repeat in range(4)])
    assert len(set(hands)) > 12


@pytest.mark.parametrize("options", [{"deal_seed": 6}, {"name": "another_table"}])
async def test_another_deal_seed_or_instance_deals_other_cards(options):
    rows = [indexed(task, 0) for task in range(8)]
    assert await deals(rows) != await deals(rows, **options)


async def test_every_attempt_of_a_rollout_is_dealt_the_same_cards():
    ids = ["3-1", "3-1-a1", "3-1-a12"]
    assert len(set(await deals([unseeded()] * 3, [{"X_Rollout_Id": name} for name in ids]))) == 1


async def test_the_rollout_may_stand_in_the_path():
    (expected,) = await deals([unseeded()], [{"X_Rollout_Id": "3-1"}])
    async with served(built(BlackjackServer)) as server:
        assert (await server.ok("/ng-rollout/3-1-a2/reset", unseeded()))["observation"] == expected


@pytest.mark.parametrize(("row", "options"), [(unseeded(), {}), (indexed(0, 0), {"deal_seed": None})])
async def test_cards_are_random_where_nothing_says_which(row, options):
    assert len(set(await deals([row] * 20, **options))) > 10


async def test_hands_that_are_played_side_by_side_are_those_that_are_played_one_by_one():
    rows = [indexed(task, 0) for task in range(12)]
    server = built(BlackjackServer)
    async with served(server) as caller:
        alone = [await played(caller, row, HIT) for row in rows]
        assert await asyncio.gather(*(played(caller, row, HIT) for row in rows)) == alone
    assert server.session_state == {}


async def test_a_saved_hand_cannot_be_verified_again():
    async with served(built(BlackjackServer)) as server:
        assert (await server.get("/reverify_mode")).json() == "unsupported"


def table_of(cards):
    player, dealer, deck = (hand.split() for hand in cards.split("|"))
    return Table(Stacked(*deck), player, dealer)


@pytest.mark.parametrize(
    ("cards", "actions", "reward", "result"),
    [
        ("K 6 | 9 8 | 5", [HIT, STAND], 1.0, "win"),
        ("K 6 | 9 8 | 6", [HIT], -1.0, "bust"),
        ("A 5 | 9 8 | 9 6 K", [HIT, HIT, HIT], -1.0, "bust"),
        ("K 7 | 9 8 |", [STAND], 0.0, "draw"),
        ("K 6 | 9 7 | 2", ["I pass."], -1.0, "loss"),
    ],
)
async def test_a_hand_is_paid_once_at_its_end(cards, actions, reward, result):
    environment = built(BlackjackServer)
    async with served(environment) as player:
        await player.ok("/reset", ROW)
        (session_id,) = environment.session_state
        environment.session_state[session_id] = table_of(cards)
        steps = [await player.ok("/step", {**ROW, "response": response(action)}) for action in actions]
    assert [step["reward"] for step in steps] == [0.0] * (len(actions) - 1) + [reward]
    assert [step["terminated"] for step in steps] == [False] * (len(actions) - 1) + [True]
    assert (steps[-1]["info"]["result"], environment.session_state) == (result, {})


async def test_a_step_without_a_hand_says_what_to_do():
    async with served(built(BlackjackServer)) as server:
        reply = await server.post("/step", {**ROW, "response": response(HIT)})
    assert (reply.status, "/reset first" in reply.json()["detail"]) == (409, True)
