"""Cases from the field about many rollouts at once: ceilings, refusals, faults by the hundred, memory.

Rules:
* How many are in flight is what the server saw. `ROLLBOOK_FULL=1` runs the crowd at its full size.
"""

import asyncio
import json
import os
import random
import resource
import sys
import time
from collections import Counter
from email.utils import formatdate

import pytest

from cases import peer as peers
from cases.first_done import tells_its_peak
from cases.peer import never, reply_of, result
from cases.played import FAILURES, LOG, Played, key_of
from stub import adding

FULL = os.environ.get("ROLLBOOK_FULL") == "1"


@pytest.fixture
def play(tmp_path):
    """Return what plays a run of some tasks against a peer."""
    with peers.serving() as peer:

        def played(script, tasks):
            peer.script = script
            return Played(tmp_path, peer, adding(tasks))

        yield played


def refusals(played):
    """Return how many attempts the log tells as refused."""
    return sum(len(event["a"]) // 3 for event in played.rows(LOG) if event["t"] == "refused")


def in_a_second():
    return "1", 1.0


def at_a_date():
    """Return a date one to two seconds ahead, since a date has no fractions, and how far it is by any clock."""
    return formatdate(time.time() + 2.0, usegmt=True), 0.9


def garbage():
    return "soon", 0.0


class Refusing:
    """Refuses the first attempt of each rollout and says when to come back."""

    def __init__(self, hint):
        self.hint = hint
        self.not_before = {}
        self.again = []
        self.too_early = []

    async def __call__(self, asked):
        if asked.key not in self.not_before:
            header, seconds = self.hint()
            self.not_before[asked.key] = asked.at + seconds
            asked.answer(reply_of(b"slow down", 429, Retry_After=header))
            return
        self.again.append(asked.at)
        if asked.at < self.not_before[asked.key]:
            self.too_early.append(asked.key)


@pytest.mark.parametrize("hint", [in_a_second, at_a_date, garbage])
def test_rc_40_refused_rollouts_come_back_no_earlier_than_asked_and_not_all_together(hint, play):
    server = Refusing(hint)
    played = play(server, 30)
    assert played.run("--concurrency", "30", "--retry-for", "60").code == 0
    assert server.too_early == []
    assert len(played.scored()) == 30
    assert set(played.times().values()) == {2}
    assert max(server.again) - min(server.again) > 0.05
    assert played.rows(FAILURES) == []
    assert refusals(played) == 30
    assert {row["_ng_attempt_index"] for row in played.rows("r.jsonl")} == {1}


def test_rc_40_refusals_without_end_are_bounded_and_told_apart_from_failures_of_the_task(play):
    async def refuses(asked):
        asked.answer(reply_of(b"no", 503))

    played = play(refuses, 6)
    assert played.run("--concurrency", "6", "--retry-for", "0.9").code == 3
    rows = played.rows(FAILURES)
    assert {row["_ng_failure_class"] for row in rows} == {"agent_request_failed"}
    assert {row["_ng_failure_http_status"] for row in rows} == {503}
    assert len(played.stub.asked) == len(rows) + refusals(played)
    assert 6 < len(played.stub.asked) < 10 * 6


def test_a_number_is_a_hard_ceiling_and_is_reached_while_refused_rollouts_come_back_too(play):
    refused = set()

    async def script(asked):
        if asked.task > 20 and asked.task % 2 and asked.key not in refused:
            refused.add(asked.key)
            asked.answer(reply_of(b"no", 429))
            return
        await asked.after(0.02)

    played = play(script, 60)
    assert played.run("--concurrency", "7", "--retry-for", "60").code == 0
    assert played.stub.most == 7
    assert played.rows(FAILURES) == []


@pytest.mark.parametrize("flags", [(), ("--concurrency", "auto")])
def test_the_command_line_begins_with_16_in_flight_and_decides_about_more_by_what_they_deliver(flags, play):
    before_any_ended = []
    all_there = asyncio.Event()

    async def script(asked):
        if asked.peer.in_flight == 16:
            await asked.after(0.3)
            before_any_ended.append(asked.peer.most)
            all_there.set()
        await all_there.wait()

    played = play(script, 100)
    said = played.run(*flags, "--json")
    assert said.code == 0
    assert before_any_ended[0] == 16
    first, *_ = json.loads(said.out)["dispatch"]["concurrency"]
    assert (first["limit"], first["why"]) == (16, "start")


def test_auto_halves_where_a_server_refuses_and_the_number_holds_it_all_the_time(play):
    refused = set()

    async def script(asked):
        if asked.peer.in_flight > 6 and asked.key not in refused:
            refused.add(asked.key)
            asked.answer(reply_of(b"no", 429))
            return
        await asked.after(0.01)

    played = play(script, 120)
    said = played.run("--concurrency", "12", "+adaptive_concurrency=true", "--retry-for", "60", "--json")
    assert said.code == 0
    assert played.stub.most <= 12
    assert len(played.scored()) == 120
    assert '"why": "refused' in said.out


ENDS = ("result", "429", "500", "drop", "stall")


class Crowd:
    """One in a hundred each is refused once, fails, is dropped or never answered; by its key, so that it is known."""

    def __init__(self, seed):
        self.seed = seed
        self.refused = set()

    def of(self, key):
        drawn = random.Random(f"{self.seed}:{key}").randrange(100)  # noqa: S311  a choice, not a secret
        return ENDS[drawn] if 0 < drawn < len(ENDS) else ENDS[0]

    async def __call__(self, asked):
        match self.of(asked.key):
            case "429" if asked.key not in self.refused:
                self.refused.add(asked.key)
                asked.answer(reply_of(b"busy", 429))
            case "500":
                asked.answer(reply_of(b"oops", 500))
            case "drop":
                asked.close()
            case "stall":
                await never(asked)
            case _:
                await asked.after(0.02)


def test_a_crowd_with_faults_of_every_kind_finishes_with_every_rollout_accounted_for(play):
    tasks, lanes, limit = (20_000, 2_048, 10) if FULL else (2_000, 256, 3)
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    crowd = Crowd(7)
    played = play(crowd, tasks)
    flags = ("--concurrency", str(lanes), "--timeout", str(limit), "--retry-for", "600")
    assert played.started(*flags, longest=600).ended().code == 3
    wanted = Counter(crowd.of((task, 0)) for task in range(tasks))
    assert set(wanted) == set(ENDS)
    _, told = played.status()
    lost = wanted["500"] + wanted["drop"] + wanted["stall"]
    assert (told["coverage"]["scored"], told["coverage"]["failed"]) == (tasks - lost, lost)
    assert (told["law_holds"], told["outstanding"]) == (True, lost)
    kinds = Counter((row["_ng_failure_http_status"], row["_ng_failure_delivery"]) for row in played.rows(FAILURES))
    assert kinds[500, "delivered"] == wanted["500"]
    assert kinds[None, "possibly_delivered"] == wanted["drop"] + wanted["stall"]
    assert {key_of(row) for row in played.rows(FAILURES)} == {
        (task, 0) for task in range(tasks) if crowd.of((task, 0)) in ("500", "drop", "stall")
    }
    again = {key for key, times in played.times().items() if times == 2}
    assert again == crowd.refused == {(task, 0) for task in range(tasks) if crowd.of((task, 0)) == "429"}
    assert max(played.times().values()) == 2
    assert refusals(played) == wanted["429"]
    assert lanes / 2 < played.stub.most <= lanes


def peak_bytes(folder, peer, tasks):
    """Return the most memory that a run of so many rollouts held at once."""
    folder.mkdir()
    flags = ("--concurrency", "32", "--durability", "off", "--disable-aggregation")
    said = Played(folder, peer, adding(tasks)).started(*flags, first=tells_its_peak, longest=600).ended()
    assert (said.code, len(peer.asked)) == (0, tasks)
    peer.asked.clear()
    peer.requests.clear()
    return int(said.err.rsplit("peak ", 1)[1]) * 1024


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel tells the peak of a process")
def test_rc_45_memory_follows_what_is_in_flight_and_not_the_plan(tmp_path):
    async def six_kilobytes(asked):
        asked.answer(result(asked.row, text="x" * 6000))

    sizes = (2_000, 12_000) if FULL else (400, 2_400)
    with peers.serving(six_kilobytes) as peer:
        small, large = (peak_bytes(tmp_path / f"of-{tasks}", peer, tasks) for tasks in sizes)
    assert large - small < 200 * (sizes[1] - sizes[0]) + 5_000_000
