"""The trainer's loop of examples/ against a server that keeps what it was asked: here, and as a process that dies."""

import asyncio
import importlib.util
import json
import signal
import subprocess
import sys
import threading
from collections import Counter
from contextlib import contextmanager
from pathlib import Path

import pytest
from aiohttp import web

from rollbook.ledger.lock_file import NOBODY
from rollbook.verbs.status import run_status
from run_folder import identity, rows_of, said
from stub import adding, lines, serving
from unit.api.shard_calls import ShardFolder, planned

REPOSITORY = Path(__file__).parents[2]
LOOP = REPOSITORY / "examples" / "trainer_loop.py"
TASKS, REPEATS, STEPS = 2, 4, 3
STUCK = "add 3 and 3"  # the second task of step 1, task 3 of all
FOR_EVER = 1 << 20

_SPEC = importlib.util.spec_from_file_location("trainer_loop", LOOP)
trainer_loop = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(trainer_loop)


class Stuck:
    """Leaves `count` rollouts of one task without a reply, and says when `told_at` of them have come.

    Further attempts at it are answered by `later`.
    """

    def __init__(self, count, told_at, later):
        self.left, self.to_come, self.later = count, told_at, later
        self.arrived, self.waiting = threading.Event(), []

    async def __call__(self, row):
        if row["responses_create_params"]["input"] != STUCK:
            return None
        if row.get("_ng_attempt_index") and self.later is not None:
            return self.later(row)
        if self.left == 0:
            return None
        self.left, self.to_come = self.left - 1, self.to_come - 1
        if self.to_come == 0:
            self.arrived.set()
        loop, released = asyncio.get_running_loop(), asyncio.Event()
        self.waiting.append(lambda: loop.call_soon_threadsafe(released.set))
        await released.wait()
        return None


@contextmanager
def serving_but(count, told_at=2, later=lambda _row: None):
    """Serve with so many requests that are left without a reply until the end."""
    stuck = Stuck(count, told_at, later)
    with serving(stuck) as stub:
        yield stub, stuck
        for release in stuck.waiting:
            release()


def words(stub, folder, *flags):
    (folder / "questions.jsonl").write_bytes(lines(adding(TASKS * STEPS)))
    sizes = {"steps": STEPS, "tasks": TASKS, "repeats": REPEATS, "at-once": 2}
    named = [word for name, size in sizes.items() for word in (f"--{name}", str(size))]
    where = [str(folder / "out"), "--head", f"127.0.0.1:{stub.port}", "--input", str(folder / "questions.jsonl")]
    return [*where, *named, *flags]


@pytest.fixture
def told(tmp_path, capsys):
    """Return a function that runs the loop to its end and gives the lines that it told, each up to its comma."""

    def _told(stub, *flags):
        asyncio.run(trainer_loop.main(words(stub, tmp_path, *flags)))
        return [line.split(",")[0] for line in capsys.readouterr().out.splitlines()]

    return _told


def stopped(stub, stuck, folder):
    """Stop the loop in the step whose second task is stuck."""

    async def _stopped():
        loop = asyncio.create_task(trainer_loop.main(words(stub, folder)))
        await asyncio.to_thread(stuck.arrived.wait, 60)
        loop.cancel()
        await asyncio.wait({loop})

    asyncio.run(_stopped())


def shard(folder, step):
    return folder / "out" / f"rollouts-step-{step}.jsonl"


def scored(folder):
    return [run_status(shard(folder, step)).coverage.scored for step in range(STEPS)]


