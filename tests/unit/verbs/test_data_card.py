"""The licence that a data card names, as a hub reads it."""

import pytest

from rollbook.verbs.data_card import licences_of


@pytest.mark.parametrize(
    ("text", "licences"),
    [
        ("---\nlicense: mit\n---\nwords\n", ("mit",)),
        ('---\nlicense: "apache-2.0"  # quoted\n---\n', ("apache-2.0",)),
        ("\ufeff---\r\nlicense:\r\n- mit\r\n- cc-by-4.0\r\n---\r\n", ("mit", "cc-by-4.0")),
        ("---\nlicence: mit\n---\nlicense: mit\n", ()),
        ("license: mit\n", ()),
        ("---\nlicense: [mit\n---\n", ()),
        ("---\nlicense: !!bool mit\n---\n", ()),
        ("---\n- license\n---\n", ()),
    ],
)
def test_a_licence_is_what_the_front_matter_says(tmp_path, text, licences):
    card = tmp_path / "README.md"
    card.write_text(text, encoding="utf-8", newline="")
    assert licences_of(card) == licences
