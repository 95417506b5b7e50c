"""Output is kept within a bound: its beginning, its end, and how much lies between."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollbook.sandbox.local.captured import Captured


def captured(most, *pieces):
    kept = Captured(most)
    for piece in pieces:
        kept.add(piece)
    return kept


@pytest.mark.parametrize("pieces", [[], [b"abcdefgh"], [b"abc", b"defgh"], [b"a", b"b", b"", b"c"]])
def test_what_fits_is_kept_whole(pieces):
    assert captured(8, *pieces).text() == b"".join(pieces).decode()


def test_what_does_not_fit_is_left_out_in_the_middle():
    assert captured(4, b"abcdefgh").text() == "ab\n[... 4 bytes left out ...]\ngh"


def test_a_character_that_two_pieces_share_is_whole():
    assert captured(4, b"a\xc3", b"\xa9b").text() == "aéb"


@given(st.lists(st.binary(max_size=9)), st.integers(min_value=2, max_value=12))
def test_the_pieces_do_not_matter(pieces, most):
    assert captured(most, *pieces).text() == captured(most, b"".join(pieces)).text()


def test_memory_follows_what_is_kept():
    kept = captured(10, *[b"x" * 7] * 1000)
    assert kept.total == 7000
    assert len(kept.text()) < 60
    assert len(kept._tail) <= 3
