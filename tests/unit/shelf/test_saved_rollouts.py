"""Rollouts that were saved beside environments of the same names, verified again by ours: the same rewards.

`ROLLBOOK_PUBLISHED_METRICS` or `ROLLBOOK_SUITES` names a folder that holds them, at any depth, as
`resources_servers/<name>/data/example_rollouts*.jsonl`, with the rows they are of in `example*.jsonl`. A saved judge's
replies are given again; what tools did in a session is done again. Every difference has a reason below.
"""

import json
import os
from itertools import groupby
from pathlib import Path

import pytest

from rollbook.servers.serving.loading import load_module, served_class
from unit.shelf.calling import COMPONENTS, built, response, rows, served
from unit.shelf.judge import JUDGE, Judge

FOLDER = os.environ.get("ROLLBOOK_PUBLISHED_METRICS") or os.environ.get("ROLLBOOK_SUITES")
NAMES = sorted(path.name for path in (COMPONENTS / "environments").iterdir())
FILES = [
    file
    for name in NAMES
    for file in (sorted(Path(FOLDER).rglob(f"resources_servers/{name}/data/example_rollouts*.jsonl")) if FOLDER else ())
    if not file.stem.endswith("_inputs")
]
OTHERWISE = {
    ("mcqa/example_rollouts", 2): "the box holds the letter and the option's text, which was not read then",
    (
        "math_with_code/example_rollouts",
        4,
    ): "the box ends at its own brace; what was saved was cut at the first: \\sqrt{2",
}
"""The lines, counted from 0, whose reward is another one here, with why."""
NOT_ASKED = {"blackjack": "another deck: the cards of a saved hand cannot be dealt again"}
SESSIONS = {"example_mcp_weather", "example_session_state_mgmt"}
STEPPED = {"wordle"}
UNHURRIED_S = 300
"""A comparison of powers takes longer than the usual limit on a machine that is busy."""
JUDGED = {"equivalence_llm_judge", "math_with_judge"}

pytestmark = pytest.mark.skipif(not FILES, reason="no saved rollouts; name their folder in ROLLBOOK_PUBLISHED_METRICS")


def said_to(row):
    """Return what users and systems say in a request: what a saved rollout is matched with its row by."""
    turns = row["responses_create_params"]["input"]
    if isinstance(turns, str):
        return [turns]
    asked = [turn.get("content") for turn in turns if turn.get("role") in {"user", "system", "developer"}]
    return [text if isinstance(text, str) else "".join(part.get("text", "") for part in text or ()) for text in asked]


def row_of(saved, inputs):
    """Return the row that a rollout is of: what says the same, the one of its index where several do, else itself."""
    alike = {number: row for number, row in enumerate(inputs) if said_to(row) == said_to(saved)}
    return alike.get(saved.get("_ng_task_index"), next(iter(alike.values()), saved))


def saved_rollouts(file):
    """Return (row with the saved response, saved rollout) of each line."""
    suffix = file.stem.removeprefix("example_rollouts")
    inputs = file.with_name(f"example{suffix}.jsonl")
    inputs = rows(inputs if inputs.exists() else file.with_name("example.jsonl"))
    return [({**whole(file, row_of(saved, inputs)), "response": saved["response"]}, saved) for saved in rows(file)]


def whole(file, row):
    """Return a row with its schema, where only its prompt has it: the first JSON there, the schema's properties."""
    if file.parent.parent.name != "structured_outputs" or "schema_str" in row:
        return row
    prompt = "\n".join(said_to(row))
    properties, _ = json.JSONDecoder().raw_decode(prompt[prompt.index("{") :])
    return {**row, "schema_str": json.dumps({"type": "object", "properties": properties}), "schema_type": "json"}


def judge_of(saved):
    evaluations = saved.get("judge_evaluations") or ()
    return Judge(*(evaluation["response"] for evaluation in evaluations))


def server_of(name, saved):
    path = COMPONENTS / "resources_servers" / name / "app.py"
    server_class = served_class(load_module(path, f"resources_servers.{name}.app"), path)
    if name not in JUDGED:
        return built(server_class)
    options = {"judge_model_server": JUDGE, "judge_responses_create_params": {"input": []}}
    if name == "math_with_judge":
        options["library_verifier_timeout_seconds"] = UNHURRIED_S
    return built(server_class, client=judge_of(saved), **options)


async def verified(name, row, saved):
    async with served(server_of(name, saved)) as server:
        if name in STEPPED:
            return await played(server, row)
        if name in SESSIONS:
            await server.ok("/seed_session", row)
            for item in row["response"]["output"]:
                if item["type"] == "function_call":
                    await server.post(f"/{item['name']}", json.loads(item["arguments"]))
        return await server.ok("/verify", row)


async def played(server, row):
    """Play a game again: what the model said between two answers of the game is one step."""
    await server.ok("/reset", row)
    reply = {}
    for answered, items in groupby(row["response"]["output"], key=lambda item: item["type"] == "function_call_output"):
        if not answered:
            reply = await server.ok("/step", {**row, "response": response(*items)})
    return reply


@pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.parent.parent.name}/{file.stem}")
async def test_a_saved_rollout_is_worth_what_it_was_worth(file):
    name = file.parent.parent.name
    if name in NOT_ASKED:
        pytest.skip(NOT_ASKED[name])
    differing = {}
    for number, (row, saved) in enumerate(saved_rollouts(file)):
        reward = (await verified(name, row, saved))["reward"]
        if reward != pytest.approx(saved["reward"]):
            differing[f"{name}/{file.stem}", number] = (saved["reward"], reward)
    expected = [place for place in OTHERWISE if place[0] == f"{name}/{file.stem}"]
    assert sorted(differing) == sorted(expected), differing
