"""Cases from the field about runs that are warned or killed: real processes, ended at known points of their work.

Rules:
* The stub decides when a signal falls: it counts the requests, and holds the replies that must not have come yet.
"""

import asyncio
import signal
import threading
from concurrent.futures import Future

import pytest
from aiohttp import web

from cases.played import FAILURES, LOG, METRICS, RESULTS, Played, key_of
from stub import adding, serving

WARNINGS = [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2]


@pytest.fixture
def play(tmp_path):
    """Return what plays a run against a stub of its own."""
    with serving() as stub:
        yield lambda rows: Played(tmp_path, stub, rows)


class Held(web.Response):
    """A reply that comes once its gate is open."""

    def __init__(self, row, gate):
        super().__init__(body=web.json_response(row | {"reward": 1.0}).body, content_type="application/json")
        self._gate = gate

    async def prepare(self, request):
        await self._gate.wait()
        return await super().prepare(request)


class Gates:
    """Holds every reply from the `first` request on; the tests know when `lanes` of them are in flight."""

    def __init__(self, first, lanes):
        self.first, self.lanes = first, lanes
        self.asked, self.held, self.full = 0, [], threading.Event()

    def __call__(self, row):
        self.asked += 1
        if self.asked <= self.first:
            return None
        gate = asyncio.Event()
        self.held.append((asyncio.get_running_loop(), gate))
        if len(self.held) == self.lanes:
            self.full.set()
        return Held(row, gate)

    def let_go(self, count):
        """Let the first `count` of the replies come."""
        for loop, gate in self.held[:count]:
            loop.call_soon_threadsafe(gate.set)


TASKS, LANES, DONE = 12, 4, 3


def warned(played, number, *flags):
    """Start a run, and send it a signal once `DONE` replies came and every lane is in flight."""
    gates = played.stub.script = Gates(DONE, LANES)
    started = played.started("--concurrency", str(LANES), *flags)
    assert gates.full.wait(60)
    started.send(number)
    started.hear(f"{number.name}: nothing further is sent")
    return started, gates


def over(started, gates):
    """Wait for the end of the run, and let the stub be done with what it held."""
    said = started.ended()
    gates.let_go(LANES)
    return said


def completes(played, on_disk):
    """Resume; every rollout is scored then, and what was on disk was asked for once."""
    played.stub.script = lambda _row: None
    assert played.resume().code == 0
    assert len(played.scored()) == len(played.rows(RESULTS)) == TASKS
    assert all(played.times()[key] == 1 for key in on_disk)


def is_resumable(played, scored):
    """A status from another process tells the same."""
    code, told = played.status()
    assert (code, told["state"], told["coverage"]["scored"]) == (3, "interrupted", scored)
    assert told["outstanding"] == TASKS - scored
    assert told["sessions"][-1]["how"] != "finished"


@pytest.mark.parametrize("number", WARNINGS)
def test_rc_50_a_warned_run_waits_for_what_is_in_flight_and_sends_nothing_further(play, number):
    played = play(adding(TASKS))
    started, gates = warned(played, number, "--grace", "600")
    gates.let_go(LANES)
    said = over(started, gates)
    assert said.code == 128 + number
    assert len(played.asked()) == len(played.scored()) == DONE + LANES
    assert played.rows(FAILURES) == []
    assert "--resume" in said.err
    is_resumable(played, DONE + LANES)
    completes(played, played.scored())


