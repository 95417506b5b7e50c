"""What the command line says of a run that is gone on with: when, how often, and what can be typed."""

import json

import pytest

from run_folder import SERVER_ERROR, RunFolder, replies
from stub import adding, serving


@pytest.fixture
def half_done(tmp_path):
    """Of three tasks, one failed once and is owed."""
    folder = RunFolder(tmp_path).asks(adding(3))
    with serving(replies({(2,): SERVER_ERROR})) as stub:
        assert folder.run(stub).code == 3
    return folder


def place_of(words, lines):
    (number,) = [number for number, line in enumerate(lines) if words in line]
    return number


def test_a_note_about_the_run_is_told_once_and_before_anything_is_sent(half_done):
    with serving() as stub:
        answer = half_done.resume(stub, "--limit", "2")
    lines = answer.err.splitlines()
    assert place_of("1 rollouts fewer", lines) < place_of("rollouts planned", lines)


def test_what_was_cut_from_a_file_is_told_before_anything_is_sent(half_done):
    with half_done.results.open("ab") as results:
        results.write(b'{"_ng_task_index": 2, "rew')
    with serving() as stub:
        answer = half_done.resume(stub)
    lines = answer.err.splitlines()
    assert place_of(".torn", lines) < place_of("rollouts planned", lines)


def test_notes_are_in_the_json_as_well(half_done):
    with serving() as stub:
        answer = half_done.resume(stub, "--limit", "2", "--json")
    assert sum("1 rollouts fewer" in note for note in json.loads(answer.out)["notes"]) == 1
    assert answer.err.count("1 rollouts fewer") == 1


def test_a_note_that_comes_after_the_work_is_told_once_too(half_done):
    with serving() as stub:
        answer = half_done.resume(stub, "--disable-aggregation")
    assert answer.err.count("aggregation is off") == 1
