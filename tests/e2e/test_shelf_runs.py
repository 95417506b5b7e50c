"""Every environment of the shelf collects its example rows, in one process and in many, with the same rewards.

Set ROLLBOOK_FULL=1 to serve all of them by processes too, which are more than sixty; without it, those of two do.
"""

import json
import os
from pathlib import Path

import pytest

from rollbook.cli.entry import exit_code_of
from rollbook.config import catalog
from rollbook.config.manifest import read_manifest
from rollbook.config.roots import PARENT_DIR

FULL = bool(os.environ.get("ROLLBOOK_FULL"))
MANIFESTS = [read_manifest(entry.path / "manifest.yaml") for entry in catalog.environments([PARENT_DIR])]
NAMES = [manifest.name for manifest in MANIFESTS]
STATEFUL = ("office", "wordle")
EQUAL = "[[A=B]]"
SIMULATED = "++policy_model.responses_api_models.simulated_model"
TIMES = [
    "++code_gen.resources_servers.code_gen.unit_test_timeout_secs=120",
    "++math_with_judge.resources_servers.math_with_judge.library_verifier_timeout_seconds=120",
]
"""What bounds a check, out of a busy machine's way: no reward is to depend on how fast it is."""

pytestmark = pytest.mark.filterwarnings("error::DeprecationWarning:rollbook")


def collected(names, serve, folder):
    """Return the rewards of the example rows of these environments, by agent and task."""
    output, given, verdicts = folder / serve / "r.jsonl", folder / "rows.jsonl", folder / "verdicts.jsonl"
    rows = [row for manifest in MANIFESTS if manifest.name in names for row in rows_of(manifest)]
    given.write_text(lines(rows))
    verdicts.write_text(lines({"question": row["question"], "expected_answer": EQUAL} for row in rows if judged(row)))
    code = exit_code_of(
        [
            *["eval", "run", *(word for name in names for word in ("--environment", name))],
            *["--model-type", "simulated_model", "-i", str(given), "-o", str(output)],
            *["--serve", serve, "--retry-for", "0", *(TIMES if len(names) > len(STATEFUL) else [])],
            *[f"{SIMULATED}.policy.p_correct=0.6", f"{SIMULATED}.answers_fpath=[{given},{verdicts}]"],
        ]
    )
    assert code == 0
    assert (folder / serve / "r_failures.jsonl").read_bytes() == b""
    rows = [json.loads(line) for line in output.read_bytes().splitlines()]
    return {(row["agent_ref"]["name"], row["_ng_task_index"]): row["reward"] for row in rows}


def lines(rows):
    return "".join(json.dumps(row) + "\n" for row in rows)


def judged(row):
    """Whether a judge model is asked about the row: it is found by its question inside the judge's prompt."""
    return row["agent_ref"]["name"].startswith("equivalence_llm_judge")


def rows_of(manifest):
    """Yield the example rows of an environment, with the agent that is to run them."""
    agent = {"type": "responses_api_agents", "name": f"{manifest.name}_{manifest.agent_server}"}
    for dataset in manifest.datasets:
        for line in Path(PARENT_DIR, dataset.jsonl_fpath).read_text(encoding="utf-8").splitlines():
            yield {**json.loads(line), "agent_ref": agent}


def served_alike(names, folder):
    embedded = collected(names, "embedded", folder)
    assert embedded == collected(names, "processes", folder)
    return embedded


def test_all_collect_their_example_rows_in_one_run(tmp_path):
    rewards = collected(NAMES, "embedded", tmp_path)
    for manifest in MANIFESTS:
        own = [reward for (agent, _), reward in rewards.items() if agent.startswith(f"{manifest.name}_")]
        low, high = manifest.reward.range
        assert len(own) == len([*rows_of(manifest)])
        assert all(low <= reward <= high for reward in own)
        assert any(low < reward for reward in own), f"{manifest.name}: nothing was right"


def test_an_environment_that_is_named_alone_collects_its_example_rows(tmp_path):
    output = tmp_path / "r.jsonl"
    words = ["eval", "run", "--environment", "string_match", "--model-type", "simulated_model", "-o", str(output)]
    assert exit_code_of(words) == 0
    assert len(output.read_bytes().splitlines()) == 5


def test_environments_with_sessions_give_the_same_rewards_by_processes(tmp_path):
    assert {0.0, 1.0} <= {*served_alike(STATEFUL, tmp_path).values()}


@pytest.mark.skipif(not FULL, reason="set ROLLBOOK_FULL=1: every environment by processes takes minutes")
def test_all_environments_give_the_same_rewards_by_processes(tmp_path):
    assert len(served_alike(NAMES, tmp_path)) == sum(len([*rows_of(manifest)]) for manifest in MANIFESTS)


@pytest.mark.skipif(not FULL, reason="set ROLLBOOK_FULL=1: every environment on its own takes minutes")
@pytest.mark.parametrize("name", NAMES)
def test_each_environment_on_its_own_collects_what_is_its(name, tmp_path):
    output = tmp_path / "r.jsonl"
    words = ["eval", "run", "--environment", name, "--model-type", "simulated_model", "-o", str(output)]
    assert exit_code_of(words) == 0
    [own] = [manifest for manifest in MANIFESTS if manifest.name == name]
    assert len(output.read_bytes().splitlines()) == len([*rows_of(own)])
