"""Cases from the field about the exit code by which a chain of jobs decides whether another one is sent."""

import signal

import pytest

from cases.played import FAILURES, RESULTS, Played, called, failing
from stub import adding, serving

TASKS, CAP = 4, 3


@pytest.fixture
def played(tmp_path):
    """Four tasks; the test says what becomes of them."""
    with serving() as stub:
        yield Played(tmp_path, stub, adding(TASKS))


def codes(played, *flags):
    """Run, and resume until the code is 0 (or as often as attempts allow); a status says the same each time."""
    said = [played.run(*flags).code]
    assert played.status()[0] == said[-1]
    while said[-1] != 0 and len(said) <= CAP:
        said.append(played.resume(*flags).code)
        assert played.status()[0] == said[-1]
    return said


def complete_codes(played):
    """What a resume and a status end with that ask for everything."""
    return played.resume("--require-complete").code, played.status("--require-complete")[0]


def nothing_more_is_sent(played):
    """A resume of what is over ends with 0 again and asks for nothing."""
    before = len(played.asked())
    assert played.resume().code == 0
    assert len(played.asked()) == before
    return True


def test_rc_53_a_complete_run_ends_with_0(played):
    assert codes(played) == [0]
    assert complete_codes(played) == (0, 0)
    assert nothing_more_is_sent(played)


def test_rc_53_a_run_with_failures_that_are_final_ends_with_0_unless_everything_was_asked_for(played):
    played.stub.script = failing(1, 2, _ng_failure_terminal=True)
    assert codes(played) == [0]
    assert complete_codes(played) == (4, 4)
    assert nothing_more_is_sent(played)
    assert len(played.rows(FAILURES)) == 2


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1])
def test_rc_53_an_interrupted_run_ends_with_the_signals_code_and_its_chain_goes_on(played, number):
    assert played.struck(number, 2, "--concurrency", "1").code == 128 + number
    assert 0 < len(played.scored()) < TASKS
    code, told = played.status()
    assert (code, told["state"]) == (3, "interrupted")
    assert played.status("--require-complete")[0] == 4
    assert played.resume().code == 0
    assert played.status()[0] == 0
    assert len(played.scored()) == TASKS
    assert nothing_more_is_sent(played)


def test_rc_53_a_chain_ends_when_what_fails_is_at_its_cap(played):
    played.stub.script = failing(1)
    assert codes(played) == [3] * (CAP - 1) + [0]
    assert played.times()[1, 0] == CAP
    assert complete_codes(played) == (4, 4)
    assert nothing_more_is_sent(played)
    assert played.status()[1]["at_cap"] == 1


def test_rc_53_a_run_that_still_owes_something_ends_with_4_where_everything_was_asked_for(played):
    played.stub.script = failing(1)
    assert played.run("--require-complete").code == 4
    assert played.status()[0] == 3
    played.stub.script = failing()
    assert complete_codes(played) == (0, 0)


def test_rc_53_a_chain_that_produces_nothing_ends_as_well(played):
    played.stub.script = failing(*range(TASKS))
    assert codes(played) == [3] * (CAP - 1) + [0]
    assert set(played.times().values()) == {CAP}
    assert complete_codes(played) == (4, 4)
    assert nothing_more_is_sent(played)
    assert played.rows(RESULTS) == []


def test_rc_53_a_run_that_produces_nothing_and_never_will_ends_with_0(played):
    played.stub.script = failing(*range(TASKS), _ng_failure_terminal=True)
    assert codes(played) == [0]
    assert nothing_more_is_sent(played)


def test_rc_53_a_damaged_run_ends_with_5_and_names_file_and_line(played):
    played.stub.script = failing(1)
    played.run("--concurrency", "1")
    lines = played.bytes_of(RESULTS).splitlines(keepends=True)
    played.put(RESULTS, b"".join([lines[0], b"x" * (len(lines[1]) - 1) + b"\n", *lines[2:]]))
    said = called(played.words("--resume"))
    assert said.code == 5
    assert f"{RESULTS}:2: " in said.text
    assert len(played.asked()) == TASKS
    code, told = played.status()
    assert (code, told["state"]) == (5, "damaged")
    assert any(damage["place"].endswith(f"{RESULTS}:2") for damage in told["damage"])


def test_rc_53_codes_of_a_chain_are_none_of_those_of_a_wrong_command_line(played):
    assert called(["eval", "run", "--no-such-flag"]).code == 2
    assert called(["eval", "status"]).code == 2
    assert called(["eval", "status", str(played.folder / "none.jsonl")]).code not in {0, 3, 4, 5}


def test_a_run_that_leaves_something_to_a_resume_says_how_much_and_what_to_type(played):
    played.stub.script = failing(1)
    told = played.run()
    assert told.code == 3
    assert f"A resume would run 1 of {TASKS} rollouts.\nGo on with:\n" in told.err
    assert "--resume" in told.err.partition("Go on with:")[2]


def test_a_run_that_leaves_nothing_to_a_resume_names_none(played):
    assert "Go on with" not in played.run().err
