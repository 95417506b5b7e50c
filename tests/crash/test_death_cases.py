"""Cases from the field about runs that die: real processes, a real server, and what both left behind."""

import random
import shutil
import signal
from itertools import count

import pytest

from crash.campaign import forking, serving
from crash.claims import FAILURES, RESULTS, key_of, rows_of
from crash.launching import knows
from crash.one_round import Blow, Round, Shape

pytestmark = pytest.mark.crash
FIRST_SECOND = 0.6  # what a forked process does in less time than one that starts from nothing does in its first second
KILLS_OF_A_SECOND_HOP = 5
KILLS_OF_A_RUN = 8


@pytest.fixture(scope="module")
def ground():
    with serving(1) as server, forking() as forked:
        yield server.ports[0], forked


@pytest.fixture
def fresh_round(ground, tmp_path):
    port, forked = ground
    numbers = count()

    def fresh_round(shape):
        number = next(numbers)
        if number:
            shutil.rmtree(tmp_path / str(number - 1))
        return Round(number, port, tmp_path / str(number), forked, shape, faults=False)

    return fresh_round


def test_rc_20_a_hop_that_dies_before_it_writes_anything_costs_nothing_that_was_finished(fresh_round):
    chance = random.Random(20)  # noqa: S311  instants, no secrets
    for _ in range(KILLS_OF_A_SECOND_HOP):
        played = fresh_round(Shape(tasks=10, repeats=1, lanes=1))
        played.begin()
        played.session(Blow("request", count=6))
        finished = set(map(key_of, rows_of(played.before, RESULTS)))
        played.session(Blow("clock", delay=chance.uniform(0, FIRST_SECOND)))
        played.finish()
        assert played.violations == []
        assert len(finished) == 5
        assert {played.seen.asked()[key] for key in finished} == {1}
        assert len(rows_of(played.before, RESULTS)) == 10


def test_rc_29_a_killed_run_is_interrupted_and_resumes_at_once(fresh_round):
    chance = random.Random(29)  # noqa: S311  instants, no secrets
    for _ in range(KILLS_OF_A_RUN):
        played = fresh_round(Shape(tasks=50, repeats=1, lanes=8))
        played.begin()
        played.session(Blow("reply", count=chance.randint(1, 40), delay=chance.uniform(0, 0.005)))
        if knows("status", "eval", "--help"):
            code, said = played.status()
            assert (code, said and said["state"]) == (3, "interrupted")
        played.session(None)
        assert played.violations == []
        assert played.sessions[-1].code == 0
        played.finish()
        assert played.violations == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGUSR2, signal.SIGHUP])
def test_rc_50_a_warned_run_writes_what_finished_and_nothing_about_the_rest(fresh_round, number):
    played = fresh_round(Shape(tasks=40, repeats=1, lanes=8))
    played.begin()
    warned = played.session(Blow("reply", count=20, signal=number))
    assert played.violations == []
    assert warned.code == 128 + number
    assert 20 <= len(rows_of(played.before, RESULTS)) < 40
    assert rows_of(played.before, FAILURES) == []
    played.finish()
    assert played.violations == []
