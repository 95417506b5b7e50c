"""`gym eval profile`: the words, what is printed, and what an import leads to."""

import json
from pathlib import Path

import pytest

from rollbook.cli.entry import exit_code_of
from rollbook.inputs.jsonl import read_source_rows
from unit.verbs.profiled import planned, row, write_run

LOGS = Path(__file__).parents[2] / "data" / "inspect"


@pytest.fixture
def run(tmp_path):
    keys = [(task, number) for task in range(3) for number in range(4)]
    rewards = [0, 0, 0, 0, 1, 0, 1, 0, 1, 1, 1, 1]
    rows = [row(*key, float(reward)) for key, reward in zip(keys, rewards, strict=True)]
    return write_run(tmp_path / "r.jsonl", [planned(*key) for key in keys], rows)


def test_a_profile_tells_pass_rates_what_was_kept_and_where_it_lies(run, capsys):
    words = ["eval", "profile", str(run), "--keep", "pass@4>=0.5 and mean<0.9", "--export", str(run.parent / "k.jsonl")]
    assert exit_code_of(words) == 0
    said = capsys.readouterr().out

    assert "a: 3 tasks, 3 complete, 0 partial, 0 missing; 12 of 12 rollouts (100.0 %)" in said
    assert "pass@2 0.6111 ± 0.3093 over 3 tasks" in said
    assert "Kept 1 of 3 tasks for which pass@4>=0.5 and mean<0.9" in said
    assert "2 dropped because it does not hold" in said
    assert str(run.parent / "r_reward_profiling.jsonl") in said
    [kept] = read_source_rows(run.parent / "k.jsonl")
    assert json.loads(kept.text)["expected_answer"] == "1"


def test_tasks_with_too_few_samples_are_told_in_text_and_json(run, capsys):
    lines = run.read_text().splitlines(keepends=True)
    run.write_text("".join(lines[:-1]))
    words = ["eval", "profile", str(run), "--allow-partial-rollouts", "--keep", "pass@4>0"]
    assert exit_code_of(words) == 0
    said = capsys.readouterr().out
    assert "(1 of 3 tasks have fewer than 4 rollouts and are not in it)" in said
    assert "1 not kept because it is undefined: pass@4 of fewer than 4 rollouts" in said

    assert exit_code_of([*words, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["keep"]["undefined"] == {"pass@4 of fewer than 4 rollouts": 1}
    assert told["agents"][0]["pass_at_k"][2] == {
        "k": 4,
        "value": 0.5,
        "standard_error": 0.5,
        "tasks": 2,
        "short_tasks": 1,
    }


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["{run}", "--keep", "reward > 1"], 2, "column 1: reward is no name here"),
        (["{run}", "--export", "k.jsonl"], 2, "--keep"),
        ([], 2, "say which run"),
        (["{run}", "--inputs", "a", "--rollouts", "b"], 2, "say which run"),
        (["--inputs", "a"], 2, "given together"),
        (["--inputs", "a", "--rollouts", "b"], 1, "a: no such file"),
        (["nothing"], 2, "no run is there"),
    ],
)
def test_what_cannot_be_profiled_is_one_line(run, capsys, words, code, said):
    assert exit_code_of(["eval", "profile", *(word.format(run=run) for word in words)]) == code
    told = capsys.readouterr().err
    assert said in told
    assert "Traceback" not in told


def test_several_runs_need_a_name_for_their_profile(run, tmp_path, capsys):
    write_run(tmp_path / "s.jsonl", [planned(9, 0)], [row(9, 0, 1.0)])
    assert exit_code_of(["eval", "profile", str(tmp_path)]) == 2
    assert "--output" in capsys.readouterr().err
    assert exit_code_of(["eval", "profile", str(tmp_path), "-o", str(tmp_path / "out" / "all.jsonl")]) == 0
    assert "4 tasks" in capsys.readouterr().out


def test_an_imported_run_is_profiled_like_any_other(tmp_path, capsys):
    output = str(tmp_path / "r.jsonl")
    assert exit_code_of(["eval", "import", str(LOGS / "epochs.eval"), "-o", output]) == 0
    assert exit_code_of(["eval", "profile", output, "--json", "--keep", "pass@2 >= 1"]) == 0

    told = json.loads(capsys.readouterr().out.partition("{")[2].join(["{", ""]))
    assert (told["agents"][0]["agent"], told["agents"][0]["mean_reward"]) == ("sums", pytest.approx(2 / 3))
    assert told["keep"]["kept"] == 4


def test_a_companion_names_its_run(run, capsys):
    assert exit_code_of(["eval", "profile", str(run)]) == 0
    for companion in ("r_materialized_inputs.jsonl", "r_reward_profiling.jsonl", "r_agent_metrics.json"):
        assert exit_code_of(["eval", "profile", str(run.parent / companion)]) == 0
        assert f"Profile of {run}\n" in capsys.readouterr().out


@pytest.mark.parametrize("flag", [[], ["--json"]])
def test_a_profile_over_damage_is_made_names_the_place_and_ends_with_5(run, capsys, flag):
    run.write_text(run.read_text() + "{broken\n")
    assert exit_code_of(["eval", "profile", str(run), *flag]) == 5
    said = capsys.readouterr()
    assert f"Damaged: {run}:13" in said.err
    assert (run.parent / "r_reward_profiling.jsonl").exists()
    assert not flag or [one.startswith(f"{run}:13: ") for one in json.loads(said.out)["damage"]] == [True]


def test_results_that_lie_alone_are_not_damaged_for_that(run, capsys):
    (run.parent / "r_materialized_inputs.jsonl").unlink()
    assert exit_code_of(["eval", "profile", str(run)]) == 0
    assert "There are no materialized inputs" in capsys.readouterr().out


def test_a_run_of_the_same_files_given_by_name_ends_with_5_over_damage_too(run, tmp_path, capsys):
    plan = tmp_path / "plan.jsonl"
    plan.write_bytes((run.parent / "r_materialized_inputs.jsonl").read_bytes())
    run.write_text(run.read_text() + "{broken\n")
    words = ["--inputs", str(plan), "--rollouts", str(run), "--output", str(tmp_path / "p.jsonl")]
    assert exit_code_of(["eval", "profile", *words]) == 5
    assert f"{run}:13" in capsys.readouterr().err
