"""Tasks of a task set, each an episode in sessions of its own, with model calls observed."""

from contextlib import ExitStack
from pathlib import Path

import pytest

from interop.rows import companion, example_rows, json_lines, key_of, plan_keys, rewards, write_rows

CONFIG = Path(__file__).with_name("episodes.yaml")
FOUR = [(collector, servers) for collector in ("ours", "theirs") for servers in ("ours", "theirs")]
TASKSET, REPEATS = "weather", 2


@pytest.fixture(scope="module")
def heads(field, tmp_path_factory):
    """Keep both sides' servers of `episodes.yaml` up."""
    captures = tmp_path_factory.mktemp("captures")
    model = [
        "--model-type",
        "openai_model",
        "-m",
        "known",
        "--model-url",
        field.endpoint.url,
        "--model-api-key",
        "none",
    ]
    with ExitStack() as up:
        yield {
            name: up.enter_context(
                side.deployment("--config", CONFIG, *model, f"++model_call_capture_dir={captures / name}")
            )
            for name, side in field.sides.items()
        }


@pytest.fixture(scope="module")
def runs(field, heads, tmp_path_factory):
    """Return the output of each of the four runs."""
    folder = tmp_path_factory.mktemp("episodes")
    rows = write_rows(folder / "in.jsonl", [row for row in map(_as_task, example_rows()) if row is not None])
    outputs = {who: folder / "-on-".join(who) / "rollouts.jsonl" for who in FOUR}
    for (collector, servers), output in outputs.items():
        words = ["eval", "run", "--no-serve", "-i", rows, "-o", output, "--num-repeats", REPEATS, "--concurrency", 4]
        route = f"++environment_server_routes.{TASKSET}=weather_turns"
        said = field.sides[collector].run(*words, route, *heads[servers].overrides)
        assert said.code == 0, said.text[-3000:]
    return outputs


@pytest.mark.parametrize("who", FOUR)
def test_every_episode_and_every_row_beside_it_is_collected_once(runs, who):
    output = runs[who]
    assert rewards(output).keys() == plan_keys(output).keys()
    assert rewards(output) == rewards(runs["ours", "ours"])
    assert json_lines(companion(output, "_failures.jsonl")) == []


@pytest.mark.parametrize("who", FOUR)
def test_an_episode_names_its_task_and_used_the_tool_of_its_session(runs, who):
    episodes = sorted((row for row in json_lines(runs[who]) if "_ng_task_id" in row), key=key_of)
    assert [row["_ng_task_id"]["task_id"] for row in episodes] == [str(n) for n in range(5) for _ in range(REPEATS)]
    for row in episodes:
        kinds = [item["type"] for item in row["response"]["output"]]
        assert kinds == ["function_call", "function_call_output", "message"]
        assert (row["_ng_environment_server"], row["_ng_result_type"]) == ("weather_turns", "single_agent_turn")


def _as_task(row):
    """Return a row of the tool's environment as a task of the task set, one of mcqa as it is, and no other."""
    agent = row["agent_ref"]["name"]
    if agent == "mcqa_simple_agent":
        return row
    if agent != "example_single_tool_call_simple_agent":
        return None
    task = {"taskset": TASKSET, "task_id": row["uuid"].rpartition("-")[2]}
    data = {"responses_create_params": row["responses_create_params"], "task_data": {"uuid": row["uuid"]}}
    return {"task_id": task, "task_input": data}
