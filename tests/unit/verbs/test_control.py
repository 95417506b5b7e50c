"""A live run hears commands through a real socket, and nobody who asks wrongly, slowly or never touches it."""

import asyncio
import json
import os
import socket
import stat
import subprocess
import sys

import pytest

from controls import IN_FLIGHT, ScriptedControls, waiting
from rollbook.clock import SystemClock
from rollbook.errors import RunError
from rollbook.ledger.control_socket import Peer, connect_to, listen_at
from rollbook.ledger.lock import RunLock
from rollbook.ledger.paths import RunPaths
from rollbook.records.identity import RolloutKey
from rollbook.verbs.control import answered, served
from rollbook.verbs.control_request import MOST_REQUEST_BYTES, MOST_ROLLOUTS, Answer, Request, ask

ANOTHER_USER = 65534


@pytest.fixture
def paths(tmp_path):
    return RunPaths(tmp_path / "r.jsonl")


def heard(paths, *requests, controls=None, notes=None, ask_with=ask):
    """Ask a run that is served meanwhile, one request after the other."""

    async def run():
        noted = [] if notes is None else notes
        async with served(paths, controls or ScriptedControls(), noted.append, SystemClock()):
            return [await asyncio.to_thread(ask_with, paths, request) for request in requests]

    return asyncio.run(run())


def raw(paths, sent):
    """Send bytes as they are, and return what comes back until the other side closes."""
    with connect_to(paths.control_socket, 10.0) as connection:
        connection.sendall(sent)
        connection.shutdown(socket.SHUT_WR)
        answer = b""
        try:
            while part := connection.recv(65536):
                answer += part
        except ConnectionResetError:
            pass
        return answer


def test_status_tells_how_the_run_is_and_leaves_no_note(paths):
    notes, controls = [], ScriptedControls()
    (answer,) = heard(paths, Request("status"), controls=controls, notes=notes)
    assert answer == Answer(status=controls.status())
    assert notes == controls.told == []


@pytest.mark.parametrize(
    ("request_", "told", "said"),
    [
        (Request("concurrency", limit=8), ("limit", 8), "concurrency set to 8"),
        (Request("pause"), ("pause",), "paused"),
        (Request("resume"), ("resume",), "resumed"),
        (Request("drain"), ("drain", "drained by ctl"), "draining"),
        (Request("requeue", rollouts=(IN_FLIGHT,)), ("requeue", IN_FLIGHT), "requeued 3-0 (attempt 2)"),
    ],
)
def test_a_command_is_done_answered_and_noted_with_who_asked(request_, told, said, paths):
    notes, controls = [], ScriptedControls()
    (answer,) = heard(paths, request_, controls=controls, notes=notes)
    assert controls.told == [told]
    assert (answer.said, answer.error, answer.status) == (said, None, controls.status())
    assert notes == [f"{said} by ctl (pid {os.getpid()})"]


@pytest.mark.parametrize("command", ["pause", "resume"])
def test_a_run_that_drains_is_neither_paused_nor_resumed_and_says_so(command, paths):
    notes, controls = [], ScriptedControls()
    controls.drain("drained by ctl")
    (answer,) = heard(paths, Request(command), controls=controls, notes=notes)
    assert answer.error == (
        f"{command}: nothing further is sent, for good: drained by ctl; once it ended, `gym eval run --resume` goes on"
    )
    assert controls.told == [("drain", "drained by ctl")]
    assert notes == []


def test_a_rollout_that_is_not_in_flight_is_told_and_leaves_no_note(paths):
    notes, away = [], RolloutKey(9, 9)
    (answer,) = heard(paths, Request("requeue", rollouts=(away,)), notes=notes)
    assert [(one.key, one.attempt, one.why) for one in answer.requeued] == [(away, None, "not in flight")]
    assert notes == []


def test_a_rollout_named_twice_is_requeued_once(paths):
    controls = ScriptedControls()
    heard(paths, Request("requeue", rollouts=(IN_FLIGHT, IN_FLIGHT)), controls=controls)
    assert controls.told == [("requeue", IN_FLIGHT)]


