"""Reports of a run that another one replaced at its output."""

import json

import pytest

from run_folder import RunFolder, said
from stub import adding, serving

PROFILE = ("r_reward_profiling.jsonl", "r_agent_metrics.json", "r_repeat_level_metrics.json")
HEALTH = ("quality_summary.json", "rollout_verdicts.jsonl")
COMPARED = ("compare_report.json", "compare_report.md")


@pytest.fixture
def folder(tmp_path):
    """A run with every report there is of it, and another run beside it."""
    folder = RunFolder(tmp_path).asks(adding(3))
    with serving() as stub:
        folder.run(stub)
        said(["eval", "profile", str(folder.output)])
        (folder.folder / COMPARED[0]).write_text(
            json.dumps({"baseline": "b.jsonl", "candidates": [str(folder.output)]})
        )
        (folder.folder / COMPARED[1]).write_text("better")
    return folder


def there(folder):
    return {name for name in (*PROFILE, *HEALTH, *COMPARED) if (folder.folder / name).exists()}


def overwritten(folder, *flags):
    with serving() as stub:
        return folder.run(stub, "--overwrite", "--disable-aggregation", *flags)


def test_a_run_that_is_overwritten_takes_its_reports_with_it(folder):
    assert there(folder) == {*PROFILE, *HEALTH, *COMPARED}
    assert overwritten(folder).code == 0
    assert there(folder) == set()


def test_a_run_that_is_gone_on_with_keeps_them(folder):
    with serving() as stub:
        folder.resume(stub)
    assert there(folder) == {*PROFILE, *HEALTH, *COMPARED}


def test_reports_on_another_run_of_the_folder_stay(folder):
    summary = json.loads((folder.folder / HEALTH[0]).read_bytes())
    for source in summary["run"]["artifacts"]["sources"]:
        source["file"] = "other.jsonl"
    (folder.folder / HEALTH[0]).write_text(json.dumps(summary))
    (folder.folder / COMPARED[0]).write_text(json.dumps({"baseline": "b.jsonl", "candidates": ["other.jsonl"]}))
    assert overwritten(folder).code == 0
    assert there(folder) == {*HEALTH, *COMPARED}
