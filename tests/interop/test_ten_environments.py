"""Ten environments of the field collect their own example rows, in one process and each in an environment of its own.

`ROLLBOOK_SUITES` names the folder that holds them, as `resources_servers/<name>/`, and `ROLLBOOK_SUITES_PYTHON` an
interpreter with Rollbook, the alias package and pandas; without both nothing is run. What is made for isolation is kept
in `ROLLBOOK_SUITES_CACHE`, where that is named.
"""

import json
import os
import subprocess
from collections import Counter
from pathlib import Path

import pytest

SUITES, PYTHON = os.environ.get("ROLLBOOK_SUITES"), os.environ.get("ROLLBOOK_SUITES_PYTHON")
REPEATS = 2

WEATHER = {
    "type": "function",
    "name": "get_weather",
    "description": "The weather of a city.",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    "strict": False,
}
ENVIRONMENTS = {
    "string_match": "a single turn",
    "calendar": "a single turn whose answer is parsed",
    "example_single_tool_call": "one tool",
    "example_multi_step": "several tools in turn",
    "indirect_prompt_injection": "tools whose results try to mislead",
    "workplace_assistant": "tools over tables that one session changes",
    "example_session_state_mgmt": "state that a session keeps",
    "example_multi_turn_gymnasium": "a gymnasium: reset and step",
    "multichallenge": "a judge, which is the policy model",
    "example_mcp_weather": "tools that are served over MCP as well",
}
STANDING_IN = {"example_mcp_weather": ("--agent-type", "simple_agent")}
"""Agents for environments whose own needs a program that is not here."""

pytestmark = pytest.mark.skipif(not (SUITES and PYTHON), reason="no ROLLBOOK_SUITES with a ROLLBOOK_SUITES_PYTHON")


@pytest.fixture(scope="session")
def cache(tmp_path_factory):
    return os.environ.get("ROLLBOOK_SUITES_CACHE") or str(tmp_path_factory.mktemp("cache"))


def rows_of(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def example_rows(name, folder):
    """Write the environment's own rows, and return how often each comes: equal rows are one task.

    An agent without MCP has to be told of the tool.
    """
    rows = rows_of(Path(SUITES, "resources_servers", name, "data/example.jsonl"))
    for row in rows if name == "example_mcp_weather" else ():
        row["responses_create_params"]["tools"] = [WEATHER]
    lines = [json.dumps(row) for row in rows]
    folder.joinpath("in.jsonl").write_text("".join(f"{line}\n" for line in lines))
    return list(Counter(lines).values())


def rewards(name, folder, *words):
    """Return the reward of every rollout of a run, by its task and repeat."""
    command = [str(Path(PYTHON).with_name("gym")), "eval", "run", "--search-dir", SUITES, "--resources-server", name]
    model = ["--model-type", "simulated_model", "--retry-for", "0", *STANDING_IN.get(name, ())]
    asked = ["-i", "in.jsonl", "-o", "out/rollouts.jsonl", "--overwrite", "--num-repeats", str(REPEATS)]
    done = subprocess.run([*command, *model, *asked, *words], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    rows = rows_of(folder / "out/rollouts.jsonl")
    return sorted((row["_ng_task_index"], row["_ng_rollout_index"], row["reward"]) for row in rows)


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_an_environment_rewards_alike_embedded_and_isolated_and_loses_no_rollout(name, tmp_path, cache):
    copies = example_rows(name, tmp_path)
    embedded = rewards(name, tmp_path, "--serve", "embedded")
    planned = [(task, repeat) for task, copied in enumerate(copies) for repeat in range(copied * REPEATS)]
    assert [row[:2] for row in embedded] == planned
    assert rewards(name, tmp_path, "--isolate-all", f"++cache_dir={cache}") == embedded
