"""The log of a run's attempts: every line comes back, and a file shorter than it says is damage."""

import asyncio
import json
from pathlib import Path

import msgspec
import pytest

from rollbook.errors import LedgerError
from rollbook.ledger.history import read_history
from rollbook.ledger.manifest_store import committed_sizes, fold_log, read_log, shortened
from rollbook.ledger.paths import RunPaths
from rollbook.ledger.tail import repair_tail
from rollbook.ledger.writer import Writer
from rollbook.records.codec import RunStamp
from rollbook.records.ending import Ending
from rollbook.records.identity import RolloutKey
from rollbook.records.manifest import (
    Closed,
    Cut,
    Opened,
    Refused,
    Reserved,
    Stopped,
    flat,
    log_line,
    read_log_event,
    unflat,
)
from rollbook.records.outcome import Scored
from rollbook.records.place import File
from rollbook.records.standing import Standings
from rollbook.records.task import Rollout
from rollbook.testing.manual_clock import ManualClock

EVENTS = [
    Opened(1, "r", "2026-09-20T10:00:00Z", (0, 0)),
    Reserved([0, 0, 0, 3, 1, 2], (10, 20), 1.5),
    Refused([0, 0, 0], "503"),
    Cut([3, 1, 2], "SIGTERM"),
    Stopped("SIGTERM"),
    Closed("interrupted: SIGTERM", "2026-09-20T10:01:00Z", (30, 40), 60.0),
]


@pytest.fixture
def paths(tmp_path):
    return RunPaths(tmp_path / "r.jsonl")


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: type(event).__name__)
def test_an_event_is_one_line_that_reads_back(event):
    line = log_line(event)
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert read_log_event(line[:-1]) == event


@pytest.mark.parametrize("line", [b"{}", b'{"t":"later"}', b'{"t":"stop"}', b"[]", b'{"t":"reserve","a":["x"]}'])
def test_a_line_of_another_form_is_no_event(line):
    with pytest.raises(msgspec.DecodeError):
        read_log_event(line)


def test_attempts_are_written_flat_and_come_back():
    attempts = [(RolloutKey(0, 1), 2), (RolloutKey(3, 4), 5)]
    assert flat(attempts) == [0, 1, 2, 3, 4, 5]
    assert list(unflat(flat(attempts))) == attempts


def test_the_log_tells_what_was_handed_out_and_what_became_of_it(paths):
    paths.manifest_log.write_bytes(b"".join(map(log_line, EVENTS)))
    standings = Standings()
    summary = fold_log(paths.manifest_log, standings)
    assert (standings.next_attempt(RolloutKey(0, 0)), standings.next_attempt(RolloutKey(3, 1))) == (1, 3)
    assert (standings.lost(RolloutKey(0, 0)), standings.lost(RolloutKey(3, 1))) == ((), ())
    assert standings.stop_reason == "SIGTERM"
    assert [session.how for session in summary.sessions] == ["interrupted: SIGTERM"]
    assert list(summary.sizes.values()) == [30, 40]


@pytest.mark.parametrize(
    ("results", "failures", "named"), [(28, 40, ["r"]), (30, 38, ["r_failures"]), (29, 39, []), (30, 41, [])]
)
def test_a_file_that_lost_more_than_its_last_newline_of_what_the_log_says_is_named(paths, results, failures, named):
    paths.manifest_log.write_bytes(b"".join(map(log_line, EVENTS)))
    for path, size, committed in ((paths.output, results, 30), (paths.failures, failures, 40)):
        path.write_bytes((json.dumps({"a": "x" * (committed - len('{"a": ""}\n'))}) + "\n{").encode()[:size])
    assert committed_sizes(paths.manifest_log) == fold_log(paths.manifest_log, Standings()).sizes
    errors = list(shortened(paths, committed_sizes(paths.manifest_log)))
    assert [str(error).split(".jsonl")[0].rpartition("/")[2] for error in errors] == named


def test_committed_bytes_that_are_no_whole_line_any_more_are_lost_however_long_the_file_is(paths):
    paths.output.write_bytes(b'{"a":1}\n{"b":2]]]]]]')
    paths.failures.write_bytes(b"")
    sizes = {File.RESULTS: 16, File.FAILURES: 0}
    assert [str(error).partition("r.jsonl: ")[2][:56] for error in shortened(paths, sizes)] == [
        "16 bytes were written and 20 are left, 8 of them in whol"
    ]
    assert list(shortened(paths, {File.RESULTS: 8, File.FAILURES: 0})) == []


def test_the_sizes_that_a_log_tells_of_are_found_whatever_its_other_lines_are(paths):
    written = [*EVENTS, Opened(2, "r", "", (5, 5))]
    paths.manifest_log.write_bytes(b"no event\n" + b"".join(map(log_line, written)).removesuffix(b"\n"))
    assert list(committed_sizes(paths.manifest_log).values()) == [5, 5]


