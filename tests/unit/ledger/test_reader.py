"""Lines of somebody's file → records with their places."""

import msgspec
import pytest

from rollbook.errors import LedgerError
from rollbook.ledger.paths import RunPaths
from rollbook.ledger.reader import (
    payload_at,
    plain_blocks,
    plain_lines,
    read_lines,
    read_records,
    scan,
    scan_whole,
    whole_lines,
)
from rollbook.records.place import File, Place

BOM = b"\xef\xbb\xbf"


def row(task, **extra):
    return msgspec.json.encode({"_ng_task_index": task, "_ng_rollout_index": 0} | extra)


@pytest.fixture
def paths(tmp_path):
    return RunPaths(tmp_path / "r.jsonl")


def numbered(lines):
    return [(line.number, line.text.rstrip()) for line in lines]


@pytest.mark.parametrize(
    "read", [read_lines, lambda path: numbered(scan(path)), lambda path: numbered(scan_whole(path))]
)
@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (BOM + b'{"a":1}\r\n{"b":2}\r\n', [(1, b'{"a":1}'), (2, b'{"b":2}')]),
        (BOM + b'\r\n{"b":2}\n', [(2, b'{"b":2}')]),
        (BOM, []),
        (b'{"a":1}\n' + BOM + b'{"b":2}\n', [(1, b'{"a":1}'), (2, BOM + b'{"b":2}')]),
        (b'{"a":1}\n \n{"b":2}', [(1, b'{"a":1}'), (3, b'{"b":2}')]),
        (BOM + b'{"a":1}', [(1, b'{"a":1}')]),
        (b'{"a":1}\n{"b":', [(1, b'{"a":1}')]),
        (b'{"a":1}\n7', [(1, b'{"a":1}')]),
        (b"", []),
    ],
)
def test_rc_58_what_an_editor_put_around_the_lines_is_no_part_of_them(tmp_path, data, expected, read):
    (tmp_path / "r.jsonl").write_bytes(data)
    assert list(read(tmp_path / "r.jsonl")) == expected


@pytest.mark.parametrize("read", [read_lines, scan, scan_whole])
def test_a_file_that_is_not_there_has_no_lines(tmp_path, read):
    assert list(read(tmp_path / "r.jsonl")) == []


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b" \n", b""])
def test_a_place_leads_back_to_the_bytes_of_its_line(paths, end):
    rows = [row(0, reward=1), row(1, reward=0.5, note="判" * 9), row(2)]
    paths.output.write_bytes(BOM + rows[0] + end + b"\n" + rows[1] + (end or b"\n") + rows[2] + end)
    found = list(read_records(paths))
    assert [record.place.line for record in found] == ([1, 3, 4] if end else [1, 2, 3])
    assert [payload_at(paths.output, record.place) for record in found] == rows
    assert found[-1].place.offset + found[-1].place.length == paths.output.stat().st_size


def test_failures_are_read_before_results(paths):
    paths.output.write_bytes(row(0, reward=1) + b"\n")
    paths.failures.write_bytes(row(1, _ng_failure_class="agent_run_error") + b"\n")
    assert [record.place.file for record in read_records(paths)] == [File.FAILURES, File.RESULTS]


def test_a_prefix_holds_the_lines_that_end_within_it(paths):
    one = row(0) + b"\n"
    paths.output.write_bytes(one * 3)
    for limit, count in [(0, 0), (len(one) - 1, 0), (len(one), 1), (2 * len(one) + 5, 2), (99_999, 3)]:
        assert len(list(read_records(paths, {File.RESULTS: limit, File.FAILURES: 0}))) == count


@pytest.mark.parametrize("bad", [b'{"reward":1}', b"[1]", b'{"a', b"\xff\xfe", b"{" * 5000])
def test_a_committed_line_that_is_no_record_is_named_and_the_others_are_read(paths, bad):
    paths.output.write_bytes(row(0) + b"\n" + bad + b"\n" + row(2) + b"\n")
    with pytest.raises(LedgerError, match=r"r\.jsonl:2: not a rollout record: "):
        list(read_records(paths))
    named = []
    assert [record.key.task for record in read_records(paths, on_damage=named.append)] == [0, 2]
    assert len(named) == 1


@pytest.mark.parametrize(
    ("data", "place"),
    [
        (b"", Place(File.RESULTS, 0, 4, 1)),
        (b"{}\n{}\n", Place(File.RESULTS, 0, 6, 1)),
        (b"{}\n{}\n", Place(File.RESULTS, 1, 3, 1)),
        (b"{}\n{}", Place(File.RESULTS, 3, 1, 2)),
    ],
    ids=["shorter", "two lines", "within a line", "within the last line"],
)
def test_a_line_is_not_read_where_another_one_lies_now(paths, data, place):
    paths.output.write_bytes(data)
    with pytest.raises(LedgerError, match=r"r\.jsonl:\d: the file was replaced"):
        payload_at(paths.output, place)


HUGE = row(1, responses_create_params={"input": "z" * (9 << 20)}, note=1)
LEAN = row(1, responses_create_params=None, note=1)


@pytest.mark.parametrize(("read", "text"), [(plain_lines, LEAN), (whole_lines, HUGE)])
@pytest.mark.parametrize("begin", [BOM, b"", BOM + row(0) + b"\n"], ids=["after a mark", "first", "second"])
def test_a_huge_line_loses_its_bulk_only_where_it_is_counted(paths, begin, read, text):
    paths.output.write_bytes(begin + HUGE + b"\n" + row(2) + b"\n" + HUGE)
    *_, found, between, last = read(paths.output)
    data = paths.output.read_bytes()
    assert found[3] == last[3] == text + b"\n"
    assert data[found[1] : found[1] + found[2]].removeprefix(BOM) == HUGE + b"\n"
    assert between[3] == row(2) + b"\n"
    assert data[last[1] : last[1] + last[2]] == HUGE


@pytest.mark.parametrize("read", [plain_lines, whole_lines])
def test_a_huge_line_that_was_not_written_to_its_end_is_no_line(paths, read):
    paths.output.write_bytes(row(2) + b"\n" + HUGE[:-1])
    assert [line[3] for line in read(paths.output)] == [row(2) + b"\n"]


def test_lines_that_are_read_some_at_a_time_have_the_last_one_that_lacks_its_newline(paths):
    paths.output.write_bytes(row(0) + b"\n" + row(1))
    (block,) = plain_blocks(paths.output)
    assert block.texts == [row(0) + b"\n", row(1) + b"\n"]
    assert sum(block.lengths) == paths.output.stat().st_size


@pytest.mark.parametrize("read", [plain_lines, whole_lines])
def test_a_huge_line_that_ends_beyond_the_prefix_is_no_part_of_it(paths, read):
    paths.output.write_bytes(HUGE + b"\n")
    assert list(read(paths.output, len(HUGE))) == []
    assert len(list(read(paths.output, len(HUGE) + 1))) == 1
