"""The logs under tests/data/inspect, made again by whatever inspect_ai is installed, say the same."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from rollbook.inputs.log_formats import opened_logs

LOGS = Path(__file__).parents[2] / "data" / "inspect"
KEPT = sorted(
    path.name for path in LOGS.iterdir() if path.suffix in {".eval", ".json"} and path.name != "cancelled.eval"
)


def told_by(path):
    [log] = opened_logs([path])
    scorer = "match" if path.stem == "scorers" else None
    return [(rollout.content, rollout.repeat, rollout.ending.outcome) for rollout in log.rollouts(scorer)]


@pytest.mark.skipif(importlib.util.find_spec("inspect_ai") is None, reason="inspect_ai is not installed")
def test_the_logs_are_what_inspect_ai_writes(tmp_path):
    subprocess.run([sys.executable, str(LOGS / "make.py"), str(tmp_path)], check=True, timeout=300)

    for name in KEPT:
        assert told_by(tmp_path / name) == told_by(LOGS / name)
