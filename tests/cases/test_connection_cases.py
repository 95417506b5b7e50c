"""Cases from the field about the way to a server: one that is not there, that hangs up, that is behind a proxy."""

import asyncio
import socket
import threading
from contextlib import contextmanager
from functools import partial

import pytest

from cases import peer as peers
from cases.first_done import few_files
from cases.played import FAILURES, RESULTS, Played
from ports import free_port
from stub import adding


@pytest.fixture
def play(tmp_path):
    """Return what plays a run of some tasks against a peer."""
    with peers.serving() as peer:
        yield lambda tasks=20: Played(tmp_path, peer, adding(tasks))


def test_rc_32_a_refused_connection_is_told_at_the_first_failure_and_kept_as_not_sent(play):
    played = play(3)
    played.stub.elsewhere = free_port()
    started = played.started("--concurrency", "2", "+dispatch_connect_grace_s=0.6")
    started.hear(f"127.0.0.1:{played.stub.elsewhere}")
    said = started.ended()
    assert said.code == 3
    assert "tried again" in said.err
    assert "ulimit" not in said.err
    rows = played.rows(FAILURES)
    assert len(rows) == 3
    assert {row["_ng_failure_class"] for row in rows} == {"agent_request_failed"}
    assert {row["_ng_failure_delivery"] for row in rows} == {"not_sent"}
    assert not played.stub.asked


def test_rc_32_a_host_that_is_unknown_is_named_and_kept_as_not_sent(play):
    played = play(1)
    config = played.stub.config()
    server = config["adder_environment_server"]["environment_servers"]["legacy_agent"]
    server["host"] = "nowhere.invalid"
    played.stub.config = lambda: config
    said = played.run("--concurrency", "1", "+dispatch_connect_grace_s=0")
    assert said.code == 3
    (row,) = played.rows(FAILURES)
    assert "nowhere.invalid" in said.text
    assert row["_ng_failure_delivery"] == "not_sent"


def test_rc_32_a_server_that_comes_up_within_the_grace_is_used(play):
    played = play(4)
    played.stub.elsewhere = free_port()
    started = played.started("--concurrency", "2", "+dispatch_connect_grace_s=50")
    started.hear("tried again")
    with peers.serving(port=played.stub.elsewhere) as late:
        assert started.ended().code == 0
        assert sorted(late.times().values()) == [1, 1, 1, 1]
    assert len(played.scored()) == 4
    assert played.rows(FAILURES) == []


@pytest.mark.parametrize("idle", [0.0, 0.15, 0.25])
def test_rc_34_no_rollout_is_lost_or_run_twice_where_a_server_closes_just_as_its_connection_is_used_again(idle, play):
    """Each reply comes about as long after its request as the server keeps the connection of the last one.

    The collector has a process of its own: in one, each side waits for the other between looking and sending.
    """

    async def script(asked):
        await asked.after(max(0.0, idle - 0.004 + 0.001 * (asked.task % 9)))

    played = play(120)
    played.stub.script, played.stub.idle = script, idle
    assert played.started("--concurrency", "8").ended().code == 0
    assert len(played.scored()) == len(played.rows(RESULTS)) == 120
    assert set(played.times().values()) == {1}
    assert played.rows(FAILURES) == []


class Together:
    """Answers once so many rollouts are in flight at once, or nothing more can come."""

    def __init__(self, count):
        self.count = count
        self.all_there = asyncio.Event()

    async def __call__(self, asked):
        if len(asked.peer.asked) == self.count:
            self.all_there.set()
        await self.all_there.wait()


def test_rc_41_the_soft_limit_of_open_files_is_raised_as_far_as_the_system_lets_us(play):
    played = play(300)
    played.stub.script = Together(300)
    started = played.started("--concurrency", "300", first=partial(few_files, 96, 2048))
    assert started.ended().code == 0
    assert played.stub.most == 300
    assert len(played.scored()) == 300
    assert played.rows(FAILURES) == []


def test_rc_41_where_files_are_too_few_for_the_concurrency_it_is_reduced_and_no_rollout_pays_for_it(play):
    played = play(300)
    said = played.started("--concurrency", "300", first=partial(few_files, 96, 96)).ended()
    assert said.code == 0
    assert len(played.scored()) == 300
    assert played.rows(FAILURES) == []
    assert "open files" in said.err


@contextmanager
def proxy():
    """Yield a port and the connections that somebody made to it."""
    made = []
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def take():
            while True:
                try:
                    connection, _ = listening.accept()
                except OSError:
                    return
                made.append(connection)
                connection.close()

        thread = threading.Thread(target=take, daemon=True)
        thread.start()
        yield listening.getsockname()[1], made
        listening.shutdown(socket.SHUT_RDWR)
        thread.join(10)


@pytest.mark.parametrize("no_proxy", [None, "10.0.0.0/8"])
def test_rc_42_calls_between_our_own_processes_ignore_proxy_variables(no_proxy, play, monkeypatch):
    played = play(3)
    with proxy() as (port, made):
        for name in ("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{port}")
        for name in ("NO_PROXY", "no_proxy"):
            monkeypatch.delenv(name, raising=False)
            if no_proxy is not None:
                monkeypatch.setenv(name, no_proxy)
        assert played.run("--concurrency", "2", "+global_aiohttp_trust_env=true").code == 0
        assert played.status()[0] == 0
        assert played.resume().code == 0
    assert made == []
    assert len(played.scored()) == 3
    assert len(played.stub.aggregated) == 1


def test_rc_35_the_time_that_a_rollout_waits_for_a_connection_is_not_its_own(play):
    async def three_tenths_of_a_second(asked):
        await asked.after(0.3)

    played = play(200)
    played.stub.script = three_tenths_of_a_second
    flags = ("--concurrency", "200", "--timeout", "1")
    assert played.started(*flags, first=partial(few_files, 96, 96)).ended().code == 0
    assert len(played.scored()) == 200
    assert played.stub.most <= 48
    assert played.rows(FAILURES) == []
