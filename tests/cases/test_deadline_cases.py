"""Cases from the field about time: a rollout's limit, a run's budget, a peer that never answers.

Rules:
* What a limit ends is told by counts and by what the server sees, never by how long the test took.
"""

import signal

import pytest

from cases import peer as peers
from cases.first_done import stalls_soon
from cases.peer import never, reply_of, result
from cases.played import FAILURES, LOG, RESULTS, Played, key_of
from stub import adding

LIMIT = "1"


@pytest.fixture
def play(tmp_path):
    """Return what plays a run of some tasks against a peer."""
    with peers.serving() as peer:

        def played(script, tasks):
            peer.script = script
            return Played(tmp_path, peer, adding(tasks))

        yield played


def only(task, script):
    """Do `script` with one task, and answer the others."""

    async def scripted(asked):
        if asked.task == task:
            await script(asked)

    return scripted


async def trickles(asked):
    """Say a reply byte by byte, for as long as anybody listens."""
    asked.say(reply_of(b" " * 1_000_000)[:-1_000_000])
    while not asked.gone.is_set():
        asked.say(b" ")
        await asked.after(0.02)


async def trickles_a_head(asked):
    """Say headers without end."""
    asked.say(b"HTTP/1.1 200 OK\r\n")
    while not asked.gone.is_set():
        asked.say(b"X: y\r\n")
        await asked.after(0.02)


async def stops_in_the_body(asked):
    """Say half a reply."""
    asked.say(result(asked.row)[:-10])
    await asked.gone.wait()


def ran_out_of_time(played, tasks, why, **fields):
    """Every other task has its result; the seventh has one row that says so, and its connection was closed."""
    assert len(played.scored()) == len(played.rows(RESULTS)) == tasks - 1
    (row,) = played.rows(FAILURES)
    assert key_of(row) == (7, 0)
    told = {"_ng_failure_class": row["_ng_failure_class"], "type": row["_ng_failure_type"]}
    told["status"] = row["_ng_failure_http_status"]
    assert told == {"_ng_failure_class": "agent_request_failed", "type": "TimeoutError", "status": None} | fields
    assert why in row["_ng_failure_message"]
    assert row["_ng_failure_delivery"] in {"possibly_delivered", "delivered"}
    assert played.times()[7, 0] == 1
    assert played.stub.quiet()


def test_rc_37_with_a_limit_a_peer_that_never_answers_costs_one_rollout(play):
    played = play(only(7, never), 20)
    assert played.run("--concurrency", "4", "--timeout", LIMIT).code == 3
    ran_out_of_time(played, 20, f"longer than its limit of {LIMIT} s")


@pytest.mark.parametrize("script", [trickles, trickles_a_head, stops_in_the_body])
def test_rc_37_a_reply_that_trickles_cannot_defeat_a_limit(script, play):
    played = play(only(7, script), 20)
    assert played.run("--concurrency", "4", "--timeout", LIMIT).code == 3
    ran_out_of_time(played, 20, f"longer than its limit of {LIMIT} s", _ng_failure_class="agent_run_error", status=200)


def test_the_limit_on_the_first_line_of_a_reply_holds_without_one_on_the_rollout(play):
    played = play(only(7, never), 20)
    assert played.run("--concurrency", "4", f"+rollout_response_timeout_s={LIMIT}").code == 3
    ran_out_of_time(played, 20, f"first line did not come within {LIMIT} s")


@pytest.mark.parametrize("script", [trickles, trickles_a_head])
def test_the_limit_on_a_body_holds_without_one_on_the_rollout(script, play):
    played = play(only(7, script), 20)
    assert played.run("--concurrency", "4", f"+rollout_body_timeout_s={LIMIT}").code == 3
    why = f"end did not come within {LIMIT} s"
    ran_out_of_time(played, 20, why, _ng_failure_class="agent_run_error", status=200)


def test_a_limit_on_the_first_line_leaves_a_body_that_takes_longer_alone(play):
    async def slowly(asked):
        whole = result(asked.row)
        asked.say(whole[:-10])
        await asked.after(1.5)
        asked.answer(whole[-10:])

    played = play(only(1, slowly), 3)
    assert played.run("--concurrency", "1", "+rollout_response_timeout_s=1").code == 0
    assert played.times()[1, 0] == 1


def test_a_server_is_told_how_long_a_rollout_may_take_and_only_where_it_has_a_limit(play):
    played = play(peers.at_once, 3)
    said = played.run("--timeout", "45")
    assert [asked.headers.get("x-rollout-deadline") for asked in played.stub.asked] == ["45"] * 3
    assert "a rollout may take 45 s" in said.text
    said = played.run("--overwrite")
    assert [asked.headers.get("x-rollout-deadline") for asked in played.stub.asked[3:]] == [None] * 3
    assert "as long as it needs" in said.text


def test_rc_37_without_a_limit_a_stalled_run_names_who_is_out_and_an_interrupt_keeps_the_results(play):
    played = play(only(7, never), 12)
    started = played.started("--concurrency", "2", "--grace", "0", first=stalls_soon)
    line = started.hear("nothing ended for")
    assert "1 in flight: 7-0 waiting for the reply" in line
    assert f"on 127.0.0.1:{played.stub.port} (adder_environment_server)" in line
    started.send(signal.SIGINT)
    said = started.ended()
    assert said.code == 130
    assert len(played.scored()) == 11
    assert played.rows(FAILURES) == []
    assert "--resume" in said.err
    assert played.stub.quiet()
    played.stub.script = peers.at_once
    assert played.resume().code == 0
    assert len(played.scored()) == 12


def test_rc_35_the_clock_of_a_rollout_starts_when_its_request_is_sent(play):
    async def thirty_milliseconds(asked):
        await asked.after(0.03)

    played = play(thirty_milliseconds, 60)
    assert played.run("--concurrency", "2", "--timeout", "0.6").code == 0
    assert len(played.scored()) == 60
    assert played.rows(FAILURES) == []


class Capacity:
    """Four slots, each held until its connection ends; when all are taken, a rollout is refused."""

    def __init__(self, slots, stuck):
        self.slots, self.stuck = slots, stuck
        self.held = self.most = self.refused = 0

    async def __call__(self, asked):
        if self.held == self.slots:
            self.refused += 1
            asked.answer(reply_of(b"capacity", 503))
            return
        self.held += 1
        self.most = max(self.most, self.held)
        if self.stuck(asked.task):
            await never(asked)
        self.held -= 1


def test_rc_44_a_rollout_that_ran_out_of_time_gives_its_slot_back_and_refusals_are_waited_out(play):
    slots = Capacity(4, lambda task: task % 3 == 0)
    played = play(slots, 20)
    assert played.run("--concurrency", "6", "--timeout", LIMIT, "--retry-for", "40").code == 3
    assert played.stub.quiet()
    assert slots.held == 0
    assert slots.refused > 0
    stuck = {(task, 0) for task in range(0, 20, 3)}
    assert {key_of(row) for row in played.rows(FAILURES)} == stuck
    assert played.scored() == {(task, 0) for task in range(20)} - stuck
    refused = sum(len(event["a"]) // 3 for event in played.rows(LOG) if event["t"] == "refused")
    assert refused == slots.refused


def test_rc_44_an_interrupt_gives_every_slot_back(play):
    slots = Capacity(4, lambda _task: True)
    played = play(slots, 8)
    started = played.started("--concurrency", "4", "--grace", "0", first=stalls_soon)
    started.hear("nothing ended for")
    assert slots.held == 4
    started.send(signal.SIGINT)
    assert started.ended().code == 130
    assert played.stub.quiet()
    assert slots.held == 0
