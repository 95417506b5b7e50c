"""Responses that no honest model gives: each earns nothing or says why, and a right one beside it earns its reward.

Set ROLLBOOK_FULL=1 to send every text as five megabytes of itself alone too; without it, they share five.
"""

import asyncio
import os

import pytest

from rollbook.config.manifest import read_manifest
from rollbook.servers.serving.loading import load_module, served_class
from unit.shelf.calling import COMPONENTS, built, example_rows, message, response, served, tool_call
from unit.shelf.judge import JUDGE, Given, Judge
from unit.shelf.right_answers import CALLS, JUDGED_EQUAL, TEXTS, right_items

FULL = bool(os.environ.get("ROLLBOOK_FULL"))
MEGABYTES = 5_000_000
SHAPES = {
    "letters": "x",
    "boxes": "\\boxed{",
    "closed boxes": "\\boxed{}",
    "objects": '{"answer":',
    "lists": "[{",
    "fences": "```python\n",
    "tags": "<answer>",
    "labels": "Answer: ",
    "initials": "A. ",
    "numbers": "9",
    "elements": "<a>",
    "asterisks": "* ",
    "spaces": " ",
    "lines": "\n",
    "quotes": '"',
}
DEEP = 100_000
CALLS_SENT = 10_000
TRICKS = (
    "\\boxed{\u202eB\u202c}",
    "\\boxed{\u200b\uff22\u200d}",
    "\\boxed{\u0392}",
    "\\boxed{\U0001d401} \\boxed{\u24b7}",
    "\\boxed{B\u0301}",
    "\\boxed{\uffff}",
    "<answer>\u0000</answer>",
    '{"answer": "\ufeff\uff4e\u043e\u2066"}',
    "Answer: \ufdfa\u0130",
    "Answer: \u0664\u0662",
)
NOTHING = (200, 0.0)
JUDGED = {"equivalence_llm_judge", "math_with_judge"}
UNHURRIED = {
    "code_gen": {"unit_test_timeout_secs": 120},
    "math_with_judge": {"should_use_judge": False, "library_verifier_timeout_seconds": 120},
    "structured_outputs": {"check_timeout_seconds": 120},
}
NAMES = sorted({*CALLS, *TEXTS})


class FairJudge(Judge):
    """Says that two answers are equal where the candidate is the reference."""

    def __init__(self, right):
        super().__init__()
        self.right = right

    async def post(self, server_name, url_path, json=None, **options):
        asked = str(json.input[-1].content)
        return Given(response(JUDGED_EQUAL if asked.count(self.right) > 1 else "[[A!=B]]"))


def server_of(name):
    path = COMPONENTS / "resources_servers" / name / "app.py"
    server_class = served_class(load_module(path, f"resources_servers.{name}.app"), path)
    options = UNHURRIED.get(name, {})
    if name not in JUDGED:
        return built(server_class, **options)
    judge = FairJudge(example_rows(name)[0]["expected_answer"])
    judged = {"judge_model_server": JUDGE, "judge_responses_create_params": {"input": []}}
    return built(server_class, client=judge, **judged, **options)


