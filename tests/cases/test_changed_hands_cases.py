"""Runs of ours that a collector without manifests went on with: shown, and gone on with again.

Its lines name no run, and its attempts are in no log.
"""

import pytest

from run_folder import SERVER_ERROR, RunFolder, failed, identities, replies, rows_of, scored
from stub import adding, lines, serving


@pytest.fixture
def stub():
    with serving() as stub:
        yield stub


@pytest.fixture
def changed(tmp_path, stub):
    """Return a folder in which we scored task 0 and failed at task 1; then others failed there again, and scored 2."""
    folder = RunFolder(tmp_path).asks(adding(4))
    stub.script = replies({(1,): SERVER_ERROR})
    assert folder.run(stub, "+stop_after_failures=1").code == 3
    assert folder.sent == [(0, 0, 0), (1, 0, 0)]
    folder.failures.write_bytes(folder.failures.read_bytes() + lines([failed(1, _ng_attempt_index=1)]))
    folder.results.write_bytes(folder.results.read_bytes() + lines([scored(2)]))
    stub.script = replies({})
    return folder


def test_lines_of_another_collector_count_and_are_told_of(changed):
    told = changed.status()
    assert (told["succeeded"], told["outstanding"], told["damage"]) == (2, 2, [])
    assert "2 records name no run: another collector went on with it" in told["notes"]


def test_a_run_that_others_went_on_with_runs_what_is_left_under_numbers_of_its_own(changed, stub):
    assert changed.resume(stub).code == 0
    assert changed.sent == [(1, 0, 2), (3, 0, 0)]
    assert sorted(identities(changed.results)) == [(0, 0, 0), (1, 0, 2), (2, 0, 0), (3, 0, 0)]
    assert changed.status()["state"] == "finished"


def test_a_rollout_that_was_in_flight_and_that_others_ended_is_not_run_again(changed, stub):
    died = [line for line in rows_of(changed.log) if line["t"] not in ("stop", "close")]
    died.append({"t": "reserve", "a": [3, 0, 0], "sizes": died[-1]["sizes"], "after": 1.0})
    changed.log.write_bytes(lines(died))
    changed.results.write_bytes(changed.results.read_bytes() + lines([scored(3)]))
    assert changed.resume(stub).code == 0
    assert changed.sent == [(1, 0, 2)]


def test_a_failure_that_others_left_spends_the_cap(changed, stub):
    stub.script = replies({(1,): SERVER_ERROR})
    assert changed.resume(stub).code == 0
    assert changed.sent == [(1, 0, 2), (3, 0, 0)]
    assert changed.status()["at_cap"] == 1