def test_the_most_rollouts_of_a_request_fit_in_one(paths):
    keys = tuple(RolloutKey(10**9 + number, 10**6) for number in range(MOST_ROLLOUTS))
    (answer,) = heard(paths, Request("requeue", rollouts=keys))
    assert len(answer.requeued) == MOST_ROLLOUTS


def test_an_answer_is_bounded_however_much_waits(paths):
    controls = ScriptedControls(waiting=[waiting(task) for task in range(5000)])
    (answer,) = heard(paths, Request("status"), controls=controls)
    assert len(answer.status.waiting) == 20


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"hello",
        b"[]",
        b"null",
        b"{}",
        b'{"command": 7}',
        b'{"command": "stop"}',
        b'{"command": "concurrency"}',
        b'{"command": "concurrency", "limit": 0}',
        b'{"command": "concurrency", "limit": -5}',
        b'{"command": "concurrency", "limit": 1e9}',
        b'{"command": "concurrency", "limit": true}',
        b'{"command": "concurrency", "limit": "8"}',
        b'{"command": "concurrency", "limit": 99999999999999999999999}',
        b'{"command": "requeue"}',
        b'{"command": "requeue", "rollouts": ["3-0"]}',
        b'{"command": "requeue", "rollouts": [{"task": 3}]}',
        b"\xff\xfe",
        b'{"command": "\\ud800"}',
        b"[" * 4000,
        b'{"x":' * 800,
        b"x" * (MOST_REQUEST_BYTES + 1),
    ],
)
def test_what_is_no_request_is_answered_with_an_error_and_changes_nothing(line):
    controls, notes = ScriptedControls(), []
    answer = answered(line, controls, notes.append)
    assert answer.error
    assert controls.told == notes == []


def test_an_unknown_command_is_answered_with_the_list():
    answer = answered(b'{"command": "stop"}', ScriptedControls(), print)
    assert answer.error == "no such command; commands: status, concurrency, pause, resume, drain, requeue"


@pytest.mark.parametrize("sent", [b"", b'{"command": "status"}', b"x" * 100_000])
def test_a_line_that_does_not_end_leaves_the_next_one_served(sent, paths):
    _, answer = heard(paths, sent, Request("status"), ask_with=lambda *a: (raw if a[1] is sent else ask)(*a))
    assert answer.status is not None


def test_a_connection_carries_one_answer(paths):
    line = b'{"command": "status"}\n'
    (answer,) = heard(paths, line * 3, ask_with=raw)
    assert answer.count(b"\n") == 1
    assert json.loads(answer)["status"]["in_flight"] == 1


def test_clients_that_hang_end_with_the_run_and_keep_it_from_nothing(paths):
    async def run():
        async with served(paths, ScriptedControls(), print, SystemClock()):
            return [await asyncio.to_thread(connect_to, paths.control_socket, 10.0) for _ in range(12)]

    for connection in asyncio.run(run()):
        with connection:
            assert not is_answered(connection)
    assert not paths.control_socket.exists()


def is_answered(connection):
    try:
        return bool(connection.recv(1))
    except ConnectionResetError:
        return False


def test_a_control_that_breaks_is_not_an_end_of_the_run(paths):
    class Broken(ScriptedControls):
        def pause(self):
            raise ValueError("broken")

    def asked(paths, request):
        try:
            return ask(paths, request)
        except RunError as error:
            return error

    broken, answer = heard(paths, Request("pause"), Request("status"), controls=Broken(), ask_with=asked)
    assert isinstance(broken, RunError)
    assert answer.status is not None


def test_the_socket_is_its_owners_alone_and_goes_with_the_run(paths):
    modes = []
    heard(paths, None, ask_with=lambda paths, _: modes.append(paths.control_socket.lstat().st_mode))
    assert stat.S_ISSOCK(modes[0])
    assert stat.S_IMODE(modes[0]) == 0o600
    assert list(paths.output.parent.iterdir()) == []


