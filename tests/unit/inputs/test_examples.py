import datetime as dt
from decimal import Decimal

import pytest

from rollbook.errors import InputError
from rollbook.inputs.examples import rows_of

HALF = chr(0xD800)
CYCLE = {}
CYCLE["again"] = CYCLE
OK = {"a": 1}


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ([1], "expected a mapping, found list"),
        (None, "expected a mapping, found NoneType"),
        ("text", "expected a mapping, found str"),
        ({1: 2}, "the key 1 is no text"),
        ({"a": [{"b": {None: 1}}]}, "a.0.b: the key None is no text"),
        ({"a": object()}, "a: .*object is unsupported"),
        ({"a": {"b": HALF}}, r"a.b: .*half of a surrogate pair"),
        ({HALF: 1}, "the key .*half of a surrogate pair"),
        ({"a": [0.5, float("nan")]}, "a.1: nan is no JSON"),
        ({"a": {"b": float("inf")}}, "a.b: inf is no JSON"),
        ({"a": (float("-inf"),)}, "a.0: -inf is no JSON"),
        (CYCLE, "it is nested too deeply"),
        ({"a": {"b", "c"}}, "a: a set is no JSON value; give a list"),
        ({"a": [frozenset()]}, "a.0: a frozenset is no JSON value; give a list"),
        ({"a": {"b": b"png"}}, "a.b: bytes are no JSON value; give text"),
        ({"a": Decimal("1.5")}, "a: a Decimal is no JSON value; give a float, or text"),
    ],
)
def test_a_row_that_json_cannot_hold_is_named_by_its_number_and_the_place_in_it(row, said):
    with pytest.raises(InputError, match=rf"^row 3: {said}"):
        list(rows_of([OK, OK, OK, row]))


def test_a_row_that_json_can_hold_is_kept_as_the_caller_gave_it():
    row = {"pair": (1, 2), "at": dt.date(2024, 1, 2), "large": 2**70, "text": "\U0001f600", "none": None}
    (source,) = rows_of([row])
    assert source.row == row
    assert source.row is not row


def test_the_order_of_keys_makes_no_other_task():
    first, second = rows_of([{"a": 1, "b": 2}, {"b": 2, "a": 1}])
    assert first.digest == second.digest
