"""Imported logs as runs: who is who, what is refused, and that the same logs give the same bytes."""

import json
import shutil
from pathlib import Path

import pytest

from rollbook.errors import OutputExistsError, RollbookError
from rollbook.inputs.logged import LogError
from rollbook.ledger.manifest_store import read_manifest
from rollbook.ledger.paths import RunPaths
from rollbook.records.identity import RolloutKey
from rollbook.records.run_status import RunState, exit_code
from rollbook.report.status_text import status_text
from rollbook.verbs.import_logs import import_logs
from rollbook.verbs.status import not_scored, run_status, story_of

LOGS = Path(__file__).parents[2] / "data" / "inspect"


def files_of(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if not path.name.endswith(".lock")}


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("epochs.eval", (12, 12, 0, 0, 0)),
        ("errors.eval", (6, 4, 0, 2, 0)),
        ("cancelled.eval", (8, 2, 0, 4, 2)),
        ("limits.json", (2, 0, 0, 2, 0)),
        ("tools.json", (1, 1, 0, 0, 0)),
    ],
)
def test_the_law_holds_for_what_was_imported_and_the_counts_are_those_of_its_status(tmp_path, name, counts):
    imported = import_logs([LOGS / name], tmp_path / "r.jsonl")
    status = run_status(tmp_path / "r.jsonl")

    assert (imported.rollouts, imported.scored, imported.unscored, imported.failed, imported.missing) == counts
    assert status.damage == ()
    assert status.coverage.law_holds
    coverage = status.coverage
    assert (coverage.planned, coverage.scored, coverage.settled, coverage.untouched) == (*counts[:2], *counts[3:])
    assert status.state is RunState.FINISHED


