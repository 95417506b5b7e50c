"""IFEval's published file, in both of its forms and in damaged ones."""

import json

import pytest

from benchmarks.ifeval.prepare import prepare
from rollbook import InputError

POSTCARD = {
    "key": 90001,
    "prompt": "Write a postcard from a lighthouse. Use no commas and at least 3 sentences.",
    "instruction_id_list": ["punctuation:no_comma", "length_constraints:number_sentences"],
    "kwargs": [{}, {"relation": "at least", "num_sentences": 3}],
}
NAMES = ("relation", "num_sentences", "keywords", "language")


@pytest.fixture
def prepared(tmp_path):
    def rows(*lines, ending="\n", start=""):
        source = tmp_path / "input_data.jsonl"
        text = start + "".join(json.dumps(line) + ending for line in lines)
        source.write_text(text, encoding="utf-8", newline="")
        path = prepare(tmp_path / "out" / "ifeval.jsonl", str(source), len(lines))
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]

    return rows


def test_a_published_line_becomes_a_request_with_its_instructions(prepared):
    assert prepared(POSTCARD) == [
        {
            "id": 90001,
            "responses_create_params": {"input": [{"role": "user", "content": POSTCARD["prompt"]}]},
            "verifier_metadata": {
                "instruction_id_list": POSTCARD["instruction_id_list"],
                "kwargs": POSTCARD["kwargs"],
                "prompt": POSTCARD["prompt"],
                "grading_mode": "binary",
            },
        }
    ]


def test_the_form_with_all_names_in_every_row_makes_the_same_rows(prepared):
    filled = POSTCARD | {"kwargs": [None, dict.fromkeys(NAMES) | POSTCARD["kwargs"][1]]}
    assert prepared(filled, start="\ufeff", ending="\r\n") == prepared(POSTCARD)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"kwargs": [{}]}, "2 instructions with arguments for 1"),
        ({"instruction_id_list": ["punctuation:no_comma", "mood:cheerful"]}, "no rule checks the instruction"),
        ({"key": "one"}, "`key` is not a whole number: 'one'"),
        ({"prompt": " "}, "`prompt` is empty"),
        ({"kwargs": [{}, 3]}, "`kwargs` holds something else than objects"),
    ],
)
def test_a_line_that_is_no_request_is_told_by_file_and_line(prepared, change, said):
    with pytest.raises(InputError, match=rf"input_data\.jsonl:2: {said}"):
        prepared(POSTCARD | {"key": 90000}, POSTCARD | change)


def test_a_key_that_stands_twice_is_refused(prepared):
    with pytest.raises(InputError, match="rows 1 and 2 have the same id 90001"):
        prepared(POSTCARD, POSTCARD)
