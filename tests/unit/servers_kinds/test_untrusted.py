import pytest

from rollbook import untrusted_json


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": [1, "x"]}', {"a": [1, "x"]}),
        ('"\\ud800"', "\ufffd"),
        ('{"\\ud800": "\\ud83d\\ude00"}', {"\ufffd": "\U0001f600"}),
        ("[" * 100 + "]" * 100, None),
        ("NaN", None),
    ],
)
def test_what_can_be_written_again_is_returned(text, value):
    found = untrusted_json(text)
    assert value is None or found == value


@pytest.mark.parametrize(
    "text", ["", "{", "[" * 101 + "]" * 101, '{"a":' * 101 + "1" + "}" * 101, "[" * 100_000, "9" * 5_000]
)
def test_what_is_no_json_or_too_deep_is_one_kind_of_error(text):
    with pytest.raises(ValueError, match=r"."):
        untrusted_json(text)