def test_a_socket_that_a_dead_process_left_is_replaced(paths):
    listen_at(paths.control_socket).socket.close()
    assert stat.S_ISSOCK(paths.control_socket.lstat().st_mode)
    (answer,) = heard(paths, Request("status"))
    assert answer.status is not None


def test_a_socket_that_another_run_put_there_is_left_to_it(paths):
    first = listen_at(paths.control_socket)
    second = listen_at(paths.control_socket)
    first.close()
    assert ask_status_of(second, paths)
    second.close()
    assert not paths.control_socket.exists()


def ask_status_of(listener, paths):
    with connect_to(paths.control_socket, 10.0) as connection:
        accepted, _ = listener.socket.accept()
        accepted.close()
        return connection.fileno() >= 0


@pytest.mark.parametrize("name", ["r.jsonl", f"{'n' * 200}.jsonl"])
def test_a_path_longer_than_an_address_is_heard(name, tmp_path):
    folder = tmp_path.joinpath(*["a-folder-with-a-long-name" * 4] * 3)
    folder.mkdir(parents=True)
    (answer,) = heard(RunPaths(folder / name), Request("status"))
    assert answer.status is not None


def test_a_run_that_cannot_listen_goes_on_with_one_note(paths):
    paths.control_socket.write_text("mine", encoding="utf-8")
    notes = []
    assert heard(paths, notes=notes) == []
    assert notes == [
        f"{paths.control_socket}: gym eval ctl cannot reach this run: a file that is no socket has this name"
    ]
    assert paths.control_socket.read_text(encoding="utf-8") == "mine"


def test_where_no_run_is_live_the_asking_says_so(paths):
    with pytest.raises(RunError, match=r"r\.jsonl: no run is live here\. How it stands: gym eval status "):
        ask(paths, Request("status"))


def test_the_last_process_that_held_a_dead_run_is_named(paths):
    code = (
        "import os, sys, pathlib\n"
        "from rollbook.ledger.lock import RunLock\n"
        "RunLock(pathlib.Path(sys.argv[1]), now=lambda: 0.0).acquire()\n"
        "print(os.getpid(), flush=True)\n"
        "os._exit(9)\n"
    )
    died = subprocess.run([sys.executable, "-c", code, paths.lock], capture_output=True, text=True, check=False)
    with pytest.raises(RunError, match=rf"no run is live here; pid {died.stdout.strip()} on .* was the last"):
        ask(paths, Request("status"))


def test_a_run_that_is_held_and_does_not_listen_is_named(paths):
    lock = RunLock(paths.lock, now=SystemClock().now)
    lock.acquire()
    try:
        with pytest.raises(RunError, match=rf"pid {os.getpid()} on .* works on this run and hears no commands"):
            ask(paths, Request("status"))
    finally:
        lock.release()


def test_a_process_of_another_user_is_none_of_ours():
    assert Peer(1, os.geteuid()).is_ours
    assert not Peer(1, os.geteuid() + 1).is_ours


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_another_user_who_gets_at_the_socket_is_not_answered(paths):
    code = (
        "import os, socket, sys\n"
        "s = socket.socket(socket.AF_UNIX)\n"
        "s.connect('/proc/self/fd/' + sys.argv[1])\n"
        f"os.setuid({ANOTHER_USER})\n"
        "t = socket.socket(socket.AF_UNIX)\n"
        "t.connect('/proc/self/fd/' + sys.argv[1])\n"
        "try:\n"
        '    t.sendall(b\'{"command": "pause"}\\n\')\n'
        "    print(len(t.recv(10)))\n"
        "except (ConnectionResetError, BrokenPipeError):\n"
        "    print(0)\n"
    )

    def intrude(paths, _request):
        paths.control_socket.chmod(0o666)
        found = os.open(paths.control_socket, os.O_PATH)
        command = [sys.executable, "-c", code, str(found)]
        done = subprocess.run(command, pass_fds=[found], capture_output=True, text=True, check=False)
        os.close(found)
        return done

    controls = ScriptedControls()
    (done,) = heard(paths, None, controls=controls, ask_with=intrude)
    assert done.stdout.strip() == "0", done.stderr
    assert controls.told == []
