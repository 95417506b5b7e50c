"""Cases about a run to which nobody listens: its terminal is gone, its log is full, its streams were closed."""

import fcntl
import os
import signal
import subprocess
import sys
import termios
from pathlib import Path

import pytest
from aiohttp import web

from cases.played import Played
from stub import adding, serving

COMMAND = (sys.executable, "-m", "rollbook.cli")
FULL = Path("/dev/full")
LONGEST_S = 120


@pytest.fixture
def stub():
    with serving() as stub:
        yield stub


@pytest.fixture
def terminal():
    """Return the two ends of a terminal; the outer one may be closed by a test."""
    ends = os.openpty()
    yield ends
    for end in ends:
        try:
            os.close(end)
        except OSError:
            continue


def led_by_its_terminal():
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def test_a_run_whose_terminal_is_closed_stops_in_order_and_is_gone_on_with(tmp_path, stub, terminal):
    played = Played(tmp_path, stub, adding(20))
    outer, inner = terminal

    def script(row):
        if row["_ng_task_index"] == 5:
            os.close(outer)

    stub.script = script
    streams = {"stdin": inner, "stdout": inner, "stderr": inner}
    words = [*COMMAND, *played.words("--concurrency", "1")]
    run = subprocess.Popen(words, **streams, start_new_session=True, preexec_fn=led_by_its_terminal)  # noqa: PLW1509
    os.close(inner)
    assert run.wait(LONGEST_S) == 128 + signal.SIGHUP
    _, told = played.status()
    assert (told["in_flight"], set(told["owed_by"])) == (0, {"never started"})
    stub.script = lambda _row: None
    assert played.resume().code == 0
    assert sorted(played.asked()) == [(task, 0) for task in range(20)]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_a_run_whose_log_is_full(tmp_path, stub, number):
    played = Played(tmp_path, stub, adding(20))
    asked = []

    def script(_row):
        asked.append(0)
        if len(asked) == 6:
            run.send_signal(number)

    stub.script = script
    with FULL.open("w") as full:
        run = subprocess.Popen([*COMMAND, *played.words("--concurrency", "1")], stdout=subprocess.DEVNULL, stderr=full)
        assert run.wait(LONGEST_S) == 128 + number
    assert len(played.scored()) == len(asked) < 20


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_streams_that_were_closed_end_no_run_and_get_none_of_its_files(tmp_path, stub, closed):
    played = Played(tmp_path, stub, adding(3))
    shell = ["/bin/sh", "-c", f'exec "$@" {closed}', "sh", *COMMAND, *played.words()]
    assert subprocess.run(shell, capture_output=True, timeout=LONGEST_S, check=False).returncode == 0
    assert played.scored() == {(0, 0), (1, 0), (2, 0)}
    assert played.status()[0] == 0


def test_a_failure_is_counted_though_nobody_can_be_told(tmp_path, stub):
    played = Played(tmp_path, stub, adding(3))
    stub.script = lambda _row: web.json_response({}, status=500)
    with FULL.open("w") as full:
        done = subprocess.run(
            [*COMMAND, *played.words()], stdout=subprocess.DEVNULL, stderr=full, timeout=LONGEST_S, check=False
        )
    assert done.returncode == 3