def test_the_same_log_gives_the_same_bytes_wherever_it_lies(tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    shutil.copy(LOGS / "cancelled.eval", elsewhere)

    import_logs([LOGS / "cancelled.eval"], tmp_path / "a" / "r.jsonl")
    import_logs([elsewhere / "cancelled.eval"], tmp_path / "b" / "r.jsonl")

    assert files_of(tmp_path / "a") == files_of(tmp_path / "b")
    assert not any(str(tmp_path).encode() in held for held in files_of(tmp_path / "b").values())


def test_an_output_is_replaced_only_when_it_is_said_and_stays_the_same_after_it(tmp_path):
    output = tmp_path / "out" / "r.jsonl"
    import_logs([LOGS / "epochs.eval"], output)
    before = files_of(output.parent)

    with pytest.raises(OutputExistsError, match="--overwrite"):
        import_logs([LOGS / "epochs.eval"], output)
    assert files_of(output.parent) == before
    (output.parent / "r_agent_metrics.json").write_bytes(b"[]")
    import_logs([LOGS / "epochs.eval"], output, overwrite=True)
    assert files_of(output.parent) == before
    import_logs([LOGS / "errors.eval"], output, overwrite=True)
    assert files_of(output.parent) != before
    assert run_status(output).coverage.planned == 6


def test_a_log_that_cannot_be_read_leaves_what_was_there(tmp_path):
    output = tmp_path / "out" / "r.jsonl"
    import_logs([LOGS / "epochs.eval"], output)
    before = files_of(output.parent)

    with pytest.raises(LogError):
        import_logs([LOGS / "scorers.json"], output, overwrite=True)
    assert files_of(output.parent) == before


def test_a_failed_import_leaves_nothing(tmp_path):
    with pytest.raises(LogError):
        import_logs([LOGS / "scorers.json"], tmp_path / "out" / "r.jsonl")
    assert not (tmp_path / "out").exists()


def test_two_logs_of_the_same_samples_are_more_tries_at_the_same_tasks(tmp_path):
    document = json.loads((LOGS / "tools.json").read_text())
    document["eval"]["created"] = "2027-01-01T00:00:00+00:00"
    (tmp_path / "again.json").write_text(json.dumps(document))

    imported = import_logs([LOGS / "tools.json", tmp_path / "again.json"], tmp_path / "r.jsonl")

    assert (imported.logs, imported.tasks, imported.rollouts) == (2, 1, 2)
    plan = [json.loads(line) for line in RunPaths(tmp_path / "r.jsonl").materialized_inputs.open()]
    assert [(row["_ng_task_index"], row["_ng_rollout_index"]) for row in plan] == [(0, 0), (0, 1)]


def test_a_sample_whose_target_differs_is_another_task(tmp_path):
    document = json.loads((LOGS / "tools.json").read_text())
    document["samples"][0]["target"] = "3"
    (tmp_path / "other.json").write_text(json.dumps(document))

    assert import_logs([LOGS / "tools.json", tmp_path / "other.json"], tmp_path / "r.jsonl").tasks == 2


def test_logs_of_two_models_are_no_repeats_of_one(tmp_path):
    document = json.loads((LOGS / "tools.json").read_text())
    document["eval"]["model"] = "openai/gpt-0"
    (tmp_path / "other.json").write_text(json.dumps(document))

    with pytest.raises(LogError, match=r"openai/gpt-0 here and of mockllm/model"):
        import_logs([LOGS / "tools.json", tmp_path / "other.json"], tmp_path / "r.jsonl")


def test_an_epoch_that_is_in_a_log_twice_is_refused_by_name(tmp_path):
    document = json.loads((LOGS / "tools.json").read_text())
    document["samples"] *= 2
    (tmp_path / "twice.json").write_text(json.dumps(document))

    with pytest.raises(LogError, match=r"twice\.json: epoch 1 of sample 'tool' is in it twice"):
        import_logs([tmp_path / "twice.json"], tmp_path / "r.jsonl")


def test_a_number_that_no_json_holds_is_named_with_its_sample(tmp_path):
    text = (
        (LOGS / "tools.json").read_text().replace('"metadata":{},"store"', '"metadata":{"n":' + "9" * 400 + '},"store"')
    )
    (tmp_path / "n.json").write_text(text)
    try:
        import_logs([tmp_path / "n.json"], tmp_path / "r.jsonl")
    except RollbookError as error:
        said = str(error)
    else:
        said = "n.json"
    assert "n.json" in said


def test_the_manifest_says_where_a_run_came_from_and_why_no_resume_takes_it_up(tmp_path):
    import_logs([LOGS / "epochs.eval"], tmp_path / "r.jsonl", scorer="match")
    manifest = read_manifest(RunPaths(tmp_path / "r.jsonl").manifest)

    assert manifest.not_resumable == "its rollouts were imported from inspect_ai (epochs.eval) and were not run here"
    [source] = manifest.others["imported"]
    assert (source["name"], source["task"], source["model"]) == ("epochs.eval", "sums", "mockllm/model")
    assert len(source["sha256"]) == 64


def test_the_story_of_an_imported_rollout_tells_how_it_ended(tmp_path):
    import_logs([LOGS / "errors.eval"], tmp_path / "r.jsonl")
    story = story_of(tmp_path / "r.jsonl", RolloutKey(1, 0))

    assert story.is_known
    assert "no tool for sum-2" in repr(story)


def test_every_log_of_a_folder_is_taken_and_what_is_none_is_passed_over(tmp_path):
    for name in ("epochs.eval", "tools.json", "make.py"):
        shutil.copy(LOGS / name, tmp_path)
    (tmp_path / "settings.json").write_text("{}")

    assert import_logs([tmp_path], tmp_path / "out" / "r.jsonl").logs == 2


@pytest.mark.parametrize("path", ["nothing.eval", "empty"])
def test_a_path_that_leads_nowhere_is_named(tmp_path, path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(LogError, match=path.partition(".")[0]):
        import_logs([tmp_path / path], tmp_path / "r.jsonl")


@pytest.mark.parametrize(("log", "output"), [("in.json", "in.json"), ("r_manifest.json", "r.jsonl")])
def test_a_log_is_never_overwritten_by_the_run_that_it_is_imported_into(tmp_path, log, output):
    source = Path(shutil.copy(LOGS / "tools.json", tmp_path / log))

    with pytest.raises(LogError, match="would be written over the log"):
        import_logs([source], tmp_path / output, overwrite=True)

    assert source.read_bytes() == (LOGS / "tools.json").read_bytes()


def test_the_status_of_an_import_says_what_it_is_and_tells_nobody_to_go_on(tmp_path):
    import_logs([LOGS / "cancelled.eval"], tmp_path / "r.jsonl")
    status = run_status(tmp_path / "r.jsonl")
    text = status_text([status])

    assert status.coverage.untouched == 2
    assert exit_code(status, require_complete=False) == 0
    assert exit_code(status, require_complete=True) == 4
    assert "No resume goes on with it: its rollouts were imported from inspect_ai" in text
    assert "--resume" not in text
    assert not any(group.owed for group in not_scored(tmp_path / "r.jsonl").groups)
    untouched = next(group.first[0] for group in not_scored(tmp_path / "r.jsonl").groups if group.why == "untouched")
    assert story_of(tmp_path / "r.jsonl", untouched).resume.startswith("nothing: its rollouts were imported")