def filled(*shapes):
    """Return five megabytes of these texts, one after another."""
    share = MEGABYTES // len(shapes)
    return "".join(shape * (share // len(shape)) for shape in shapes)


def deep_call(name="no_such_tool", call_id="deep"):
    return tool_call(name, call_id) | {"arguments": '{"a":' * DEEP + "1" + "}" * DEEP}


def hostile_items(name):
    """Yield the items of hostile responses: calls where calls are judged, else texts."""
    if name in CALLS:
        tool = right_items(name)[0]["name"]
        yield [tool_call("no_such_tool", f"call_{n}", n=n) for n in range(CALLS_SENT)]
        yield [deep_call(tool), tool_call(tool, "list") | {"arguments": "[" * DEEP}]
    else:
        yield [message(filled(*SHAPES.values()))]
        yield [message("[" * DEEP + "]" * DEEP), deep_call()]
        yield [message(trick) for trick in TRICKS]


async def judged(name, hostile):
    """Send hostile responses, a right one among each; return (status, body) of the hostile ones."""
    row = example_rows(name)[0]
    right = {**row, "response": response(*right_items(name))}
    _, most = read_manifest(COMPONENTS / "environments" / name / "manifest.yaml").reward.range
    found = []
    async with served(server_of(name)) as server:
        for items in hostile:
            sent = server.newcomer().post("/verify", {**row, "response": response(*items)})
            answer, beside = await asyncio.gather(sent, server.newcomer().ok("/verify", right))
            assert beside["reward"] == most
            found.append((answer.status, answer.json()))
    return found


def worth(name, status, body):
    """Return (status, reward); a call is what the smallest environment pays, whatever its arguments."""
    called = name == "example_single_tool_call" and any(item.get("name") == "get_weather" for item in items_of(body))
    return status, body["reward"] - called


def items_of(body):
    return body["response"]["output"]


@pytest.mark.parametrize("name", NAMES)
async def test_hostile_responses_earn_nothing_and_disturb_nobody(name):
    found = await judged(name, hostile_items(name))
    assert [worth(name, *one) for one in found] == [NOTHING] * len(found)


GAMES = {
    "blackjack": [message("<action>stand</action>")],
    "wordle": [tool_call("submit_guess", guess=example_rows("wordle")[0]["custom_target"])],
}


@pytest.mark.parametrize("name", GAMES)
async def test_a_hostile_turn_ends_its_own_game_and_no_other(name):
    row = example_rows(name)[0]
    async with served(server_of(name)) as server:
        alone = server.newcomer()
        await alone.ok("/reset", row)
        wanted = await alone.ok("/step", {**row, "response": response(*GAMES[name])})
        for items in [*hostile_items("mcqa"), *hostile_items("xlam_fc")]:
            hostile, beside = server.newcomer(), server.newcomer()
            await asyncio.gather(hostile.ok("/reset", row), beside.ok("/reset", row))
            sent = hostile.post("/step", {**row, "response": response(*items)})
            answer, reply = await asyncio.gather(sent, beside.ok("/step", {**row, "response": response(*GAMES[name])}))
            assert answer.status == 200
            assert reply == wanted


SESSIONS = {
    "example_mcp_weather": ("/get_weather", {"city": "Bergen"}, "The weather in Bergen is sunny and 72 F."),
    "example_session_state_mgmt": ("/increment_counter", {"count": 7}, "Seven."),
}


@pytest.mark.parametrize("name", SESSIONS)
async def test_a_hostile_response_changes_no_session_of_the_same_name(name):
    row = example_rows(name)[0]
    path, call, text = SESSIONS[name]
    async with served(server_of(name)) as server:
        for items in [*hostile_items("mcqa"), *hostile_items("xlam_fc")]:
            hostile, beside = server.newcomer(), server.newcomer()
            await asyncio.gather(hostile.ok("/seed_session", row), beside.ok("/seed_session", row))
            assert (await hostile.post(path, {key: filled("9") for key in call})).status in {400, 422}
            await beside.ok(path, call)
            answer, reply = await asyncio.gather(
                hostile.ok("/verify", {**row, "response": response(*items)}),
                beside.ok("/verify", {**row, "response": response(message(text))}),
            )
            assert (answer["reward"], reply["reward"]) == (0.0, 1.0)


@pytest.mark.skipif(not FULL, reason="set ROLLBOOK_FULL=1: every text alone takes minutes")
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", sorted(TEXTS))
async def test_megabytes_of_one_text_earn_nothing_and_disturb_nobody(name, shape):
    [found] = await judged(name, [[message(filled(SHAPES[shape]))]])
    assert worth(name, *found) == NOTHING


async def test_a_text_that_is_no_unicode_is_refused_by_name_and_disturbs_nobody():
    [(status, told)] = await judged("mcqa", [[message("\\boxed{\ud800}")]])
    assert status == 422
    assert "the text has half of a character in it (a lone surrogate" in told["detail"]
