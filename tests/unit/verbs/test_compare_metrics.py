"""Aggregate metrics, read from files of any size."""

import json

import pytest

from rollbook.errors import ConfigError, ConfigPathNotFoundError
from rollbook.scoring.aggregate import compute_aggregate_metrics
from rollbook.verbs.compare_metrics import read_metrics

ROWS = [
    {"_ng_task_index": task, "_ng_rollout_index": repeat, "reward": float(task > repeat), "note": '], "x": ['}
    for task in range(6)
    for repeat in range(2)
]


def entries(*agents):
    metrics = compute_aggregate_metrics(ROWS).model_dump()
    return [{"agent_ref": {"name": agent}} | metrics for agent in agents]


def written(folder, document, indent=2):
    path = folder / "r_aggregate_metrics.json"
    path.write_text(json.dumps(document, indent=indent))
    return path


def test_a_large_file_is_read_without_its_tasks_and_that_is_said(tmp_path):
    path = written(tmp_path, entries("a", "b"))
    whole, light = read_metrics(path), read_metrics(path, large=100)
    assert list(light.entries) == ["a", "b"]
    for agent, entry in light.entries.items():
        assert entry.agent_metrics == whole.entries[agent].agent_metrics
        assert entry.repeats == whole.entries[agent].repeats
        assert not entry.tasks
    assert "flips are told from the rows alone" in light.warnings[0]


def test_a_large_file_whose_tasks_are_the_last_key_is_read_as_well(tmp_path):
    document = [{"agent_ref": {"name": "a"}, "agent_metrics": {"mean/reward": 1.0}, "group_level_metrics": [{"x": 1}]}]
    assert read_metrics(written(tmp_path, document), large=10).entries["a"].value("mean/reward") == 1.0


def test_a_file_that_is_not_there_is_told_with_what_to_type(tmp_path):
    with pytest.raises(ConfigPathNotFoundError, match="gym eval aggregate"):
        read_metrics(tmp_path / "no.json")


@pytest.mark.parametrize("text", ["", "[", "nonsense", "[" * 5000])
def test_a_file_that_is_no_metrics_is_refused_by_name(tmp_path, text):
    path = tmp_path / "m.json"
    path.write_text(text)
    with pytest.raises(ConfigError, match=r"m\.json"):
        read_metrics(path)