@pytest.mark.parametrize("death", [signal.SIGKILL, signal.SIGTERM])
def test_a_loop_that_died_in_a_step_asks_no_finished_rollout_again_and_delivers_every_group(tmp_path, told, death):
    with serving_but(2) as (stub, stuck):
        command = [sys.executable, LOOP, *words(stub, tmp_path)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert stuck.arrived.wait(60)
            process.send_signal(death)
            first, _ = process.communicate(timeout=60)
        finished = sorted(identity(row) for row in rows_of(shard(tmp_path, 1)))
        assert finished == [(2, repeat, 0) for repeat in range(REPEATS)]
        before = list(stub.requests)
        second = told(stub)
        asked_for = len(stub.requests)
        assert (told(stub), len(stub.requests)) == ([], asked_for)
    assert [first.split(",")[0], *second] == [
        "step 0 run: 2 of 2 groups",
        "step 1 taken up where it had stopped: 2 of 2 groups",
        "step 2 run: 2 of 2 groups",
    ]
    asked = Counter((row["_ng_rollout_id"], identity(row)) for row in stub.requests)
    assert set(asked.values()) == {1}
    anew = [identity(row) for row in stub.requests[len(before) :]]
    assert sorted(anew[:REPEATS]) == [(3, repeat, 1) for repeat in range(REPEATS)]
    assert len(anew) == REPEATS + TASKS * REPEATS
    assert scored(tmp_path) == [TASKS * REPEATS] * STEPS


@pytest.mark.parametrize("policy", [["wait"], ["deadline", "--seconds", "60"], ["n_of_m", "--enough", "3"]])
@pytest.mark.parametrize("has_files", [True, False])
def test_a_step_that_died_before_anything_was_saved_is_taken_up(tmp_path, told, policy, has_files):
    opened = ShardFolder(tmp_path / "out", "step-0")
    with serving() as stub:
        opened.call(stub, planned(TASKS, num_repeats=REPEATS))
        opened.paths.lock.write_bytes(NOBODY)
        for path in () if has_files else (opened.paths.output, opened.paths.failures):
            path.unlink(missing_ok=True)
        lines_told = told(stub, "--steps", "1", "--policy", *policy)
    assert lines_told == ["step 0 taken up where it had stopped: 2 of 2 groups"]


def test_enough_rollouts_make_a_group_and_stragglers_are_cancelled(tmp_path, told):
    with serving_but(1) as (stub, _):
        lines_told = told(stub, "--policy", "n_of_m", "--enough", "3")
    assert lines_told == [f"step {step} run: 2 of 2 groups" for step in range(STEPS)]
    assert run_status(shard(tmp_path, 1)).coverage.scored < TASKS * REPEATS


def test_the_steps_of_a_loop_are_aggregated_and_profiled_together(tmp_path, told):
    every = str(tmp_path / "out" / "rollouts-step-*.jsonl")
    with serving() as stub:
        told(stub)
        merged = said(["eval", "aggregate", "--input-glob", every, "-o", str(tmp_path / "all.jsonl"), *stub.overrides])
    assert merged.code == 0, merged.text
    assert run_status(tmp_path / "all.jsonl").coverage.scored == STEPS * TASKS * REPEATS
    profiled = said(["eval", "profile", every, "-o", str(tmp_path / "profile.jsonl")])
    assert f"{STEPS * TASKS} tasks, {STEPS * TASKS} complete" in profiled.text


def test_a_group_that_is_not_whole_in_time_is_not_delivered(tmp_path, told):
    with serving_but(2) as (stub, _):
        lines_told = told(stub, "--policy", "deadline", "--seconds", "3")
    assert lines_told[1] == "step 1 run: 1 of 2 groups"
    assert json.loads((tmp_path / "out" / "checkpoint.json").read_bytes()) == {"steps": STEPS}


@pytest.mark.parametrize(
    ("count", "policy", "groups"),
    [(FOR_EVER, ("deadline", "--seconds", "3"), 1), (3, ("n_of_m", "--enough", "3"), 2)],
    ids=["deadline", "n_of_m"],
)
def test_a_step_that_was_broken_is_waited_for_as_long_as_its_policy_says(tmp_path, told, count, policy, groups):
    with serving_but(count, later=None) as (stub, stuck):
        stopped(stub, stuck, tmp_path)
        lines_told = told(stub, "--policy", *policy)
    assert f"step 1 taken up where it had stopped: {groups} of 2 groups" in lines_told
    assert json.loads((tmp_path / "out" / "checkpoint.json").read_bytes()) == {"steps": STEPS}


def test_rollouts_that_fail_when_a_step_is_taken_up_leave_their_group_out_and_the_loop_goes_on(tmp_path, told):
    with serving_but(2, later=lambda _row: web.Response(status=500)) as (stub, stuck):
        stopped(stub, stuck, tmp_path)
        lines_told = told(stub)
    assert lines_told[-2:] == ["step 1 taken up where it had stopped: 1 of 2 groups", "step 2 run: 2 of 2 groups"]


def test_a_step_of_which_every_rollout_fails_leaves_no_group_and_the_loop_goes_on(told):
    with serving(lambda _row: web.Response(status=500)) as stub:
        lines_told = told(stub, "--steps", "1", "--tasks", "1", "--repeats", "2")
    assert lines_told == ["step 0 run: 0 of 1 groups"]


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--policy", "deadline"], "--policy deadline needs --seconds"),
        (["--policy", "n_of_m", "--enough", "5"], "--enough is of --policy n_of_m, and from 1 to the 4 of --repeats"),
        (["--policy", "n_of_m", "--enough", "0"], "--enough is of --policy n_of_m, and from 1 to the 4 of --repeats"),
        (["--enough", "3"], "--enough is of --policy n_of_m"),
    ],
)
def test_words_that_make_no_policy_are_refused(tmp_path, capsys, flags, said):
    with pytest.raises(SystemExit):
        asyncio.run(trainer_loop.main([str(tmp_path / "out"), *flags]))
    assert said in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_the_loop_serves_itself_where_no_server_is_named(tmp_path, capsys):
    asyncio.run(trainer_loop.main([str(tmp_path / "out"), "--steps", "1", "--tasks", "2", "--repeats", "2"]))
    assert capsys.readouterr().out.startswith("step 0 run: 2 of 2 groups")


def test_the_loop_is_short_enough_to_be_read():
    assert len(LOOP.read_text(encoding="utf-8").splitlines()) <= 230


def test_a_second_trainer_of_a_folder_is_told_who_works_there_and_what_to_do(tmp_path):
    with serving_but(2) as (stub, stuck):
        command = [sys.executable, LOOP, *words(stub, tmp_path)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as first:
            assert stuck.arrived.wait(60)
            second = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
            first.kill()
    assert second.returncode == 1
    assert "Traceback" not in second.stderr
    assert f"pid {first.pid} on " in second.stderr
    assert "is writing this run; wait for it" in second.stderr
