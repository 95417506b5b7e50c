import json

import pytest

from rollbook.errors import LedgerError
from rollbook.ledger.rollout_record import RolloutRecord, indexed_records, prepare_append, read_records


def row(**changes):
    return {"_ng_task_index": 3, "_ng_rollout_index": 1, "_ng_run_id": "r1", "reward": 1.0} | changes


def line(**changes):
    return json.dumps(row(**changes)).encode() + b"\n"


@pytest.fixture
def path(tmp_path):
    return tmp_path / "rollouts.jsonl"


def only(path, **options):
    ((record, _),) = indexed_records(path, **options)
    return record


def test_rows_are_found_with_their_own_bytes_and_lines(path):
    path.write_bytes(b"\xef\xbb\xbf" + line() + b"\r\n" + line(_ng_attempt_index=2) + b'{"torn":')
    records = [record for record, _ in indexed_records(path)]
    data = path.read_bytes()
    assert [(record.line_number, data[record.offset : record.offset + record.length]) for record in records] == [
        (1, b"\xef\xbb\xbf" + line()),
        (3, line(_ng_attempt_index=2)),
    ]


def test_a_found_row_is_read_back(path):
    path.write_bytes(b"\xef\xbb\xbf" + line() + b"\n" + line(_ng_attempt_index=2))
    found = list(indexed_records(path))
    assert [record.read() for record, _ in found] == [found_row for _, found_row in found]


def test_a_found_row_knows_who_it_is_and_where_it_lies(path):
    path.write_bytes(line(_ng_attempt_index=2, _ng_rollout_id="mine"))
    status = path.stat()
    record = only(path)
    assert (record.expected_identity, record.file_identity) == (("r1", "mine", 2), (status.st_dev, status.st_ino))


@pytest.mark.parametrize(("beyond", "rows"), [(-1, 0), (0, 1), (1, 1), (len(line(_ng_attempt_index=1)), 2)])
def test_nothing_beyond_the_end_offset_is_read(path, beyond, rows):
    path.write_bytes(line() + line(_ng_attempt_index=1))
    assert len(list(indexed_records(path, len(line()) + beyond))) == rows


def test_rows_that_arrive_after_the_end_offset_was_taken_are_not_read(path):
    path.write_bytes(line())
    found = indexed_records(path, path.stat().st_size)
    with path.open("ab") as file:
        file.write(line(_ng_attempt_index=1))
    assert len(list(found)) == 1


def test_an_absent_file_holds_no_rows(path):
    assert (list(indexed_records(path)), list(read_records(path))) == ([], [])


@pytest.mark.parametrize("broken", [b"[1]\n", b'{"a":\n', b'{"a":"\xff"}\n', b"[" * 2000 + b"\n"])
def test_a_committed_line_that_is_no_object_is_named(path, broken):
    path.write_bytes(line() + b"\n" + broken + line())
    with pytest.raises(LedgerError, match=r"rollouts.jsonl:3: not a rollout record"):
        list(read_records(path))


def test_rows_are_read_in_file_order(path):
    path.write_bytes(line(reward=1) + line(reward=2))
    assert [found["reward"] for found in read_records(path)] == [1, 2]


def test_a_replaced_file_is_refused_though_it_holds_the_same_row(path):
    path.write_bytes(line())
    record = only(path)
    other = path.with_name("other.jsonl")
    other.write_bytes(line())
    other.replace(path)
    with pytest.raises(LedgerError, match=r"rollouts.jsonl:1: .*replaced"):
        record.read()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"_ng_run_id": "r2"}, "attempt 0, of run r2 where rollout 3-1, attempt 0, of run r1 was"),
        ({"_ng_rollout_index": 2}, "rollout 3-2"),
        ({"_ng_attempt_index": 1}, "rollout 3-1, attempt 1"),
        ({"_ng_rollout_id": "3-1-a1"}, "names no rollout"),
        ({"_ng_task_index": "x"}, "names no rollout"),
    ],
)
def test_another_row_at_the_place_is_refused(path, changes, said):
    path.write_bytes(line(**changes))
    record = RolloutRecord(path, 0, len(line(**changes)), 7, expected_identity=("r1", "3-1", 0))
    with pytest.raises(LedgerError, match=rf"rollouts.jsonl:7: .*{said}"):
        record.read()


@pytest.mark.parametrize(
    ("offset", "length"), [(0, len(line()) - 1), (0, len(line()) + 1), (1, len(line()) - 1), (9999, 5)]
)
def test_a_place_that_holds_no_row_is_refused(path, offset, length):
    path.write_bytes(line() + line())
    with pytest.raises(LedgerError, match=r"rollouts.jsonl:1: changed since it was read"):
        RolloutRecord(path, offset, length, 1).read()


def test_a_file_that_is_gone_is_named(path):
    with pytest.raises(LedgerError, match=r"rollouts.jsonl:4: cannot be read back: No such file"):
        RolloutRecord(path, 0, 5, 4).read()


def test_a_row_without_a_run_is_what_it_was_found_as(path):
    legacy = {key: value for key, value in row().items() if key != "_ng_run_id"}
    path.write_text(json.dumps(legacy) + "\n")
    assert (only(path).expected_identity, only(path).read()) == ((None, "3-1", 0), legacy)


def test_a_number_given_by_migration_is_read_and_not_written(path):
    path.write_bytes(line(_ng_attempt_index=1))
    record = RolloutRecord(path, 0, len(line(_ng_attempt_index=1)), 1, 2, expected_identity=("r1", "3-1", 2))
    before = path.read_bytes()
    assert (record.read()["_ng_attempt_index"], path.read_bytes()) == (2, before)


def test_a_large_row_is_found_and_read_back_without_what_was_skipped(path):
    path.write_bytes(line(response={"output": [{"text": "x" * 50}]}))
    record = only(path, skip_keys=frozenset({"response", "_ng_run_id"}), projected_above=40)
    assert record.read(projected_above=40) == row(response=None)
    assert record.read() == row(response={"output": [{"text": "x" * 50}]})


def test_preparing_to_append_mends_only_the_unterminated_tail(path):
    path.write_bytes(line() + b'{"torn":')
    assert (prepare_append(path).cut, path.read_bytes()) == (8, line())
    assert prepare_append(path) is None
