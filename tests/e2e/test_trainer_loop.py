"""The trainer's loop of examples/, as processes of their own against a server that writes down what it was asked."""

import asyncio
import json
import signal
import subprocess
import sys
import threading
from collections import Counter
from contextlib import contextmanager
from pathlib import Path

import pytest

from rollbook.verbs.status import run_status
from run_folder import identity, rows_of
from stub import adding, lines, serving

REPOSITORY = Path(__file__).parents[2]
LOOP = REPOSITORY / "examples" / "trainer_loop.py"
TASKS, REPEATS, STEPS = 2, 4, 3
STUCK = "add 3 and 3"  # the second task of step 1


class Stuck:
    """Answers every row but the first attempts at one task, which it leaves without a reply."""

    def __init__(self, count):
        self.left, self.arrived, self.waiting = count, threading.Event(), []

    async def __call__(self, row):
        asked = row["responses_create_params"]["input"]
        if asked != STUCK or row.get("_ng_attempt_index") or self.left == 0:
            return
        self.left -= 1
        if self.left == 0:
            self.arrived.set()
        loop, released = asyncio.get_running_loop(), asyncio.Event()
        self.waiting.append(lambda: loop.call_soon_threadsafe(released.set))
        await released.wait()


@contextmanager
def serving_but(count):
    """Serve with so many requests that are left without a reply until the end."""
    stuck = Stuck(count)
    with serving(stuck) as stub:
        yield stub, stuck
        for release in stuck.waiting:
            release()


@contextmanager
def trainer(stub, folder, *flags):
    (folder / "questions.jsonl").write_bytes(lines(adding(TASKS * STEPS)))
    sizes = {"steps": STEPS, "tasks": TASKS, "repeats": REPEATS, "at-once": 2}
    words = [word for name, size in sizes.items() for word in (f"--{name}", str(size))]
    command = [sys.executable, LOOP, "--head", f"127.0.0.1:{stub.port}"]
    process = subprocess.Popen(
        [*command, folder / "out", "--input", folder / "questions.jsonl", *words, *flags],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


def told(stub, folder, *flags):
    """Run the loop to its end, and return the lines that it told."""
    with trainer(stub, folder, *flags) as process:
        out, err = process.communicate(timeout=100)
        assert process.returncode == 0, err
        return out.splitlines()


def shard(folder, step):
    return folder / "out" / f"rollouts-step-{step}.jsonl"


def scored(folder):
    return [run_status(shard(folder, step)).coverage.scored for step in range(STEPS)]


@pytest.mark.parametrize("death", [signal.SIGKILL, signal.SIGTERM])
def test_a_loop_that_died_in_a_step_asks_no_finished_rollout_again_and_delivers_every_group(tmp_path, death):
    with serving_but(2) as (stub, stuck):
        with trainer(stub, tmp_path) as process:
            assert stuck.arrived.wait(60)
            process.send_signal(death)
            first, _ = process.communicate(timeout=60)
        finished = [identity(row) for row in rows_of(shard(tmp_path, 1))]
        assert finished == [(0, repeat, 0) for repeat in range(REPEATS)]
        before = list(stub.requests)
        second = told(stub, tmp_path)
        asked_for = len(stub.requests)
        assert (told(stub, tmp_path), len(stub.requests)) == ([], asked_for)
    assert [line.split(",")[0] for line in (*first.splitlines(), *second)] == [
        "step 0 run: 2 of 2 groups",
        "step 1 taken up where it had stopped: 2 of 2 groups",
        "step 2 run: 2 of 2 groups",
    ]
    asked = Counter((row["_ng_rollout_id"], identity(row)) for row in stub.requests)
    assert set(asked.values()) == {1}
    anew = [identity(row) for row in stub.requests[len(before) :]]
    assert sorted(anew[:REPEATS]) == [(1, repeat, 1) for repeat in range(REPEATS)]
    assert len(anew) == REPEATS + TASKS * REPEATS
    assert scored(tmp_path) == [TASKS * REPEATS] * STEPS


def test_enough_rollouts_make_a_group_and_stragglers_are_cancelled(tmp_path):
    with serving_but(1) as (stub, _):
        lines_told = told(stub, tmp_path, "--policy", "n_of_m", "--enough", "3")
    assert [line.split(",")[0] for line in lines_told] == [f"step {step} run: 2 of 2 groups" for step in range(STEPS)]
    assert run_status(shard(tmp_path, 1)).coverage.scored < TASKS * REPEATS


def test_a_group_that_is_not_whole_in_time_is_not_delivered(tmp_path):
    with serving_but(2) as (stub, _):
        lines_told = told(stub, tmp_path, "--policy", "deadline", "--seconds", "4")
    assert lines_told[1].startswith("step 1 run: 1 of 2 groups")
    assert json.loads((tmp_path / "out" / "checkpoint.json").read_bytes()) == {"steps": STEPS}


def test_the_loop_serves_itself_where_no_server_is_named(tmp_path):
    command = [sys.executable, LOOP, tmp_path / "out", "--steps", "1", "--tasks", "2", "--repeats", "2"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=100)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("step 0 run: 2 of 2 groups")


def test_the_loop_is_short_enough_to_be_read():
    assert len(LOOP.read_text(encoding="utf-8").splitlines()) <= 200