def test_what_a_session_found_when_it_opened_is_what_the_files_hold_from_then_on(paths):
    paths.manifest_log.write_bytes(b"".join(map(log_line, [*EVENTS, Opened(2, "r", "", (5, 5))])))
    assert list(fold_log(paths.manifest_log, Standings()).sizes.values()) == [5, 5]


def test_an_unfinished_last_line_is_no_event_and_any_other_fault_names_its_line(paths):
    paths.manifest_log.write_bytes(log_line(EVENTS[0]) + b'{"t":"res')
    assert [number for number, _ in read_log(paths.manifest_log)] == [1]
    paths.manifest_log.write_bytes(log_line(EVENTS[0]) + b'{"t":"res\n' + log_line(EVENTS[4]))
    with pytest.raises(LedgerError, match=r"r_manifest\.log:2: "):
        list(read_log(paths.manifest_log))


@pytest.mark.parametrize("odd", [b"", b"\n", b'{"t":"res\n', b'{"t":"reserve","a":[1,2],"sizes":[90,90]}\n'])
def test_reservations_that_follow_each_other_say_together_what_each_says_whatever_lies_among_them(paths, odd):
    handed = [
        Reserved([0, 0, 0], (3, 9), 1.0),
        Reserved([0, 1, 0], (8, 2), 2.0),
        Reserved([0, 0, 1, 9, 9, 4], (0, 0), 3.0),
    ]
    first, *rest = map(log_line, [Opened(1, "r", "", (0, 0)), *handed])
    paths.manifest_log.write_bytes(first + rest[0] + rest[1] + odd + rest[2])
    standings, faults = Standings(), []

    summary = fold_log(paths.manifest_log, standings, faults.append)

    attempts = {(0, 0): 2, (0, 1): 1, (9, 9): 5}
    assert {key: standings.next_attempt(RolloutKey(*key)) for key in attempts} == attempts
    assert list(summary.sizes.values()) == [8, 9]
    assert (summary.sessions[0].reserved, summary.sessions[0].active) == (4, 3.0)
    assert [str(fault).split(":")[1] for fault in faults] == (["4"] if odd.strip() else [])


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(b'{"a":1}\n{"b":2', b'{"a":1}\n', id="V15: what is no JSON is cut off"),
        pytest.param(b'{"a":1}\n{"b":2}', b'{"a":1}\n{"b":2}\n', id="V15: what lacks its newline alone is completed"),
        pytest.param(b'{"a":1}\n', b'{"a":1}\n', id="a whole file stays"),
        pytest.param(b'{"a":1}\n7', b'{"a":1}\n', id="JSON that is no object is cut off"),
        pytest.param(b"\x00\x00", b"", id="a file that never had a line"),
    ],
)
def test_only_an_unterminated_last_line_is_mended_and_what_is_cut_is_kept(paths, before, after):
    paths.output.write_bytes(before)
    repair = repair_tail(paths.output)
    assert paths.output.read_bytes() == after
    kept = paths.output.with_name("r.jsonl.torn")
    assert kept.exists() is bool(repair and repair.cut)
    if kept.exists():
        assert kept.read_bytes() == before[len(after) :] + b"\n"


def test_a_failure_record_of_an_unknown_version_is_damage_that_names_file_and_line(paths):
    row = b'{"_ng_task_index":0,"_ng_rollout_index":0,"_ng_failure_class":"x"%b}\n'
    paths.failures.write_bytes(row % b"" + row % b',"rollout_failure":{"schema_version":2}')
    with pytest.raises(LedgerError, match=r"r_failures\.jsonl:2: .*version 2"):
        read_history(paths)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
async def test_no_row_is_written_before_the_words_of_the_log_that_arrived_with_it(paths):
    paths.manifest_log.symlink_to("/dev/full")
    key = RolloutKey(0, 0)
    rollout = Rollout(key, b"{}", "s", stamped=b'"_ng_task_index":0,"_ng_rollout_index":0')
    async with Writer(paths, RunStamp("r", 3), ManualClock()) as writer:
        told = writer.reserve(RolloutKey(1, 0), 0), writer.write(rollout, Ending(Scored(1.0), {"reward": 1.0}))
        ends = await asyncio.gather(*told, return_exceptions=True)
    assert [type(end) for end in ends] == [LedgerError, LedgerError]
    assert paths.output.read_bytes() == b""


def test_a_whole_row_that_lacks_its_newline_is_a_record_before_a_resume_completes_it(paths):
    row = b'{"_ng_task_index":0,"_ng_rollout_index":%d,"reward":1.0}'
    paths.output.write_bytes(row % 0 + b"\n" + row % 1)
    assert [record.key.rollout for record in read_history(paths).standings] == [0, 1]
    repair_tail(paths.output)
    assert [record.key.rollout for record in read_history(paths).standings] == [0, 1]
