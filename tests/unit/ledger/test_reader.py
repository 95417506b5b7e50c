import pytest

from rollbook.ledger.reader import read_lines

BOM = b"\xef\xbb\xbf"


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (BOM + b'{"a":1}\r\n{"b":2}\r\n', [(1, b'{"a":1}'), (2, b'{"b":2}')]),
        (BOM + b'\r\n{"b":2}\n', [(2, b'{"b":2}')]),
        (BOM, []),
        (b'{"a":1}\n' + BOM + b'{"b":2}\n', [(1, b'{"a":1}'), (2, BOM + b'{"b":2}')]),
    ],
)
def test_rc_58_what_an_editor_put_around_the_lines_is_no_part_of_them(tmp_path, data, expected):
    (tmp_path / "r.jsonl").write_bytes(data)
    assert list(read_lines(tmp_path / "r.jsonl")) == expected
