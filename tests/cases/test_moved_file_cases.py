"""Cases about files of a run that somebody moves, removes or replaces while it works: it stops, and tells of it."""

import pytest

from cases.played import FAILURES, LOG, RESULTS, Played
from stub import adding, serving

SERVER = "--concurrency", "1"


@pytest.fixture
def stub():
    with serving() as stub:
        yield stub


def at_request(number, do):
    """Return a script that calls `do` when the n-th request is there, and answers as always."""
    left = iter(range(1, 1000))

    def script(_row):
        if next(left) == number:
            do()

    return script


@pytest.mark.parametrize("name", [RESULTS, LOG])
def test_a_file_that_is_moved_away_stops_the_run_and_is_gone_on_with_once_it_is_back(tmp_path, stub, name):
    played = Played(tmp_path, stub, adding(20))
    file, elsewhere = played.folder / name, tmp_path / "elsewhere"
    stub.script = at_request(5, lambda: file.rename(elsewhere))
    said = played.run(*SERVER)
    assert said.code == 1
    assert f"{file} was moved, removed or replaced while this run wrote to it" in said.text
    assert len(stub.requests) == 5
    elsewhere.rename(file)
    assert played.resume(*SERVER).code == 0
    assert played.scored() == {(task, 0) for task in range(20)}
    assert len(played.asked()) <= 21


@pytest.mark.parametrize("name", [RESULTS, LOG])
def test_a_file_that_is_replaced_stops_the_run(tmp_path, stub, name):
    played = Played(tmp_path, stub, adding(20))
    file, copy = played.folder / name, tmp_path / "copy"

    def replace():
        copy.write_bytes(file.read_bytes())
        copy.replace(file)

    stub.script = at_request(5, replace)
    said = played.run(*SERVER)
    assert (said.code, "Put it back and start the run again with --resume" in said.text) == (1, True), said.text
    stub.script = lambda _row: None
    assert played.resume(*SERVER).code == 0
    assert played.scored() == {(task, 0) for task in range(20)}


@pytest.mark.parametrize("name", [RESULTS, FAILURES, LOG])
def test_a_file_that_is_removed_stops_the_run_before_the_next_request(tmp_path, stub, name):
    played = Played(tmp_path, stub, adding(20))
    stub.script = at_request(5, (played.folder / name).unlink)
    said = played.run(*SERVER)
    assert said.code == 1
    assert f"{played.folder / name} was moved, removed or replaced" in said.text
    assert len(stub.requests) == 5


def test_a_file_that_is_removed_after_the_last_result_is_told_of_as_well(tmp_path, stub):
    played = Played(tmp_path, stub, adding(1))
    stub.script = at_request(1, (played.folder / FAILURES).unlink)
    assert played.run(*SERVER).code == 1


def test_a_folder_that_is_moved_away_stops_the_run_and_nothing_is_made_in_its_place(tmp_path, stub):
    played = Played(tmp_path, stub, adding(20))
    elsewhere = tmp_path / "elsewhere"
    stub.script = at_request(5, lambda: played.folder.rename(elsewhere))
    said = played.run(*SERVER)
    assert said.code == 1
    assert "Put its folder back if it was moved or removed, and go on with --resume" in said.text
    assert not played.folder.exists()
    elsewhere.rename(played.folder)
    assert played.resume(*SERVER).code == 0
    assert played.scored() == {(task, 0) for task in range(20)}
    assert len(played.asked()) <= 21
