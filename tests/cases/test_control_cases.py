"""A live run that is told what to do: by the command that a person types, to a process of its own."""

import asyncio
import json
import threading

import pytest

from cases import peer as peers
from cases.first_done import stalls_soon
from cases.peer import never
from cases.played import FAILURES, LOG, METRICS, RESULTS, Played, called, key_of
from stub import adding

TASKS = 24


class Held:
    """Answers a rollout when the test says so. `wait_for(n)` returns once n are held that were not let go."""

    def __init__(self):
        self.waiting = []
        self.open = False
        self._arrived = threading.Condition()

    async def __call__(self, asked):
        if self.open:
            return
        gate = asyncio.Event()
        with self._arrived:
            self.waiting.append((asked, gate))
            self._arrived.notify_all()
        await gate.wait()

    def wait_for(self, count):
        with self._arrived:
            assert self._arrived.wait_for(lambda: len(self.waiting) >= count, 60), len(self.waiting)
        return [asked.key for asked, _ in self.waiting]

    def let_go(self, count=None):
        """Answer the first `count`, or everything that is held and all that comes."""
        with self._arrived:
            self.open = self.open or count is None
            going, self.waiting = self.waiting[:count], self.waiting[len(self.waiting[:count]) :]
        for asked, gate in going:
            asked.peer.loop.call_soon_threadsafe(gate.set)


@pytest.fixture
def held():
    return Held()


@pytest.fixture
def played(tmp_path, held):
    with peers.serving(held) as peer:
        yield Played(tmp_path, peer, adding(TASKS))


def ctl(played, *words):
    return called(["eval", "ctl", str(played.output), *words])


def in_flight(played):
    """Return how many rollouts a run says are in flight, and its limit."""
    status = json.loads(ctl(played, "status", "--json").out)["status"]
    return status["in_flight"], status["limit"]


def test_a_higher_number_takes_effect_at_once_and_a_lower_one_as_rollouts_end(played, held):
    started = played.started("--concurrency", "3")
    held.wait_for(3)
    assert in_flight(played) == (3, 3)
    assert ctl(played, "concurrency", "8").code == 0
    held.wait_for(8)
    assert played.stub.most == 8
    assert ctl(played, "concurrency", "2").code == 0
    assert in_flight(played) == (8, 2)
    held.let_go(7)
    held.wait_for(2)
    assert in_flight(played) == (2, 2)
    held.let_go()
    assert started.ended().code == 0
    assert played.stub.most == 8
    assert set(played.times().values()) == {1}


def test_a_paused_run_sends_nothing_until_it_is_resumed(played, held):
    started = played.started("--concurrency", "4")
    held.wait_for(4)
    assert ctl(played, "pause").code == 0
    held.let_go(4)
    assert played.stub.quiet()
    while in_flight(played) != (0, 4):
        pass
    assert "paused" in ctl(played, "status").out
    assert len(played.stub.asked) == 4
    assert ctl(played, "resume").code == 0
    held.wait_for(4)
    held.let_go()
    assert started.ended().code == 0
    assert len(played.scored()) == TASKS


def test_a_drained_run_waits_for_what_is_in_flight_ends_with_3_and_owes_the_rest(played, held):
    started = played.started("--concurrency", "4", "--grace", "0")
    held.wait_for(4)
    assert ctl(played, "drain").code == 0
    assert all("4 in flight" in ctl(played, "status").out for _ in range(5))
    held.let_go()
    said = started.ended()
    assert said.code == 3
    assert "Stopped early: drained by ctl." in said.err
    assert "--resume" in said.err
    assert len(played.stub.asked) == len(played.scored()) == len(played.rows(RESULTS)) == 4
    assert played.rows(FAILURES) == []
    code, told = played.status()
    assert (code, told["outstanding"], told["law_holds"]) == (3, TASKS - 4, True)
    assert played.resume().code == 0
    assert len(played.scored()) == TASKS
    assert set(played.times().values()) == {1}


def test_a_run_that_is_drained_when_nothing_is_left_to_send_ends_as_any_other_with_its_metrics(played, held):
    started = played.started("--concurrency", str(TASKS))
    held.wait_for(TASKS)
    assert ctl(played, "drain").code == 0
    held.let_go()
    said = started.ended()
    assert (said.code, "Stopped early" in said.err) == (0, False), said.err
    assert METRICS in played.files()
    assert len(played.scored()) == TASKS


def logged(played, kind):
    """Return the attempts that the log tells under a kind, with why where it says so."""
    return [
        (tuple(event["a"][at : at + 3]), event.get("why"))
        for event in played.rows(LOG)
        if event["t"] == kind
        for at in range(0, len(event["a"]), 3)
    ]


def test_a_stuck_rollout_is_run_again_under_another_number_and_counts_once(played, held):
    async def stuck_at_first(asked):
        if asked.key == (5, 0) and asked.attempt == 0:
            await never(asked)
        await held(asked)

    held.open = True
    played.stub.script = stuck_at_first
    started = played.started("--concurrency", "4", first=stalls_soon)
    started.hear("5-0 waiting for the reply")
    said = ctl(played, "requeue", "5-0", "6-0")
    assert said.code == 1
    assert "6-0: it is not in flight" in said.out
    assert started.ended().code == 0
    attempts = [asked.attempt for asked in played.stub.asked if asked.key == (5, 0)]
    assert attempts == [0, 1]
    assert [told for told, _ in logged(played, "cut")] == [(5, 0, 0)]
    assert len(played.scored()) == len(played.rows(RESULTS)) == TASKS
    (row,) = [row for row in played.rows(RESULTS) if key_of(row) == (5, 0)]
    assert row["_ng_attempt_index"] == 1
    assert played.rows(FAILURES) == []
    code, told = played.status()
    assert (code, told["coverage"]["scored"], told["law_holds"]) == (0, TASKS, True)
    assert played.stub.quiet()


def test_after_its_end_a_run_hears_nothing_more(played, held):
    held.open = True
    assert played.started().ended().code == 0
    said = ctl(played, "drain")
    assert said.code == 1
    assert "no run is live here" in said.text
