"""Which runs a word on the command line names."""

import click
import pytest

from rollbook.cli.run_outputs import run_named, runs_named


def run_at(output, *, results=True):
    output.parent.mkdir(parents=True, exist_ok=True)
    output.with_name(f"{output.stem}_materialized_inputs.jsonl").touch()
    output.with_name(f"{output.stem}_failures.jsonl").touch()
    output.with_name(f"{output.stem}_aggregate_metrics.json").touch()
    if results:
        output.touch()
    return output


def test_an_output_names_its_run(tmp_path):
    output = run_at(tmp_path / "r.jsonl")
    assert runs_named([str(output)]) == (output,)


def test_a_run_that_wrote_no_result_is_found_by_its_plan(tmp_path):
    output = run_at(tmp_path / "r.jsonl", results=False)
    assert runs_named([str(output)]) == (output,)
    assert runs_named([str(tmp_path)]) == (output,)


def test_results_alone_are_a_run(tmp_path):
    (tmp_path / "r.jsonl").touch()
    assert runs_named([str(tmp_path / "r.jsonl")]) == (tmp_path / "r.jsonl",)


def test_a_folder_names_every_run_in_it_at_any_depth(tmp_path):
    outputs = [run_at(tmp_path / "a" / "r.jsonl"), run_at(tmp_path / "b" / "deep" / "s.jsonl")]
    assert runs_named([str(tmp_path)]) == tuple(outputs)


@pytest.mark.parametrize("beside", ["rollouts.jsonl", "r_failures.jsonl", "r_aggregate_metrics.json"])
def test_a_folder_without_a_plan_names_the_results_in_it(beside, tmp_path):
    output = tmp_path / ("rollouts.jsonl" if beside == "rollouts.jsonl" else "r.jsonl")
    for name in (output.name, beside, "data.jsonl"):
        (tmp_path / name).touch()
    assert runs_named([str(tmp_path)]) == (output,)


def test_data_in_a_folder_is_no_run(tmp_path):
    (tmp_path / "data.jsonl").touch()
    with pytest.raises(click.UsageError, match="no run is there"):
        runs_named([str(tmp_path)])


def test_a_manifest_alone_is_a_run_of_a_folder(tmp_path):
    (tmp_path / "r_manifest.json").touch()
    assert runs_named([str(tmp_path)]) == (tmp_path / "r.jsonl",)


@pytest.mark.parametrize("companion", ["r_failures.jsonl", "r_materialized_inputs.jsonl", "r_aggregate_metrics.json"])
def test_a_companion_stands_for_its_run(companion, tmp_path):
    output = run_at(tmp_path / "r.jsonl")
    assert runs_named([str(tmp_path / companion)]) == (output,)


def test_an_output_with_a_history_of_its_own_is_a_run_whatever_its_name(tmp_path):
    run_at(tmp_path / "r.jsonl")
    own = run_at(tmp_path / "r_failures.jsonl")
    assert runs_named([str(own)]) == (own,)


@pytest.mark.parametrize("pattern", ["rollouts-*.jsonl", "rollouts-*", "**/*.jsonl", "*_failures.jsonl"])
def test_a_pattern_names_each_run_once_and_no_companion(pattern, tmp_path):
    shards = tuple(run_at(tmp_path / f"rollouts-{label}.jsonl") for label in "ab")
    (tmp_path / "rollouts-notes.txt").touch()
    assert runs_named([str(tmp_path / pattern)]) == shards


def test_words_that_the_shell_expanded_name_each_run_once(tmp_path):
    output = run_at(tmp_path / "r.jsonl")
    assert runs_named(sorted(map(str, tmp_path.iterdir()))) == (output,)


def test_brackets_in_a_name_that_is_there_are_no_pattern(tmp_path):
    output = run_at(tmp_path / "r[1].jsonl")
    assert runs_named([str(output)]) == (output,)


@pytest.mark.parametrize("word", ["nowhere.jsonl", "*.jsonl", "."])
def test_a_word_that_names_no_run_is_refused(word, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(click.UsageError, match="no run is there"):
        runs_named([word])


def test_one_run_is_asked_for_where_several_are(tmp_path):
    run_at(tmp_path / "a.jsonl")
    run_at(tmp_path / "b.jsonl")
    with pytest.raises(click.UsageError, match=r"2 runs are there \([^…]*b\.jsonl\); name one"):
        run_named(str(tmp_path))
