"""A run's files beside its output: repaired, replaced whole, claimed by one, and never touched unasked."""

import errno
import os
from contextlib import suppress
from pathlib import Path

import pytest

from rollbook.errors import InputError, LedgerError, OutputExistsError, ServingError
from rollbook.ledger.digests import sha256_of
from rollbook.ledger.manifest_store import read_manifest
from rollbook.ledger.paths import RunPaths
from rollbook.ledger.reader import read_lines, read_records
from rollbook.ledger.run import Run, explained, files_of
from rollbook.ledger.tail import keep_torn, repair_tail
from rollbook.ledger.whole_file import WholeFile, whole_file
from rollbook.records.manifest import RunManifest
from rollbook.testing.manual_clock import ManualClock


def run_at(paths):
    return Run(paths, ManualClock())


def manifest_of(draft):
    return RunManifest(run_id="new", created_at="2026-01-01T00:00:00Z", plan=draft.digest)


@pytest.fixture
def paths(tmp_path):
    return RunPaths(tmp_path / "out" / "r.jsonl")


@pytest.mark.parametrize(
    ("number", "is_full"),
    [
        (errno.ENOSPC, True),
        (errno.EDQUOT, True),
        (errno.EFBIG, True),
        (errno.EACCES, False),
        (errno.EPERM, False),
        (errno.EROFS, False),
    ],
)
def test_only_a_disk_that_is_full_is_to_be_freed(number, is_full, paths):
    with pytest.raises(LedgerError, match="--output that can be written") as told, explained(paths):
        raise OSError(number, os.strerror(number), str(paths.output))
    assert ("Free the disk" in str(told.value)) is is_full


@pytest.mark.parametrize(
    ("before", "after", "torn"),
    [
        (b'{"a":1}\n{"b":2', b'{"a":1}\n', b'{"b":2\n'),
        (b'{"a":1}\n{"b":2}', b'{"a":1}\n{"b":2}\n', None),
        (b'{"a":1}\n', b'{"a":1}\n', None),
        (b"", b"", None),
        (b'{"a"', b"", b'{"a"\n'),
        ('{"a":1}\n{"t":"判'.encode()[:-1], b'{"a":1}\n', '{"t":"判'.encode()[:-1] + b"\n"),
        (b'{"a":1}\n[1', b'{"a":1}\n', b"[1\n"),
    ],
)
def test_only_an_unterminated_tail_is_repaired_and_nothing_cut_is_lost(tmp_path, before, after, torn):
    path = tmp_path / "r.jsonl"
    path.write_bytes(before)
    repair_tail(path)
    assert path.read_bytes() == after
    kept = tmp_path / "r.jsonl.torn"
    assert (kept.read_bytes() if kept.exists() else None) == torn


def test_a_tail_longer_than_a_chunk_is_found(tmp_path):
    path = tmp_path / "r.jsonl"
    path.write_bytes(b'{"a":1}\n{"b":"' + b"x" * (3 << 20))
    assert repair_tail(path).cut == len('{"b":"') + (3 << 20)
    assert path.read_bytes() == b'{"a":1}\n'


def test_an_unterminated_line_is_no_record_unless_it_lacks_its_newline_alone(tmp_path):
    path = tmp_path / "r.jsonl"
    path.write_bytes(b'{"a":1}\n \n{"b":2')
    assert list(read_lines(path)) == [(1, b'{"a":1}')]
    path.write_bytes(b'{"a":1}\n \n{"b":2}')
    assert list(read_lines(path)) == [(1, b'{"a":1}'), (3, b'{"b":2}')]


def test_a_committed_line_that_is_no_record_is_named(paths):
    paths.output.parent.mkdir(parents=True)
    paths.output.write_bytes(b'{"_ng_task_index":0,"_ng_rollout_index":0}\n{"reward":1}\n')
    with pytest.raises(LedgerError, match=r"r\.jsonl:2: not a rollout record"):
        list(read_records(paths))


def test_a_file_appears_whole_or_not_at_all(tmp_path):
    path = tmp_path / "x.json"
    path.write_text("old")
    with pytest.raises(TypeError), whole_file(path) as file:
        file.write("no bytes")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]
    with whole_file(path) as file:
        file.write(b"new")
    assert path.read_text() == "new"


