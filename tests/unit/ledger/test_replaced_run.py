"""What of an earlier run is moved aside for a new one, and what comes back whenever the process dies meanwhile."""

import os
import stat
from pathlib import Path

import pytest

from rollbook.ledger import run as running
from rollbook.ledger.paths import RunPaths
from rollbook.ledger.run import Run, settle_asides
from rollbook.ledger.whole_file import whole_file
from rollbook.records.manifest import RunManifest
from rollbook.testing.manual_clock import ManualClock


class DiedError(Exception):
    """The process is gone."""


def earlier_run(folder):
    paths = RunPaths(folder / "r.jsonl")
    for path in paths.every_file:
        path.write_bytes(path.name.encode())
    return paths


def move_aside(paths):
    for path in paths.every_file:
        path.rename(path.with_name(f".{path.name}.replaced"))


def contents(paths):
    return {path.name: path.read_bytes() for path in paths.every_file if path.exists()}


@pytest.mark.parametrize("moves", range(6))
def test_an_earlier_run_comes_back_whole_however_often_its_return_is_cut_short(tmp_path, monkeypatch, moves):
    paths = earlier_run(tmp_path)
    before = contents(paths)
    move_aside(paths)
    replace, left = Path.replace, [moves]

    def dying(path, target):
        if left[0] == 0:
            raise DiedError
        left[0] -= 1
        return replace(path, target)

    monkeypatch.setattr(Path, "replace", dying)
    with pytest.raises(DiedError):
        settle_asides(paths)
    monkeypatch.setattr(Path, "replace", replace)
    settle_asides(paths)
    assert contents(paths) == before


def test_that_an_earlier_run_lies_aside_is_on_the_disk_before_another_takes_its_place(tmp_path, monkeypatch):
    paths, found = earlier_run(tmp_path), []
    monkeypatch.setattr(running, "sync_folder", lambda _folder: found.append(sorted(contents(paths))))
    with Run(paths, ManualClock()).drafted([{"a": 1}]) as draft:
        draft.commit(RunManifest(run_id="r", created_at="", plan=draft.digest))
    assert found == [[]]
    assert sorted(contents(paths)) == sorted([paths.materialized_inputs.name, paths.manifest.name])


def test_metrics_and_counts_are_forgotten_and_nothing_else(tmp_path):
    paths = earlier_run(tmp_path)
    before = contents(paths)
    Run(paths, ManualClock()).forget_metrics()
    assert before.keys() - contents(paths).keys() == {paths.aggregate_metrics.name, paths.coverage.name}


def test_a_file_is_on_the_disk_before_it_is_in_place_and_its_name_after_that(tmp_path, monkeypatch):
    path, steps = tmp_path / "o.json", []

    def synced(descriptor):
        found = os.fstat(descriptor)
        steps.append(("folder" if stat.S_ISDIR(found.st_mode) else found.st_size, path.exists()))

    monkeypatch.setattr(os, "fsync", synced)
    with whole_file(path) as file:
        file.write(b"written")
    assert steps == [(7, False), ("folder", True)]


def test_a_file_that_appears_whole_has_the_mode_of_any_new_file(tmp_path):
    before = os.umask(0o027)
    try:
        with whole_file(tmp_path / "o.json") as file:
            file.write(b"{}")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "o.json").stat().st_mode) == 0o640
