import dataclasses
import datetime as dt
from decimal import Decimal
from typing import ClassVar

import attrs
import msgspec
import pytest

from rollbook.errors import InputError
from rollbook.inputs.examples import rows_of

HALF = chr(0xD800)
CYCLE = {}
CYCLE["again"] = CYCLE
OK = {"a": 1}


@dataclasses.dataclass
class Tags:
    shared: ClassVar[set[int]] = {1}
    held: object


class Packed(msgspec.Struct):
    held: object
    more: object = msgspec.UNSET


@attrs.define
class Defined:
    held: object


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
        ({"a": Tags({1, 2})}, "a.held: a set is no JSON value; give a list"),
        ({"a": [Packed({"b": Tags(frozenset())})]}, "a.0.held.b.held: a frozenset is no JSON value"),
        ({"a": Packed(1, more=float("nan"))}, "a.more: nan is no JSON"),
        ({"a": Defined(b"png")}, "a.held: bytes are no JSON value"),
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


@pytest.mark.parametrize("kind", [Tags, Packed, Defined])
def test_an_object_that_json_can_hold_is_kept_and_told_from_another_one(kind):
    value = kind([1, {"b": (2, 3)}])
    (source,) = rows_of([{"a": value}])
    assert source.row["a"] is value
    assert source.digest == next(rows_of([{"a": {"held": [1, {"b": [2, 3]}]}}])).digest


def test_the_order_of_keys_makes_no_other_task():
    first, second = rows_of([{"a": 1, "b": 2}, {"b": 2, "a": 1}])
    assert first.digest == second.digest
