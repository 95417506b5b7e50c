import asyncio
import contextlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from resources_servers.math_with_judge import workers as workers_module
from resources_servers.math_with_judge.workers import Worker, WorkerPool
from rollbook import ServingError

SLOW = Path(__file__).with_name("scripted_comparison.py")
PATIENCE = 30.0


@contextlib.asynccontextmanager
async def pool_of(most=1, seconds=PATIENCE, program=SLOW):
    pool = WorkerPool(seconds, most, program)
    try:
        yield pool
    finally:
        await pool.close()


def wait_until_busy(pool):
    while not pool._busy:
        os.sched_yield()


def is_running(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def test_one_process_compares_many_answers():
    async with pool_of() as pool:
        assert pool.pids == frozenset()
        rewards = [await pool.compare("a", text) for text in ("a", "b", "ba")]
        assert rewards == [1.0, 0.0, 1.0]
        assert len(pool.pids) == 1


async def test_a_comparison_out_of_time_scores_nothing_and_its_process_is_replaced():
    async with pool_of(seconds=3.0) as pool:
        await pool.compare("a", "a")
        (first,) = pool.pids
        assert await pool.compare("a", "a sleep") == 0.0
        assert not is_running(first)
        assert await pool.compare("a", "a") == 1.0
        assert pool.pids.isdisjoint({first})


async def test_a_process_that_dies_scores_nothing_and_is_replaced():
    async with pool_of() as pool:
        assert await pool.compare("a", "a die") == 0.0
        assert await pool.compare("a", "a") == 1.0


async def test_an_idle_process_that_died_is_replaced_unseen():
    async with pool_of() as pool:
        await pool.compare("a", "a")
        (first,) = pool.pids
        os.kill(first, 9)
        await asyncio.to_thread(os.waitid, os.P_PID, first, os.WEXITED | os.WNOWAIT)
        assert await pool.compare("a", "a") == 1.0


async def test_comparisons_run_side_by_side_and_the_loop_stays_free():
    async with pool_of(most=2, seconds=3.0) as pool:
        await asyncio.gather(pool.compare("a", "a"), pool.compare("a", "a"))
        stuck = asyncio.ensure_future(pool.compare("a", "sleep"))
        turns = 0
        while not stuck.done():
            assert await pool.compare("a", "a") == 1.0
            turns += 1
        assert turns > 3
        assert len(pool.pids) <= 2


async def test_closing_ends_processes_at_work_and_at_rest():
    async with pool_of(most=2) as pool:
        await asyncio.gather(pool.compare("a", "a"), pool.compare("b", "b"))
        at_work = asyncio.ensure_future(pool.compare("a", "sleep"))
        await asyncio.to_thread(wait_until_busy, pool)
        pids = pool.pids
        await pool.close()
        assert await at_work == 0.0
        assert pids
        assert not any(is_running(pid) for pid in pids)


def test_a_process_that_was_ended_has_no_reward():
    ended = Worker(SLOW)
    ended.kill()
    assert ended.compare("a", "a", PATIENCE) is None


async def test_a_process_that_does_not_start_is_an_error(tmp_path):
    broken = tmp_path / "broken.py"
    broken.write_text("raise SystemExit(1)\n")
    async with pool_of(program=broken) as pool:
        with pytest.raises(ServingError, match=r"does not start.*broken\.py"):
            await pool.compare("a", "a")


def test_a_process_ends_with_the_program_that_started_it():
    program = (
        "import os, sys\n"
        "from resources_servers.math_with_judge.workers import Worker\n"
        f"from pathlib import Path\nworker = Worker(Path({str(SLOW)!r}))\n"
        "print(worker.pid, flush=True)\nos._exit(0)\n"
    )
    components = Path(workers_module.__file__).parents[2]
    ended = subprocess.run(  # noqa: S603  our own interpreter
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": str(components)},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    pid = int(ended.stdout)
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, 0)
    assert gone_soon(pid)


def gone_soon(pid):
    for _ in range(200):
        if not is_running(pid) or Path(f"/proc/{pid}/stat").read_text().split()[2] == "Z":
            return True
        os.sched_yield()
        subprocess.run(["true"], check=False)  # noqa: S607  lets some time pass
    return False


LIBRARY_CASES = [
    ("24", r"\boxed{24}", 1.0),
    ("24", r"\boxed{25}", 0.0),
    (r"\frac{1}{6}", r"so it is \boxed{\frac{2}{12}}", 1.0),
    (r"\frac{3}{4}", r"\boxed{0.75}", 1.0),
    (r"12\sqrt{5}", r"\boxed{\sqrt{720}}", 1.0),
    (r"3+\sqrt{5}", r"\boxed{\sqrt{5}+3}", 1.0),
    (r"\{1,2\}", r"\boxed{\{2,1\}}", 1.0),
    ("24", r"\boxed{}", 0.0),
    ("24", r"\boxed{\frac{1}{0}", 0.0),
    ("24", "\\boxed{\ud800 24 apples \u2192}", 1.0),
    ("x^2", r"\boxed{\text{no idea}}", 0.0),
]


@pytest.fixture(scope="module")
def worker():
    pytest.importorskip("math_verify")
    started = Worker()
    yield started
    started.kill()


@pytest.mark.parametrize(("gold", "text", "reward"), LIBRARY_CASES)
def test_the_library_compares_values_and_not_spellings(worker, gold, text, reward):
    assert worker.compare(rf"\boxed{{{gold}}}", text, PATIENCE) == reward


def test_a_long_text_is_compared_whole(worker):
    assert worker.compare(r"\boxed{7}", "word " * 40_000 + r"\boxed{7}", PATIENCE) == 1.0


def test_a_tower_of_powers_is_ended_in_time():
    pytest.importorskip("math_verify")
    started = Worker()
    try:
        assert not started.compare(r"\boxed{7}", r"\boxed{9^{9^{9^{9^{9}}}}}", 1.0)
    finally:
        started.kill()
    assert not started.is_alive
