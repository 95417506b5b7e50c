import io
import json
import tracemalloc

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rollbook.ledger.projection import BOM, CHUNK_BYTES, PROJECTED_ROW_BYTES, TopLevelProjector, read_row

SKIPPED = frozenset({"response", "ng_perf", 'q"\\/é\n', ""})

texts = st.text(
    st.sampled_from('ab"\\/{}[],: \n\u00e9\u2028\U0001f600\x7f') | st.characters(exclude_categories=["Cs"]), max_size=8
)
names = st.sampled_from([*sorted(SKIPPED), "reward", "respons"]) | texts
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(names, inner, max_size=4),
    max_leaves=16,
)
rows = st.dictionaries(names, values, max_size=6)
spellings = st.sampled_from(
    [
        {"ensure_ascii": True},
        {"ensure_ascii": False, "separators": (",", ":")},
        {"ensure_ascii": False, "separators": (" ,\t", "\t: ")},
        {"indent": 1},
    ]
)


def projected(text, sizes=(1 << 30,), skipped=SKIPPED):
    projector, at, turn = TopLevelProjector(skipped), 0, 0
    while at < len(text):
        size = sizes[turn % len(sizes)]
        projector.feed(text[at : at + size])
        at, turn = at + size, turn + 1
    return projector.result()


def without(row, skipped=SKIPPED):
    return {key: None if key in skipped else value for key, value in row.items()}


@settings(deadline=None)
@given(rows, spellings, st.lists(st.integers(1, 9), min_size=1, max_size=5))
def test_the_copy_is_the_row_with_null_for_what_was_skipped_wherever_chunks_end(row, spelling, sizes):
    text = json.dumps(row, **spelling).encode()
    assert json.loads(projected(text, sizes)) == without(row)


@settings(deadline=None)
@given(rows, spellings)
def test_it_makes_no_difference_where_the_one_cut_is(row, spelling):
    text = json.dumps(row, **spelling).encode()
    whole = projected(text)
    assert {projected(text, (cut, len(text))) for cut in range(1, len(text))} <= {whole}


@settings(deadline=None)
@given(rows, values, spellings, st.lists(st.integers(100, 3000), min_size=1, max_size=3))
def test_values_of_many_blocks_are_left_out_and_copied_like_short_ones(row, value, spelling, sizes):
    large = row | {"response": [row, value] * 60, "kept": [value, row] * 60, "reward": 1}
    assert json.loads(projected(json.dumps(large, **spelling).encode(), sizes)) == without(large)


@settings(deadline=None)
@given(rows, spellings, st.integers(1, 5))
def test_nothing_to_skip_is_a_copy_byte_for_byte(row, spelling, size):
    text = json.dumps(row, **spelling).encode()
    assert projected(text, (size,), frozenset()) == text


@settings(deadline=None)
@given(st.binary(max_size=40) | st.text('{}[]":,\\ a', max_size=40).map(str.encode), st.integers(1, 5))
def test_what_is_no_json_neither_fails_nor_loses_bytes(text, size):
    assert projected(text, (size,), frozenset()) == text
    projected(text, (size,))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (rb'{"response":{"a":1},"b":2}', b'{"response":null,"b":2}'),
        (rb'{"b":{"response":1},"response":[1,{"b":2}]}', b'{"b":{"response":1},"response":null}'),
        (rb'{"b":[{"response":1}]}', rb'{"b":[{"response":1}]}'),
        (rb'{"r\u0065sponse":1,"b":2}', rb'{"r\u0065sponse":null,"b":2}'),
        (rb'{"response" : "}\",{" , "b":2}', b'{"response" :null, "b":2}'),
        (rb'{"b":"response","response":-1e5}', b'{"b":"response","response":null}'),
        (rb'{"response":"\\","b":"\\\""}', rb'{"response":null,"b":"\\\""}'),
        (rb'{"response":1,"response":2}', b'{"response":null,"response":null}'),
        (rb'{"q\"\\\/\u00e9\n":1}', rb'{"q\"\\\/\u00e9\n":null}'),
        (b'{"":[],"b":2}', b'{"":null,"b":2}'),
        (b'{"response\\u0000":1}', b'{"response\\u0000":1}'),
        (b"{}", b"{}"),
    ],
)
def test_only_the_values_of_the_rows_own_keys_are_left_out(text, expected):
    assert {projected(text, (size,)) for size in (1, 2, 3, 100)} == {expected}


