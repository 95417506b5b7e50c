"""Outputs that can be no file: said in words, before anything is read, and without an errno."""

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
