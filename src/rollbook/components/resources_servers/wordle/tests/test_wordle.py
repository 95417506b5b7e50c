import json

import pytest

from resources_servers.wordle.app import WordleResourcesServer
from resources_servers.wordle.game import Game, cost_of, marks
from resources_servers.wordle.words import guesses, targets
from unit.shelf.calling import built, example_rows, response, served, tool_call

ROW = {**example_rows("wordle")[0], "custom_target": "chump"}


def guess(word):
    return tool_call("submit_guess", guess=word)


async def played(steps, row=ROW):
    """Play the steps of a game, each the output of one response; return what each was answered."""
    async with served(built(WordleResourcesServer)) as session:
        assert await session.ok("/reset", row) == {"observation": None, "info": {}}
        return [await session.ok("/step", {**row, "response": response(*output)}) for output in steps]


async def earned(*words, row=ROW):
    return (await played([[guess(word)] for word in words], row))[-1]["reward"]


def told(step):
    return json.loads(step["info"]["tool_outputs"][0]["output"])


@pytest.mark.parametrize(
    ("word", "target", "marked"),
    [
        ("chump", "chump", "GGGGG"),
        ("clump", "chump", "G_GGG"),
        ("mummy", "chump", "_Y_G_"),
        ("stare", "chump", "_____"),
        ("award", "radar", "Y_YYY"),
        ("eerie", "melee", "YG__G"),
        ("melee", "eerie", "_G_YG"),
    ],
)
def test_a_letter_is_marked_as_often_as_the_word_has_it(word, target, marked):
    assert marks(word, target) == marked


@pytest.mark.parametrize(
    ("word", "before", "cost"),
    [
        ("chump", ["stare"], 0),
        ("stare", ["stare"], 0.3),
        ("stare", ["clump"], 0.2),
        ("tears", ["stare"], 0.1),
        ("cloth", ["stare"], 0.02),
        ("stink", ["lumpy"], 0.03),
        ("chomp", ["clump", "mummy"], 0.08),
        ("mints", ["lumpy"], 0.0),
    ],
)
def test_a_guess_costs_what_it_makes_nothing_of(word, before, cost):
    assert cost_of(word, before, [marks(word, "chump") for word in before]) == pytest.approx(cost)


@pytest.mark.parametrize(
    ("words", "reward"),
    [
        (["chump"], 1.6),
        (["stare", "chump"], 1.8),
        (["stare", "cloud", "chump"], 1.6),
        (["stare", "stare", "chump"], 1.3),
        (["cat", "chump"], 1.78),
        (["zzzzz", "zzzzz", "chump"], 1.56),
        ([" CHUMP "], 1.6),
        (["stare"] * 5 + ["chump"], 0.0),
        (["stare"] * 6, 0.0),
    ],
)
async def test_a_game_earns_by_its_turns_less_what_its_guesses_cost(words, reward):
    assert await earned(*words) == pytest.approx(reward)


async def test_what_a_win_and_a_loss_tell():
    won, lost = (await played([[guess("stare")], [guess("chump")]]))[-1], (await played([[guess("stare")]] * 6))[-1]
    assert won["info"] == {"game_outcome": "win", "turns_used": 2, "won": 1.0, "turns_if_won": 2.0}
    assert lost["info"] == {"game_outcome": "loss", "turns_used": 6, "won": 0.0, "turns_if_won": 0.0}
    assert (won["terminated"], lost["terminated"]) == (True, True)


async def test_only_guesses_take_turns():
    asked = [tool_call("check_word_validity", word=word) for word in ("chump", "zzzzz", "cat")]
    *checks, state, answered = await played([[call] for call in (*asked, tool_call("get_game_state"), guess("clump"))])
    assert [told(check)["valid"] for check in checks] == [True, False, False]
    assert (told(state)["turn"], told(answered)["turns_remaining"]) == (0, 5)


async def test_the_state_is_what_the_answers_say():
    *_, state = await played([[guess("clump")], [guess("humid")], [tool_call("get_game_state")]])
    known = told(state)
    assert known["known_greens"] == {"1": "C", "3": "U", "4": "M", "5": "P"}
    assert (known["known_yellows"], known["eliminated_letters"]) == (["H", "M", "U"], ["D", "I", "L"])


async def test_the_calls_of_one_response_are_played_in_order_until_the_game_is_over():
    (step,) = await played([[guess("stare"), guess("chump"), guess("stare")]])
    assert (step["reward"], step["info"]["turns_used"]) == (1.8, 2)


@pytest.mark.parametrize("output", [["chump"], []])
async def test_a_response_without_a_call_gives_the_game_up(output):
    (step,) = await played([output])
    assert (step["reward"], step["terminated"], step["info"]["game_outcome"]) == (0.0, True, "incomplete")


@pytest.mark.parametrize("arguments", ["{", "{}", '{"guess": 5}', "[]", "[" * 100_000])
async def test_a_call_that_cannot_be_read_is_told_so_and_takes_no_turn(arguments):
    (step,) = await played([[{**guess("x"), "arguments": arguments}]])
    assert told(step)["error"].startswith("Invalid arguments for submit_guess: ")
    assert step["info"]["turns_used"] == 0


async def test_a_tool_that_does_not_exist_is_told_so():
    (step,) = await played([[tool_call("peek")]])
    assert told(step) == {"error": "Unknown tool: peek"}


async def test_a_step_without_a_game_is_refused():
    async with served(built(WordleResourcesServer)) as session:
        assert (await session.post("/step", {**ROW, "response": response(guess("chump"))})).status == 409


@pytest.mark.parametrize(
    "row", [{"custom_target": "cat"}, {"custom_target": "12345"}, {"word_length": 6}, {"max_turns": 0}]
)
async def test_a_row_whose_game_cannot_be_played_is_refused(row):
    async with served(built(WordleResourcesServer)) as session:
        assert (await session.post("/reset", {**ROW, **row})).status == 422


async def test_a_rows_own_word_may_be_guessed_though_no_list_has_it():
    assert "qwert" not in guesses()
    row = {**ROW, "custom_target": "qwert"}
    check = tool_call("check_word_validity", word="qwert")
    checked, won = await played([[check], [guess("QWERT")]], row)
    assert (told(checked)["valid"], won["info"]["won"], won["terminated"]) == (True, 1.0, True)
    assert await earned("zxcvb", row=row) == 0.0


async def test_a_row_with_a_seed_asks_for_the_same_word_every_time_and_seeds_differ():
    server = built(WordleResourcesServer)
    drawn = [server._drawn({"seed": seed}) for seed in (*range(20), *range(20))]
    assert drawn[:20] == drawn[20:]
    assert len(set(drawn)) > 15


async def test_games_side_by_side_do_not_mix():
    async with served(built(WordleResourcesServer)) as server:
        sessions = [(server.newcomer(), word) for word in ("chump", "stare")]
        for session, word in sessions:
            await session.ok("/reset", {**ROW, "custom_target": word})
        for session, word in sessions:
            assert (await session.ok("/step", {**ROW, "response": response(guess(word))}))["info"]["won"] == 1.0


def test_every_word_that_is_sought_may_be_guessed():
    assert set(targets()) <= guesses()
    assert all(len(word) == 5 and word.isalpha() and word.islower() for word in guesses())


def test_a_game_that_is_lost_tells_the_word():
    game = Game(target="chump", turns=1)
    assert game.guess("stare", guesses())["target_word"] == "CHUMP"