def test_an_output_that_is_there_is_refused_and_both_ways_out_are_named(paths):
    run = run_at(paths)
    run.refuse_existing()
    paths.output.parent.mkdir(parents=True)
    paths.failures.write_text("{}\n")
    with pytest.raises(OutputExistsError, match=r"r_materialized_inputs.jsonl is missing.*--overwrite"):
        run.refuse_existing()
    paths.materialized_inputs.write_text("{}\n")
    with pytest.raises(OutputExistsError, match=r"r_failures.jsonl exists.*--resume.*--overwrite"):
        run.refuse_existing()


def test_a_plan_that_fails_leaves_the_earlier_run_as_it_was(paths):
    run = run_at(paths)
    paths.output.parent.mkdir(parents=True)
    for path in (paths.output, paths.failures, paths.materialized_inputs):
        path.write_text("old\n")

    def rows():
        yield {"a": 1}
        raise InputError("bad row")

    with pytest.raises(InputError, match="bad row"), run.drafted(rows()):
        pass
    with pytest.raises(ServingError), run.drafted([{"a": 1}]):
        raise ServingError("no server came up")
    assert all(path.read_text() == "old\n" for path in (paths.output, paths.failures, paths.materialized_inputs))
    with run.drafted([{"a": 1}]) as draft:
        assert paths.output.read_text() == "old\n"
        draft.commit(manifest_of(draft))
    assert files_of(paths) == {"materialized inputs": paths.materialized_inputs, "manifest": paths.manifest}
    assert list(read_lines(paths.materialized_inputs)) == [(1, b'{"a":1}')]
    assert sorted(path.name for path in paths.output.parent.iterdir()) == [
        "r_manifest.json",
        "r_materialized_inputs.jsonl",
    ]


def test_the_digest_of_a_plan_is_the_one_of_its_bytes_on_disk(paths):
    with run_at(paths).drafted([{"a": 1}, {"a": 2}]) as draft:
        draft.commit(manifest_of(draft))
    plan = read_manifest(paths.manifest).plan
    assert (plan.sha256, plan.rollouts) == (sha256_of(paths.materialized_inputs), 2)
    assert plan.bytes == paths.materialized_inputs.stat().st_size


def test_nothing_of_an_earlier_run_speaks_in_the_one_that_replaces_it(paths):
    paths.output.parent.mkdir(parents=True)
    for path in paths.every_file:
        path.write_text("old\n")
    with run_at(paths).drafted([{"a": 1}]) as draft:
        draft.commit(manifest_of(draft))
    assert [path for path in paths.every_file if path.exists() and path.read_text() == "old\n"] == []
    assert read_manifest(paths.manifest).run_id == "new"


def test_the_ends_of_all_appended_files_are_mended_and_each_repair_is_told(paths):
    paths.output.parent.mkdir(parents=True)
    paths.output.write_bytes(b'{"a":1}\n{"b"')
    paths.failures.write_bytes(b'{"a":1}')
    paths.manifest_log.write_bytes(b'{"t":"stop","why":"w"}\n{"t":"res')
    told = [repair.told for repair in run_at(paths).repair()]
    assert len(told) == 3
    assert "4 bytes of a line that was never committed were moved to" in told[0]
    assert "it was completed" in told[1]
    assert "r_manifest.log" in told[2]
    assert paths.failures.read_bytes() == b'{"a":1}\n'
    assert paths.manifest_log.read_bytes() == b'{"t":"stop","why":"w"}\n'
    assert run_at(paths).repair() == ()


def test_what_lies_behind_the_plan_in_force_is_moved_aside(paths):
    paths.output.parent.mkdir(parents=True)
    paths.materialized_inputs.write_bytes(b'{"a":1}\n{"a":2}\n')
    repair = run_at(paths).cut_plan(8)
    assert paths.materialized_inputs.read_bytes() == b'{"a":1}\n'
    assert repair.kept_in.read_bytes() == b'{"a":2}\n\n'
    assert run_at(paths).cut_plan(8) is None


def test_what_is_cut_twice_is_kept_twice(tmp_path):
    path = tmp_path / "r.jsonl"
    for tail in (b"first", b"second"):
        path.write_bytes(b"{}\n" + tail)
        keep_torn(path, 3)
    assert (tmp_path / "r.jsonl.torn").read_bytes() == b"first\nsecond\n"


