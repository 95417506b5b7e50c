"""GPQA's published archive and the CSV in it, in their own form and in damaged ones."""

import base64
import csv
import io
import json
import zipfile

import pytest

from benchmarks.gpqa_diamond.prepare import prepare
from rollbook import InputError

COLUMNS = (
    *("Question", "Correct Answer", "Incorrect Answer 1", "Incorrect Answer 2", "Incorrect Answer 3"),
    *("Explanation", "Subdomain", "High-level domain", "Record ID", "Canary String"),
)
RINGS = (
    "How many rings\nhas this made-up compound?",
    "two\n",
    "one",
    "three, or four",
    "none",
    "",
    "Organic",
    "Chemistry",
)
FIELDS = ("Which field, if any, is at rest?", "the second", "the first", "the third", "all", "", "Fields", "Physics")
LOCKED = base64.b64decode("""
UEsDBBQACQAIAG1Jfl2I7lD96wAAAFYBAAAYAAAAZGF0YXNldC9ncHFhX2RpYW1vbmQuY3N2PXC2gz5+YzZ7yiGbgpiZWwxuc4VT9HbkcfSPrP
zTDwJqaCm3BQC2m0Ia8dSYIXGo5vmeDy7icXfWY5OYImNfvHrYygsS/Ogfnop/FgMoHpp53yTX4uL3+BP9qL+7nHDHVBdUcX1i/zKIYu1qexIT
SeSUDNpv+fnqzSxG2ZnPJC6y7u4IXWleA8Bdshe9hmY7lc4ygu1F8XeINEqv4qfqx87n9zQjPHi02f5P20TMrW5xxqInDBQEQrEZrr9crreV3U
MJ7xSeJjZbhTRwrWYIFlAky93sQlSq7KYCfjqoYb4Jqfzs0nx4c2KgvFBLBwiI7lD96wAAAFYBAABQSwECHgMUAAkACABtSX5diO5Q/esAAABW
AQAAGAAAAAAAAAABAAAApIEAAAAAZGF0YXNldC9ncHFhX2RpYW1vbmQuY3N2UEsFBgAAAAABAAEARgAAADEBAAAAAA==
""")
KEYWORD = "a-password"
"""That of the archive, which holds the two rows above."""


def csv_of(*rows, columns=COLUMNS, ending="\r\n"):
    text = io.StringIO()
    writer = csv.writer(text, lineterminator=ending)
    writer.writerows([columns, *rows])
    return text.getvalue().encode()


def row(questions, own_id):
    return (*questions, own_id, "")


def rows_of(tmp_path, content, expected_rows=2, name="gpqa_diamond.csv", **arguments):
    (tmp_path / name).write_bytes(content)
    path = prepare(tmp_path / "out" / "gpqa_diamond.jsonl", str(tmp_path / name), expected_rows, **arguments)
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def right_texts(rows):
    return [
        next(option[r["expected_answer"]] for option in r["options"] if r["expected_answer"] in option) for r in rows
    ]


def test_the_right_option_is_where_its_letter_says(tmp_path):
    rows = rows_of(tmp_path, csv_of(row(RINGS, "rec1"), row(FIELDS, "rec2")))
    assert right_texts(rows) == ["two", "the second"]
    subsets = [(r["id"], r["metadata"]["subset_for_metrics"]) for r in rows]
    assert subsets == [("rec1", "Chemistry"), ("rec2", "Physics")]
    assert rows[0]["question"] == RINGS[0]


def test_the_order_of_options_follows_from_seed_and_id_and_not_from_the_other_rows(tmp_path):
    many = [row(RINGS, f"rec{number}") for number in range(40)]
    rows = rows_of(tmp_path, csv_of(*many), 40)
    again = {r["id"]: r for r in rows_of(tmp_path, csv_of(*reversed(many), ending="\n"), 40)}
    assert all(again[r["id"]] == r for r in rows)
    assert {r["expected_answer"] for r in rows} == set("ABCD")
    assert rows_of(tmp_path, csv_of(*many), 40, seed=1) != rows


def test_the_archive_is_read_with_its_password_and_makes_the_same_rows(tmp_path):
    plain = rows_of(tmp_path, csv_of(row(RINGS, "rec1"), row(FIELDS, "rec2")))
    assert rows_of(tmp_path, LOCKED, name="dataset.zip", password=KEYWORD) == plain
    with pytest.raises(InputError, match=r"dataset\.zip: it has a password, .*prepare_script_args\.password="):
        rows_of(tmp_path, LOCKED, name="dataset.zip")
    with pytest.raises(InputError, match=r"dataset\.zip: the password does not open it"):
        rows_of(tmp_path, LOCKED, name="dataset.zip", password=KEYWORD[:-1])


def test_an_archive_without_the_file_is_told(tmp_path):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("dataset/gpqa_main.csv", csv_of(row(RINGS, "rec1")))
    with pytest.raises(InputError, match=r"it holds no gpqa_diamond\.csv"):
        rows_of(tmp_path, packed.getvalue(), name="dataset.zip")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (csv_of(row(RINGS, "rec1"), row(("", *FIELDS[1:]), "rec2")), "gpqa_diamond.csv:5: `Question` is empty"),
        (csv_of(row(RINGS, "rec1"), RINGS), "gpqa_diamond.csv:5: 8 fields, and there are 10 columns"),
        (csv_of(row(RINGS, "rec1"), row(FIELDS, "rec1")), 'rows 1 and 2 have the same id "rec1"'),
        (csv_of(("How many?",), columns=("Question",)), "`Record ID` is missing; there is `Question`"),
        (csv_of(), "gpqa_diamond.csv: the file holds no rows"),
        (b"Question\n\xff\xfe\n", "gpqa_diamond.csv:2: byte 9 is no UTF-8"),
    ],
)
def test_what_is_wrong_with_the_file_is_told_with_its_line(tmp_path, content, said):
    with pytest.raises(InputError) as caught:
        rows_of(tmp_path, content)
    assert said in str(caught.value)
