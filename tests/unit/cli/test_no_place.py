"""Outputs that can be no file: said in words, before anything is read, and without an errno."""

import errno

import pytest

from run_folder import built, said, scored


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("in the way")
    (tmp_path / "folder").mkdir()
    return built(tmp_path, 1, [scored(0)])


@pytest.mark.parametrize(
    ("words", "said_of_it"),
    [
        (("profile", "-o", "file/x.jsonl"), "file is a file, and can hold no other"),
        (("profile", "--keep", "n>0", "--export", "file/x.jsonl"), "file is a file, and can hold no other"),
        (("profile", "--keep", "n>0", "--export", "folder"), "folder is a folder"),
        (("aggregate", "--no-health-check", "-o", "file/x.jsonl"), "file is a file, and can hold no other"),
        (("aggregate", "--no-health-check", "-o", "folder"), "folder is a folder; give a file name"),
        (("compare", "-o", "file"), "file is a file, and can hold no other"),
        (("compare", "-o", "file/x"), "file is a file, and can hold no other"),
    ],
)
def test_an_output_that_can_be_no_file_is_refused_in_words(words, said_of_it, folder):
    output = str(folder.output)
    runs = {"profile": [output], "aggregate": ["-i", output], "compare": ["--baseline", output, "--candidates", output]}
    answer = said(["eval", words[0], *runs[words[0]], *words[1:]])
    assert (answer.code, said_of_it in answer.err) == (1, True), answer.text
    assert "Errno" not in answer.err


@pytest.mark.parametrize(
    ("words", "flag"),
    [
        (("aggregate", "-i", "out/r.jsonl"), "--output FILE"),
        (("aggregate", "-o", "m.jsonl"), "--input-glob A,B"),
        (("reverify", "--no-serve", "--rollouts", "out/r.jsonl"), "--output FILE"),
    ],
)
def test_what_is_missing_is_told_with_the_flag_that_gives_it(words, flag, folder):
    answer = said(["eval", *words])
    assert (answer.code, f"via its flag ({flag})" in answer.err) == (2, True), answer.text


TOO_LONG = "n" * 250


@pytest.mark.parametrize(
    "words",
    [
        ("run", "--no-serve", "-i", "file", "-o", f"{TOO_LONG}.jsonl"),
        ("run", "--no-serve", "-i", f"{TOO_LONG}.jsonl", "-o", "r.jsonl"),
        ("aggregate", "-i", "out/r.jsonl", "-o", f"{TOO_LONG}.jsonl"),
        ("explain", f"{TOO_LONG}.jsonl"),
        ("profile", "out/r.jsonl", "-o", TOO_LONG),
    ],
)
def test_a_name_that_the_disk_does_not_take_is_told_in_words(words, folder):
    answer = said(["eval", *words])
    assert (answer.code, len(answer.err.splitlines())) == (1, 1), answer.text
    assert f"{TOO_LONG}" in answer.err
    assert "too long" in answer.err


def test_what_may_not_be_looked_into_is_told_in_words(folder, monkeypatch):
    def denied(path, **_):
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr("pathlib.Path.stat", denied)
    answer = said(["eval", "explain", "shut/r.jsonl"])
    assert (answer.code, answer.err) == (1, "Error: shut/r.jsonl: Permission denied\n"), answer.text


def test_results_without_a_plan_are_told_what_the_inputs_of_a_judging_are(folder):
    folder.plan.unlink()
    flags = ("--resources-server", "mcqa", "--model-type", "simulated_model", "-o", "again.jsonl")
    answer = said(["eval", "reverify", "--rollouts", str(folder.output), *flags])
    assert "_materialized_inputs.jsonl: no such file; name one with --inputs: the rows that were run" in answer.err


def test_a_profile_of_swapped_files_says_which_is_which(folder):
    answer = said(["eval", "profile", "--inputs", str(folder.output), "--rollouts", str(folder.plan)])
    assert (answer.code, "--inputs takes them, and --rollouts takes the results" in answer.err) == (1, True)


def test_a_profile_names_the_first_line_of_the_inputs_that_cannot_be_read(folder, tmp_path):
    (tmp_path / "inputs.jsonl").write_text("no row\n")
    answer = said(["eval", "profile", "--inputs", "inputs.jsonl", "--rollouts", str(folder.output)])
    assert (answer.code, "1 line of those cannot be read, first inputs.jsonl:1" in answer.err) == (1, True), answer.err
