"""One attempt that has several results in one file: what the commands that score say of it."""

import json

import msgspec
import pytest

from rollbook.api.reverify_output import sound_history
from rollbook.api.reverify_sources import saved_run
from rollbook.config.reverification import RolloutReverificationConfig
from rollbook.errors import InputError
from rollbook.ledger.digests import sha256_of
from rollbook.ledger.manifest_store import write_manifest
from rollbook.ledger.run import Run
from rollbook.records.manifest import PlanDigest
from rollbook.scoring.coverage_report import coverage_report
from rollbook.scoring.imputation import NOTHING_COUNTED
from rollbook.testing.manual_clock import ManualClock
from rollbook.verbs.compare_side import side_of
from rollbook.verbs.profile_run import ProfileError, run_at
from rollbook.verbs.status import read_run, run_status
from run_folder import RunFolder, said
from saved_run import SavedRun, planned
from stub import adding, serving

KEYS = [(task, rollout) for task in range(2) for rollout in range(2)]
PLAN = [planned(*key) for key in KEYS]


def run_with(folder, *later, managed=True, **fields):
    """A whole run in `folder`, and results of its rollout 1-0 with the rewards `later` after the first, which is 1."""
    run = SavedRun(folder, PLAN, managed=managed)
    for key in KEYS:
        run.reserves((*key, 0)) if managed else None
        run.result(*key, **fields)
    for reward in later:
        run.result(1, 0, reward=reward, **fields)
    if managed:
        plan = run.paths.materialized_inputs
        digest = PlanDigest(sha256=sha256_of(plan), bytes=plan.stat().st_size, rollouts=len(PLAN))
        write_manifest(run.paths.manifest, msgspec.structs.replace(run.manifest, plan=digest))
    return run


def aggregated(*outputs, to, code):
    given = ["--input-glob", ",".join(map(str, outputs)), "--output", str(to), "--no-health-check", "--json"]
    done = said(["eval", "aggregate", *given])
    assert done.code == code, done.text
    return json.loads(done.out), json.loads(to.with_name(f"{to.stem}_coverage.json").read_text())


def test_results_of_one_attempt_that_differ_are_damage_of_a_run_and_are_counted(tmp_path):
    run = run_with(tmp_path, 0.0)
    status = run_status(run.output)
    [damage] = status.damage
    assert damage.place == f"{run.output}:5"
    assert f"attempt 0 of rollout 1-0 has another result than at {run.output}:3; restore the file" in damage.what
    assert (status.coverage.disputed, status.coverage.scored, status.is_believable) == (1, 4, False)


def test_of_very_many_the_first_is_named_and_the_others_are_counted(tmp_path):
    run = run_with(tmp_path, 0.0)
    run.result(0, 1, reward=0.0)
    [damage] = run_status(run.output).damage
    assert "rollout 0-1" in damage.what
    assert "and 1 more rollout like it" in damage.what


def test_an_aggregation_of_them_counts_the_later_one_says_so_and_gives_no_headline(tmp_path):
    run = run_with(tmp_path / "run", 0.0)
    told, coverage = aggregated(run.output, to=tmp_path / "out.jsonl", code=5)
    assert coverage["disputed"] == 1
    assert [group["disputed"] for group in coverage["groups"]] == [1]
    [entry] = told["metrics"]
    assert entry["key_metrics"]["mean/reward"] == 0.75
    assert (entry["key_metrics"]["coverage/disputed"], entry["key_metrics"]["coverage/scored"]) == (1, 4)
    assert "damaged" in told["groups"][0]["headline"]["withheld"]
    assert any("attempt 0 of rollout 1-0 has another result" in note for note in told["notes"])


@pytest.mark.parametrize("managed", [True, False])
def test_where_lines_name_no_run_the_later_counts_and_that_is_told_and_counted(tmp_path, managed):
    run = run_with(tmp_path / "run", 0.0, managed=managed, _ng_run_id=None)
    status = run_status(run.output)
    assert (status.damage, status.coverage.disputed) == ((), 1)
    said_of = f"{run.output}:5: rollout 1-0 has another result than at {run.output}:3, and the lines name no run"
    assert any(note.startswith(said_of) for note in status.notes)
    assert any(note.startswith(said_of) for note in side_of(run.output).notes)
    told, coverage = aggregated(run.output, to=tmp_path / "out.jsonl", code=0)
    assert any(note.startswith(said_of) for note in told["notes"])
    assert (coverage["disputed"], coverage["groups"][0]["headline"]["value"]) == (1, 0.75)
    assert told["metrics"][0]["agent_metrics"]["coverage/disputed"] == 1


