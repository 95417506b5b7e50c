"""Runs for the tests of profiles: their files, written by hand."""

import json
from pathlib import Path

from rollbook.ledger.paths import RunPaths


def row(task, rollout, reward=None, **fields):
    named = {"_ng_task_index": task, "_ng_rollout_index": rollout, "agent_ref": {"name": "a"}}
    return ({} if reward is None else {"reward": reward}) | named | fields


def planned(task, rollout, **fields):
    question = {"responses_create_params": {"input": f"question {task}"}, "expected_answer": str(task)}
    return question | {"_ng_task_index": task, "agent_ref": {"name": "a"}, "_ng_rollout_index": rollout} | fields


def write_run(output: Path, plan, results, failures=()):
    """Write a run that has no manifest; without a plan there is none."""
    paths = RunPaths(output)
    output.parent.mkdir(parents=True, exist_ok=True)
    written = {paths.output: results, paths.failures: failures} | ({paths.materialized_inputs: plan} if plan else {})
    for path, rows in written.items():
        path.write_text("".join(json.dumps(one) + "\n" for one in rows))
    return output


def lines_of(path: Path):
    return [json.loads(line) for line in path.read_text().splitlines()]