@pytest.mark.parametrize("written", [0, 1], ids=["nothing", "the manifest"])
def test_a_disk_that_is_full_when_a_plan_is_put_in_force_leaves_the_earlier_run(paths, monkeypatch, written):
    run = run_at(paths)
    paths.output.parent.mkdir(parents=True)
    for path in (paths.output, paths.failures, paths.aggregate_metrics, paths.materialized_inputs):
        path.write_text("old\n")

    calls = []

    def full(_descriptor):
        calls.append(_descriptor)
        if len(calls) > written:
            raise OSError(28, "No space left on device")

    with run.drafted([{"a": 1}]) as draft:
        monkeypatch.setattr(os, "fsync", full)
        with pytest.raises(LedgerError, match="No space left"):
            draft.commit(manifest_of(draft))
    files = (paths.output, paths.failures, paths.aggregate_metrics, paths.materialized_inputs)
    assert all(path.read_text() == "old\n" for path in files)
    assert len(list(paths.output.parent.iterdir())) == 4


@pytest.mark.parametrize("prepared", ["folder", "parent is a file"])
def test_an_output_that_cannot_be_written_is_named_before_anything_is_done(tmp_path, prepared):
    output = tmp_path / "out" / "r.jsonl"
    if prepared == "folder":
        output.mkdir(parents=True)
    else:
        output.parent.write_text("a file")
    with pytest.raises(LedgerError, match=r"out.*(give a file name|--output)"), run_at(RunPaths(output)).claimed():
        pass


def test_what_is_no_regular_file_is_never_replaced(paths):
    paths.output.parent.mkdir(parents=True)
    os.mkfifo(paths.failures)
    with pytest.raises(LedgerError, match=r"r_failures\.jsonl is no regular file"), run_at(paths).claimed():
        pass
    assert paths.failures.is_fifo()


def test_a_run_that_comes_to_nothing_leaves_no_trace(tmp_path):
    paths = RunPaths(tmp_path / "a" / "b" / "r.jsonl")
    with pytest.raises(InputError), run_at(paths).claimed():
        raise InputError("no rows")
    assert list(tmp_path.iterdir()) == []


def test_one_writer_at_a_time(paths):
    said = rf"pid {os.getpid()} .* is writing this run"
    with run_at(paths).claimed(), pytest.raises(LedgerError, match=said), run_at(paths).claimed():
        pass


@pytest.mark.parametrize("fails_at", [0, 1], ids=["plan", "manifest"])
def test_an_earlier_run_comes_back_when_the_new_one_cannot_be_placed(paths, monkeypatch, fails_at):
    run = run_at(paths)
    paths.output.parent.mkdir(parents=True)
    for path in paths.every_file:
        path.write_text("old\n")
    place, calls = WholeFile.place, []

    def failing(making):
        calls.append(making)
        if len(calls) > fails_at:
            raise OSError(5, "Input/output error")
        place(making)

    with run.drafted([{"a": 1}]) as draft:
        monkeypatch.setattr(WholeFile, "place", failing)
        with pytest.raises(LedgerError, match="Input/output error"):
            draft.commit(manifest_of(draft))
    assert all(path.read_text() == "old\n" for path in paths.every_file)


@pytest.mark.parametrize("steps", range(1, 10))
def test_a_process_that_dies_while_it_replaces_a_run_leaves_the_old_one_or_the_new_one(paths, monkeypatch, steps):
    run = run_at(paths)
    paths.output.parent.mkdir(parents=True)
    for path in paths.every_file:
        path.write_text("old\n")
    replace, calls = Path.replace, []

    class DiedError(BaseException):
        pass

    def dying(path, target):
        calls.append(path)
        if len(calls) > steps:
            raise DiedError
        return replace(path, target)

    with run.drafted([{"a": 1}]) as draft:
        monkeypatch.setattr("rollbook.ledger.run.settle_asides", lambda _paths: None)
        monkeypatch.setattr(Path, "replace", dying)
        with suppress(DiedError):
            draft.commit(manifest_of(draft))
    monkeypatch.undo()
    with run.claimed():
        pass
    old = [path.name for path in paths.every_file if path.exists() and path.read_text() == "old\n"]
    assert old in ([path.name for path in paths.every_file], [])
    assert paths.manifest.exists()
    assert not list(paths.output.parent.glob(".*.replaced"))


def test_a_log_alone_is_an_earlier_run(paths):
    paths.output.parent.mkdir(parents=True)
    paths.manifest_log.write_text("{}\n")
    paths.materialized_inputs.write_text("{}\n")
    with pytest.raises(OutputExistsError, match="--resume"):
        run_at(paths).refuse_existing()
