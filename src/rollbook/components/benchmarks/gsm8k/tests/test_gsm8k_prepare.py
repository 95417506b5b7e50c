"""GSM8K's published file, in its own form and in damaged ones."""

import json

import pytest

from benchmarks.gsm8k.prepare import prepare
from rollbook import InputError

MARBLES = {
    "question": "Nora has 12 bags with 105 marbles each. She gives 20 marbles away. How many marbles are left?",
    "answer": "There are 12*105=<<12*105=1260>>1260 marbles.\nThat leaves 1260-20=<<1260-20=1240>>1240.\n#### 1,240",
}
CHANGE = {
    "question": "A pen costs $1.25. What is left of $1?",
    "answer": "1-1.25=<<1-1.25=-0.25>>-0.25\n#### -0.25",
}


@pytest.fixture
def prepared(tmp_path):
    def rows(*lines, ending="\n", start="", **arguments):
        source = tmp_path / "test.jsonl"
        texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
        source.write_text(start + "".join(text + ending for text in texts), encoding="utf-8", newline="")
        path = prepare(tmp_path / "out" / "gsm8k.jsonl", str(source), arguments.get("expected_rows", len(lines)))
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]

    return rows


def test_a_published_line_becomes_a_question_and_a_number_without_commas(prepared):
    assert prepared(MARBLES, CHANGE) == [
        {"id": 0, "question": MARBLES["question"], "expected_answer": "1240"},
        {"id": 1, "question": CHANGE["question"], "expected_answer": "-0.25"},
    ]


def test_a_byte_order_mark_and_line_ends_of_windows_change_nothing(prepared):
    assert prepared(MARBLES, CHANGE, ending="\r\n", start="\ufeff") == prepared(MARBLES, CHANGE)


def test_every_faulty_line_is_told_by_file_and_line_and_nothing_is_written(prepared, tmp_path):
    with pytest.raises(InputError) as caught:
        prepared(MARBLES, {"question": "How many?"}, {"question": "How many?", "answer": "seven"})
    said = str(caught.value)
    assert "test.jsonl:2: `answer` is missing; there is `question`" in said
    assert "test.jsonl:3: `answer` does not end with `####` and a number: 'seven'" in said
    assert "fetch the published file again" in said
    assert not (tmp_path / "out" / "gsm8k.jsonl").exists()


def test_a_line_that_is_no_json_and_an_empty_file_are_told(prepared):
    with pytest.raises(InputError, match=r"test\.jsonl:2: "):
        prepared(MARBLES, '{"question": ')
    with pytest.raises(InputError, match="holds no rows"):
        prepared()


def test_another_number_of_rows_than_was_published_is_refused_unless_any_is_taken(prepared):
    with pytest.raises(InputError, match=r"1 rows, and the published file has 1319; .*expected_rows=0"):
        prepared(MARBLES, expected_rows=1319)
    assert len(prepared(MARBLES, expected_rows=0)) == 1
