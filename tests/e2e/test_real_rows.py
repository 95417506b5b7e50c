"""Real task rows through every environment that takes them, in one process and in many, with the same rewards."""

import json
import os
from pathlib import Path

import pytest

from rollbook.cli.entry import exit_code_of

HERE = Path(__file__).resolve()
ROWS = Path(os.environ.get("ROLLBOOK_SHARED_DATA") or HERE.parents[3] / "shared" / "data" / "rows")
ENVIRONMENTS = {
    "blackjack": [],
    "example_session_state_mgmt": [],
    "example_single_tool_call": [],
    "math_with_judge": ["++math_with_judge.resources_servers.math_with_judge.should_use_judge=false"],
    "mcqa": [],
    "reasoning_gym": [],
}

pytestmark = pytest.mark.skipif(not ROWS.is_dir(), reason=f"no task rows at {ROWS}")


def rewards(environment, serve, folder):
    output = folder / serve / "r.jsonl"
    code = exit_code_of(
        [
            *["eval", "run", "--resources-server", environment, "--model-type", "simulated_model"],
            *["-i", str(ROWS / f"{environment}.jsonl"), "-o", str(output), "--num-repeats", "3", "--serve", serve],
            f"++policy_model.responses_api_models.simulated_model.answers_fpath={ROWS / f'{environment}.jsonl'}",
            *ENVIRONMENTS[environment],
        ]
    )
    assert code == 0
    assert (folder / serve / "r_failures.jsonl").read_bytes() == b""
    rows = [json.loads(line) for line in output.read_bytes().splitlines()]
    return {(row["_ng_task_index"], row["_ng_rollout_index"]): row["reward"] for row in rows}


@pytest.mark.parametrize("environment", sorted(ENVIRONMENTS))
def test_rewards_are_the_same_embedded_and_with_processes(environment, tmp_path):
    count = len((ROWS / f"{environment}.jsonl").read_bytes().splitlines())
    embedded = rewards(environment, "embedded", tmp_path)
    assert len(embedded) == 3 * count
    assert embedded == rewards(environment, "processes", tmp_path)


def test_a_policy_that_is_sometimes_right_is_seen_as_such(tmp_path):
    found = set(rewards("mcqa", "embedded", tmp_path).values())
    assert found == {0.0, 1.0}
