import pytest

from rollbook.errors import InputError
from rollbook.inputs.jsonl import key_twice, read_source_rows


def write(tmp_path, data):
    path = tmp_path / "rows.jsonl"
    path.write_bytes(data)
    return path


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ('{"a": 1, "b": {"a": -1e5}, "c": [{"a": 1}, {"a": 2}]}', None),
        ('{"a": 1, "b": 2, "\\u0061": 1}', "a"),
        ('{"b": [0, {"c": {}, "c": {}}], "a": 1}', "c"),
        ('{"a": ' * 1020 + "1" + "}" * 1020, None),
        ('{"n": ' + "9" * 5000 + "}", None),
    ],
)
def test_a_key_that_an_object_has_twice_is_found_however_it_is_written(text, key):
    assert key_twice(text.encode()) == key


def test_line_numbers_are_physical(tmp_path):
    path = write(tmp_path, b'{"a":1}\n{"a":2}\n\n{"a":3}\n   \n{"a":4}\n\n\n')
    assert [(row.number, row.row["a"]) for row in read_source_rows(path)] == [(1, 1), (2, 2), (4, 3), (6, 4)]


def test_every_bad_line_is_named_and_the_rest_are_counted(tmp_path):
    path = write(tmp_path, b'{"a":1}\nplaceholder row\n# a comment\n[1,2]\n"text"\n42\nnull\n{"a":NaN}\n')
    with pytest.raises(InputError) as error:
        list(read_source_rows(path))
    text = str(error.value)
    for number in (2, 3, 4, 5, 6):
        assert f"{path}:{number}: " in text
    assert "found an array" in text
    assert "and 2 more" in text


@pytest.mark.parametrize("data", [b"", b"\n \n\r\n", b"\xef\xbb\xbf"])
def test_a_file_without_rows_is_an_error(tmp_path, data):
    with pytest.raises(InputError, match="holds no rows"):
        list(read_source_rows(write(tmp_path, data)))


def test_line_separators_inside_text_do_not_end_a_line(tmp_path):
    path = write(tmp_path, '{"a":"x\u2028y\u0085z"}\n'.encode())
    assert [row.row["a"] for row in read_source_rows(path)] == ["x\u2028y\u0085z"]


def test_bytes_that_are_no_utf_8_are_named(tmp_path):
    with pytest.raises(InputError, match=":1: "):
        list(read_source_rows(write(tmp_path, b'{"a":"\xff\xfe"}\n')))


def test_nesting_beyond_measure_is_a_message(tmp_path):
    with pytest.raises(InputError, match=":1: "):
        list(read_source_rows(write(tmp_path, b'{"a":' + b"[" * 200_000 + b"]" * 200_000 + b"}\n")))


def test_a_byte_order_mark_opens_no_rows_text_wherever_files_were_joined(tmp_path):
    bom = b"\xef\xbb\xbf"
    path = write(tmp_path, bom + b'{"a":1}\r\n' + bom + b'{"a":1}\r\n' + bom + b"\r\n" + b'{"a":1}\n')
    assert [row.number for row in read_source_rows(path)] == [1, 2, 4]
    assert len({row.digest for row in read_source_rows(path)}) == 1


@pytest.mark.parametrize(
    ("line", "half"),
    [(rb'{"a":"\ud800"}', "d800"), (rb'{"a":"x\uDC00y"}', "dc00"), (rb'{"\ud800 and more text":1}', "d800")],
)
def test_half_a_surrogate_pair_is_called_what_it_is(tmp_path, line, half):
    with pytest.raises(InputError, match=rf":1: '\\u{half}' is half of a surrogate pair"):
        list(read_source_rows(write(tmp_path, line + b"\n")))


def test_a_line_that_was_cut_is_not_taken_for_half_a_pair(tmp_path):
    with pytest.raises(InputError, match=":1: Input data was truncated"):
        list(read_source_rows(write(tmp_path, b'{"a":"\\ud800"\n')))