@pytest.mark.parametrize("fields", [{}, {"_ng_run_id": None}])
def test_a_line_that_is_there_twice_counts_once_and_is_told(tmp_path, fields):
    usage = {"response": {"usage": {"input_tokens": 10, "output_tokens": 1, "total_tokens": 11}}}
    run = run_with(tmp_path / "run", 1.0, 1.0, **usage, **fields)
    status = run_status(run.output)
    assert (status.damage, status.coverage.disputed, status.tokens["input_tokens"]) == ((), 0, 40)
    said_of = f"{run.output}:5: the result of rollout 1-0 is there already, at {run.output}:3; each counts once"
    assert said_of in status.notes
    told, coverage = aggregated(run.output, to=tmp_path / "out.jsonl", code=0)
    assert said_of in told["notes"]
    assert coverage["disputed"] == 0
    assert "coverage/disputed" not in told["metrics"][0]["agent_metrics"]


def test_results_that_judge_a_saved_one_anew_follow_it_and_nothing_is_told(tmp_path):
    run = run_with(tmp_path)
    run.result(1, 0, reward=0.0, _ng_rejudged_failure_id="result-sha256:0")
    status = run_status(run.output)
    assert (status.damage, status.notes, status.coverage.disputed) == ((), (), 0)
    run_at(run.output).refuse_doubles()


@pytest.mark.parametrize("later", [0.0, 1.0])
def test_a_profile_refuses_both_and_says_what_to_do(tmp_path, later):
    run = run_with(tmp_path, later)
    with pytest.raises(ProfileError, match=r":5: the rollout of .*:3 is there twice; keep the right line in a copy"):
        run_at(run.output).refuse_doubles()


def source(run):
    settings = RolloutReverificationConfig(
        materialized_inputs_jsonl_fpath=str(run.paths.materialized_inputs),
        rollouts_jsonl_fpath=str(run.output),
        output_jsonl_fpath=str(run.output.with_name("new.jsonl")),
    )
    return saved_run(run.output, run.paths.materialized_inputs, settings)


def test_what_is_disputed_is_not_judged_again_and_of_lines_that_name_no_run_it_is_told(tmp_path):
    with pytest.raises(InputError, match="attempt 0 of rollout 1-0 has another result"):
        source(run_with(tmp_path / "named", 0.0))
    assert ["the lines name no run" in note for note in source(run_with(tmp_path, 0.0, _ng_run_id=None)).notes()] == [
        True
    ]


def test_a_resume_is_refused_over_results_that_differ_and_goes_on_where_it_is_told_to(tmp_path):
    folder = RunFolder(tmp_path).asks(adding(2))
    with serving() as stub:
        assert folder.run(stub).code == 0
        row = json.loads(folder.results.read_text().splitlines()[0])
        with folder.results.open("a") as file:
            file.write(json.dumps(row | {"reward": row["reward"] + 1}) + "\n")
        refused = folder.run_unread(stub, "--resume")
        gone_on = folder.run_unread(stub, "--resume", "+allow_unsafe_resume=true")
    assert refused.code == gone_on.code == 5
    assert "has another result than at" in refused.err
    assert "resumed all the same" in gone_on.err


def test_a_resume_tells_of_a_line_that_is_there_twice(tmp_path):
    folder = RunFolder(tmp_path).asks(adding(2))
    with serving() as stub:
        folder.run(stub)
        with folder.results.open("a") as file:
            file.write(folder.results.read_text().splitlines()[0] + "\n")
        resumed = folder.run_unread(stub, "--resume")
    assert resumed.code == 0
    assert f"{folder.results}:3: the result of rollout " in resumed.err


def test_metrics_that_are_computed_over_disputed_results_say_how_many_there_are(tmp_path):
    folder = RunFolder(tmp_path).asks(adding(2))
    with serving() as stub:
        folder.run(stub)
        row = json.loads(folder.results.read_text().splitlines()[0])
        with folder.results.open("a") as file:
            file.write(json.dumps(row | {"reward": row["reward"] + 1}) + "\n")
        folder.run_unread(stub, "--resume", "+allow_unsafe_resume=true", "--count-missing-as-zero")
    [entry] = json.loads(folder.output.with_name("r_aggregate_metrics.json").read_text())
    assert (entry["agent_metrics"]["coverage/disputed"], entry["agent_metrics"]["coverage/scored"]) == (1, 2)
    assert json.loads(folder.output.with_name("r_coverage.json").read_text())["disputed"] == 1


def test_a_task_that_is_listed_says_how_many_of_it_are_disputed(tmp_path):
    run = run_with(tmp_path, 0.0, managed=False)
    run.paths.materialized_inputs.write_text("".join(json.dumps(one) + "\n" for one in [*PLAN, planned(1, 2)]))
    reading = read_run(run.output)
    told = coverage_report(reading.history.standings, NOTHING_COUNTED, reading.rules).to_json()
    assert [(task["task"], task["disputed"], task["untouched"]) for task in told["tasks"]] == [(1, 1, 1)]


def test_judging_for_a_run_itself_tells_of_a_line_that_is_there_twice(tmp_path):
    told = []
    sound_history(Run(run_with(tmp_path, 1.0).paths, ManualClock()), told.append)
    assert ["is there already" in text for text in told] == [True]
