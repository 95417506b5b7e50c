"""Cases about a disk that is full before or after the rollouts: what was not written is named, and what is safe."""

import contextlib
import logging
import resource

import pytest

from cases.played import FAILURES, MANIFEST, METRICS, PLAN, RESULTS, Played
from stub import adding, serving


@pytest.fixture
def stub():
    with serving() as stub:
        yield stub


@contextlib.contextmanager
def files_up_to(size):
    """Let no file grow beyond so many bytes, as a disk does that is full."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_plan_that_cannot_be_written_is_named_and_leaves_nothing(tmp_path, stub):
    played = Played(tmp_path, stub, adding(300))
    with files_up_to(8000):
        said = played.run()
    assert said.code == 1
    assert f"cannot write {played.folder / PLAN}: File too large. Free the disk" in said.text
    assert played.asked() == []
    assert PLAN not in played.files()


def test_a_manifest_that_cannot_be_written_is_named(tmp_path, stub):
    played = Played(tmp_path, stub, adding(1))
    with files_up_to(1000):
        said = played.run()
    assert said.code == 1
    assert f"cannot write {played.folder / MANIFEST}: File too large. Free the disk" in said.text
    assert played.asked() == []


@pytest.mark.parametrize("name", [RESULTS, FAILURES, PLAN])
def test_a_torn_end_that_cannot_be_kept_is_named_and_stays(tmp_path, stub, name):
    played = Played(tmp_path, stub, adding(2))
    played.run("--limit", "1")
    torn = played.bytes_of(name) + b'{"' + b"x" * 9000
    played.put(name, torn)
    with files_up_to(8000):
        said = played.resume()
    assert said.code == 1
    assert f"cannot write {played.folder / name}.torn: File too large. Free the disk" in said.text
    assert played.bytes_of(name) == torn


def test_metrics_that_cannot_be_written_cost_the_table_nothing(tmp_path, stub):
    played = Played(tmp_path, stub, adding(60))
    assert played.run("+disable_aggregation=true").code == 0
    with files_up_to(250):
        said = played.resume()
    assert said.code == 1
    assert "60 of 60" in said.text
    assert f"cannot write {played.folder / METRICS}: File too large" in said.text
    assert "--resume computes the metrics" in said.text
    assert METRICS not in played.files()
    assert played.resume().code == 0
    assert METRICS in played.files()
    assert len(played.asked()) == 60


def test_what_fails_after_the_writer_broke_is_told_in_a_line_each(tmp_path, stub, caplog):
    played = Played(tmp_path, stub, adding(200))
    with files_up_to(30_000), caplog.at_level(logging.WARNING):
        said = played.run("--concurrency", "2")
    assert said.code == 1
    assert "cannot write to" in said.text
    assert all(record.exc_info is None for record in caplog.records if record.name.startswith("rollbook"))