def test_rc_50_when_the_grace_is_over_the_rest_is_cut_without_a_row(play):
    played = play(adding(TASKS))
    started, gates = warned(played, signal.SIGTERM, "--grace", "0.5")
    gates.let_go(2)
    said = over(started, gates)
    assert said.code == 143
    assert len(played.scored()) == len(played.rows(RESULTS)) == DONE + 2
    assert played.rows(FAILURES) == []
    assert sum(len(event["a"]) // 3 for event in played.rows(LOG) if event["t"] == "cut") == LANES - 2
    assert "--resume" in said.err
    is_resumable(played, DONE + 2)
    completes(played, played.scored())


def test_rc_50_a_second_signal_ends_what_is_in_flight_at_once(play):
    played = play(adding(TASKS))
    started, gates = warned(played, signal.SIGTERM, "--grace", "600")
    started.send(signal.SIGTERM)
    said = over(started, gates)
    assert said.code == 143
    assert len(played.scored()) == DONE
    assert played.rows(FAILURES) == []
    is_resumable(played, DONE)
    completes(played, played.scored())


def test_rc_50_a_kill_after_the_warning_costs_nothing_that_was_on_disk(play):
    played = play(adding(TASKS))
    started, gates = warned(played, signal.SIGTERM, "--grace", "600")
    on_disk = played.scored()
    started.send(signal.SIGKILL)
    assert over(started, gates).code == -signal.SIGKILL
    assert len(on_disk) == len(played.scored()) == DONE
    is_resumable(played, DONE)
    completes(played, on_disk)


def killed(played, request, *flags):
    """Run until the n-th request, and no further."""
    assert played.struck(signal.SIGKILL, request, *flags).code == -signal.SIGKILL


@pytest.mark.parametrize("request_", [1, 5, 12])
def test_rc_29_a_killed_run_is_interrupted_and_resumes_at_once(play, request_):
    played = play(adding(TASKS))
    killed(played, request_, "--concurrency", "3")
    on_disk = played.scored()
    code, told = played.status()
    assert (code, told["state"], told["coverage"]["scored"]) == (3, "interrupted", len(on_disk))
    assert told["coverage"]["in_flight"] == 0
    assert told["outstanding"] == TASKS - len(on_disk)
    assert [session["how"] for session in told["sessions"]] == [None]
    completes(played, on_disk)
    code, told = played.status()
    assert (code, told["state"]) == (0, "finished")
    assert [session["how"] for session in told["sessions"]] == [None, "finished"]


@pytest.mark.parametrize("request_", [1, 2])
def test_rc_20_a_hop_that_dies_before_its_first_result_costs_nothing_that_was_finished(play, request_):
    played = play(adding(10))
    killed(played, 6, "--concurrency", "1")
    finished = played.scored()
    assert len(finished) == 5
    before = played.bytes_of(RESULTS)
    killed(played, request_, "--concurrency", str(request_), "--resume")
    assert played.bytes_of(RESULTS).startswith(before)
    played.stub.script = lambda _row: None
    assert played.resume().code == 0
    assert all(played.times()[key] == 1 for key in finished)
    assert sorted(map(key_of, played.rows(RESULTS))) == [(task, 0) for task in range(10)]


def test_rc_20_a_hop_that_dies_before_it_asks_anything_changes_nothing(play):
    played = play(adding(10))
    killed(played, 6, "--concurrency", "1")
    before = played.files()
    head, played.stub.port = played.stub.port, 9  # nothing listens there: the hop ends before it has a plan
    assert played.resume().code == 1
    played.stub.port = head
    after = played.files()
    assert all(after[name] == data for name, data in before.items() if name != ".r.lock")
    played.stub.script = lambda _row: None
    assert played.resume().code == 0
    assert len(played.rows(RESULTS)) == 10


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_warned_run_does_not_wait_for_metrics_and_a_resume_computes_them(play, number):
    played, asked = play(adding(3)), Future()

    async def held():
        gate = asyncio.Event()
        asked.set_result((asyncio.get_running_loop(), gate))
        await gate.wait()

    played.stub.before_metrics = held
    started = played.started()
    loop, gate = asked.result(timeout=60)
    started.send(number)
    said = started.ended()
    loop.call_soon_threadsafe(gate.set)
    assert said.code == 128 + number
    assert "--resume computes them" in said.err
    assert len(played.scored()) == 3
    assert METRICS not in played.files()
    played.stub.before_metrics = None
    assert played.resume().code == 0
    assert METRICS in played.files()
    assert len(played.asked()) == 3
