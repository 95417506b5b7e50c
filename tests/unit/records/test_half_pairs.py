import pytest

from rollbook.records.half_pairs import half_pair_in


@pytest.mark.parametrize(
    ("text", "half"),
    [
        (rb'{"a":"\ud800"}', r"\ud800"),
        (rb'{"\uDBFF":1}', r"\udbff"),
        (rb'["\udc00\ud83d\ude00"]', r"\udc00"),
        (rb'["\ud83d\u0041"]', r"\ud83d"),
    ],
)
def test_half_of_a_pair_is_named(text, half):
    assert half_pair_in(text) == f"'{half}' is half of a surrogate pair and no character"


@pytest.mark.parametrize(
    "text",
    [
        b"",
        rb'["\ud83d\ude00"]',
        rb'{"a":"\\ud800"}',
        rb'{"a":"\ud800"',
        b"[" * 5000 + rb'"\ud800"' + b"]" * 5000,
        b'["\xff\\ud800"]',
        b'["\xed\xa0\x80"]',
    ],
)
def test_nothing_is_said_of_text_without_one_or_that_is_no_json_for_other_reasons(text):
    assert half_pair_in(text) is None
