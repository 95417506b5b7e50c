"""MMLU's published archive and the folder that it unpacks to, in their own form and in damaged ones."""

import io
import json
import tarfile

import pytest

from benchmarks.mmlu.prepare import prepare
from rollbook import InputError

BOTANY = (
    "Which part of a plant takes up water?,Leaf,Root,Flower,Seed,B\r\n"
    '"Which of these, if any, is a moss?",Oak,"Peat, ""bog"" moss",Rye,,B\r\n'
)
KNOTS = '\ufeff"Two lines\nof a question",1,2,3,4,D\n'


def folder_of(tmp_path, **subjects):
    folder = tmp_path / "data" / "test"
    folder.mkdir(parents=True, exist_ok=True)
    for subject, text in subjects.items():
        (folder / f"{subject}_test.csv").write_text(text, encoding="utf-8", newline="")
    return tmp_path


def archive_of(tmp_path, **files):
    with tarfile.open(tmp_path / "data.tar", "w") as archive:
        for name, text in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(text.encode())
            archive.addfile(member, io.BytesIO(text.encode()))
    return tmp_path / "data.tar"


def rows_of(tmp_path, source, expected_rows=3, **arguments):
    path = prepare(tmp_path / "out" / "mmlu.jsonl", str(source), expected_rows, **arguments)
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_subjects_come_by_name_and_their_questions_in_order(tmp_path):
    rows = rows_of(tmp_path, folder_of(tmp_path, knots=KNOTS, botany=BOTANY))
    answers = {row["id"]: row["expected_answer"] for row in rows}
    assert list(answers.items()) == [("botany/0", "B"), ("botany/1", "B"), ("knots/0", "D")]
    assert rows[0] == {
        "id": "botany/0",
        "question": "Which part of a plant takes up water?",
        "options_text": "A: Leaf\nB: Root\nC: Flower\nD: Seed",
        "options": [{"A": "Leaf"}, {"B": "Root"}, {"C": "Flower"}, {"D": "Seed"}],
        "expected_answer": "B",
        "subject": "botany",
    }
    assert rows[1]["question"] == "Which of these, if any, is a moss?"
    assert rows[1]["options"][1] == {"B": 'Peat, "bog" moss'}
    assert rows[2]["question"] == "Two lines\nof a question"


def test_the_archive_makes_the_same_rows_and_its_other_files_are_not_looked_at(tmp_path):
    named = {"data/test/botany_test.csv": BOTANY, "data/test/knots_test.csv": KNOTS}
    others = {"data/dev/botany_dev.csv": "a,b\n", "data/test/._botany_test.csv": "\0", "data/README.txt": "words"}
    archive = archive_of(tmp_path, **others, **named)
    folder = folder_of(tmp_path, knots=KNOTS, botany=BOTANY) / "data" / "test"
    assert rows_of(tmp_path, archive) == rows_of(tmp_path, folder)


def test_some_subjects_can_be_taken_and_one_that_is_not_there_is_told(tmp_path):
    source = folder_of(tmp_path, knots=KNOTS, botany=BOTANY)
    assert [row["id"] for row in rows_of(tmp_path, source, subjects=["knots"])] == ["knots/0"]
    with pytest.raises(InputError, match="no subject 'knot'; there are botany, knots"):
        rows_of(tmp_path, source, subjects=["knot"])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("One?,a,b,c,d,A\nTwo?,a,b,c,A\n", "botany_test.csv:2: 5 fields, and there are 6 columns"),
        ("One?,a,b,c,d,A\n\nTwo?,a,b,c,d,E\n", "botany_test.csv:3: the answer is 'E', and no letter of ABCD"),
        (" ,a,b,c,d,A\n", "botany_test.csv:1: `question` is empty"),
        ("", "botany_test.csv: the file holds no rows"),
    ],
)
def test_a_line_that_is_no_question_is_told_by_file_and_line(tmp_path, text, said):
    with pytest.raises(InputError) as caught:
        rows_of(tmp_path, folder_of(tmp_path, botany=text))
    assert said in str(caught.value)


def test_an_archive_without_questions_and_one_that_is_none_are_told(tmp_path):
    with pytest.raises(InputError, match=r"data\.tar: it holds no test/<subject>_test\.csv"):
        rows_of(tmp_path, archive_of(tmp_path, **{"data/dev/botany_dev.csv": BOTANY}))
    (tmp_path / "data.tar").write_bytes(b"<html>not found</html>")
    with pytest.raises(InputError, match=r"data\.tar: no archive that can be read"):
        rows_of(tmp_path, tmp_path / "data.tar")