@pytest.mark.parametrize(
    "text",
    [
        b'{"response":}',
        b'{"response": ,"b":1}',
        b'{"response":"abc',
        b'{"response":[1}',
        b'{"response":1',
        b'{"response":1}}',
        b'{"response":1}{"response":2}',
        b'{"response",1}',
        b'{"\\x":1}',
    ],
)
def test_a_broken_row_stays_broken(text):
    with pytest.raises(ValueError, match=r"."):
        json.loads(projected(text))


def test_what_is_left_out_takes_no_memory():
    projector, chunk = TopLevelProjector(frozenset({"response"})), b'{"a":"x\\n"},' * 80_000
    tracemalloc.start()
    projector.feed(b'{"response":[')
    for _ in range(40):
        projector.feed(chunk)
    projector.feed(b'0],"reward":1}')
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (json.loads(projector.result()), peak < 4_000_000) == ({"response": None, "reward": 1}, True)


def read_all(data, *, limit=None, skipped=frozenset(), above=PROJECTED_ROW_BYTES):
    file, found, left = io.BytesIO(data), [], limit
    while (read := read_row(file, left, skipped, above))[1]:
        found.append(read)
        left = None if left is None else left - read[1]
    return found


def test_a_row_is_read_with_the_bytes_that_it_took():
    assert read_all(b'{"a":1}\r\n  \n{"b":2}\n') == [({"a": 1}, 9), (None, 3), ({"b": 2}, 8)]


@pytest.mark.parametrize("tail", [b'{"b":2}', b'{"b":', b"\xe5\x88"])
def test_a_last_line_without_its_newline_is_no_row(tail):
    assert read_all(b'{"a":1}\n' + tail) == [({"a": 1}, 8), (None, len(tail))]


@pytest.mark.parametrize("limit", [8, 9, 15])
def test_a_row_that_reaches_beyond_the_limit_is_no_row(limit):
    found = read_all(b'{"a":1}\n{"b":2}\n', limit=limit)
    assert found == [({"a": 1}, 8), (None, limit - 8)][: 1 + (limit > 8)]


@pytest.mark.parametrize("limit", [0, -1])
def test_with_nothing_left_of_the_limit_nothing_is_read(limit):
    assert read_row(io.BytesIO(b'{"a":1}\n'), limit, frozenset()) == (None, 0)


def test_a_byte_order_mark_is_no_part_of_the_first_row():
    assert read_all(BOM + b'{"a":1}\n') == [({"a": 1}, 11)]


@pytest.mark.parametrize(("above", "response"), [(29, "xx"), (28, None)])
def test_only_a_row_of_more_bytes_than_the_measure_is_projected(above, response):
    found = read_all(b'{"response":"xx","reward":1}\n', skipped=SKIPPED, above=above)
    assert found == [({"response": response, "reward": 1}, 29)]


def test_a_large_row_is_read_whole_when_nothing_is_to_be_skipped():
    assert read_all(b'{"response":"xx","reward":1}\n', above=4) == [({"response": "xx", "reward": 1}, 29)]


def test_a_row_of_many_chunks_is_read_like_one_of_one():
    text = json.dumps({"a": "\u5224" * (CHUNK_BYTES // 2), "response": '"' * CHUNK_BYTES, "z": 1}, ensure_ascii=False)
    data = text.encode() + b"\n"
    whole, cut = read_all(data), read_all(data, skipped=SKIPPED, above=16)
    assert (whole[0][0] | {"response": None}, len(data)) == cut[0]


@pytest.mark.parametrize("above", [4, 1 << 20])
@pytest.mark.parametrize(
    "line", [b"[1,2]\n", b'{"response":"torn\n', b'{"a":1}{"b":2}\n', b'{"a":NaN}\n', b'{"a":"\xff"}\n', b"123456\n"]
)
def test_a_committed_line_that_is_no_object_is_refused_however_long_it_is(line, above):
    with pytest.raises((msgspec.DecodeError, UnicodeDecodeError)):
        read_all(line, skipped=SKIPPED, above=above)
