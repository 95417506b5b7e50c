import io
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path
from subprocess import DEVNULL, PIPE, Popen

import msgspec
import pytest

from rollbook.scoring.streamed import StreamedMetrics
from rollbook.verbs.metrics_halves import AggregationOverError, Cut, take_halves, take_rows
from rollbook.verbs.second_process import has_another_processor
from rollbook.verbs.task_list import LAYOUT, TaskList

pytestmark = pytest.mark.skipif(not has_another_processor(), reason="there is one processor")

TASKS, REPEATS, TAUGHT, MIDDLE = 400, 3, 100, 600


def row(task, rollout, **fields):
    identity = {"_ng_task_index": task, "_ng_rollout_index": rollout}
    usage = {"response": {"usage": {"output_tokens": task % 7 * 10 + rollout}}}
    return msgspec.json.encode(identity | usage | {"reward": (task * 7 + rollout) % 11 / 10, "text": "x"} | fields)


def rows_of(**last):
    keys = [(task, rollout) for task in range(TASKS) for rollout in range(REPEATS)]
    return [row(*key, **(last if key == keys[-1] else {})) for key in keys]


def some_of(rows, begin=0, end=None):
    part = rows[begin:end]
    return (part[at : at + 50] for at in range(0, len(part), 50))


def came_to(metrics, tasks, file):
    end, closed = metrics.end(), tasks.end()
    return file.getvalue() + closed, msgspec.json.encode(end)


def by_one_process(rows):
    file = io.BytesIO()
    tasks = TaskList(file)
    metrics = StreamedMetrics(tasks.write, layout=LAYOUT)
    take_rows(metrics, some_of(rows), lambda: None)
    return came_to(metrics, tasks, file)


def by_two(rows, folder, second=None, is_over=lambda: False):
    file, asking = io.BytesIO(), os.getpid()
    tasks = TaskList(file)
    metrics = StreamedMetrics(tasks.write, layout=LAYOUT)

    def part(begin, end):
        if second is not None and os.getpid() != asking:
            second()
        return some_of(rows, begin, end)

    take_halves(metrics, tasks, Cut(part, TAUGHT, MIDDLE), folder, is_over)
    return came_to(metrics, tasks, file)


@pytest.mark.parametrize(
    "last",
    [
        {},
        {"mask_sample": True},
        {"reward": None},
        {"reward": 10**30},
        {"fresh": 4.5},
        {"ng_perf": {"num_turns": 3, "completion_tokens": 12}},
    ],
    ids=["alike", "masked", "without a reward", "beyond all floats", "with a number of its own", "with its cost"],
)
def test_two_processes_come_to_what_one_comes_to_byte_for_byte(last, tmp_path):
    rows = rows_of(**last)
    assert by_two(rows, tmp_path) == by_one_process(rows)


def test_every_row_that_tells_its_cost_is_in_the_summary_of_two_processes(tmp_path):
    perf = {"ng_perf": {"num_turns": 3, "completion_tokens": 12, "total_latency_ms": 1.5}}
    rows = [msgspec.json.encode(msgspec.json.decode(one) | perf) for one in rows_of()]
    assert by_two(rows, tmp_path) == by_one_process(rows)


def died():
    os._exit(9)


def failed():
    raise OSError("the disk is gone")


def interrupted():
    os.kill(os.getpid(), signal.SIGINT)


def terminated():
    os.kill(os.getpid(), signal.SIGTERM)


@pytest.mark.parametrize("second", [died, failed, interrupted, terminated])
def test_what_a_second_process_leaves_undone_is_done_by_the_first_one(second, tmp_path, capfd):
    rows = rows_of()
    assert by_two(rows, tmp_path, second) == by_one_process(rows)
    assert capfd.readouterr().err == ""


def test_a_row_that_cannot_be_read_is_told_as_one_process_tells_it(tmp_path):
    with pytest.raises(msgspec.DecodeError):
        by_two([*rows_of(), b"{"], tmp_path)


def children():
    """Return the processes that this one started and has not waited for, as the kernel knows them."""
    return {pid for of in Path("/proc/self/task").glob("*/children") for pid in of.read_text().split()}


def test_no_second_process_is_left_of_an_aggregation_that_is_over(tmp_path):
    looked, before = iter([False] * 6 + [True] * 99), children()
    with pytest.raises(AggregationOverError):
        by_two(rows_of(), tmp_path, is_over=lambda: next(looked))
    assert children() - before == set()
    assert list(tmp_path.iterdir()) == []


ENDLESS = """
from itertools import repeat
from rollbook.verbs.second_process import SecondProcess

def work(step):
    print("begun", flush=True)
    for _ in repeat(None):
        step()

SecondProcess(work).has_done_it(lambda: False)
"""


HALVES = """
import io
import os
import sys
from itertools import repeat
from pathlib import Path
from rollbook.scoring.streamed import StreamedMetrics
from rollbook.verbs.metrics_halves import Cut, take_halves
from rollbook.verbs.task_list import TaskList

first = os.getpid()

def part(begin, end):
    if os.getpid() == first:
        return iter(())
    print("begun", flush=True)
    return repeat([])

take_halves(StreamedMetrics(print), TaskList(io.BytesIO()), Cut(part, 1, 2), Path(sys.argv[1]), lambda: False)
"""


def ended_by(number, script, *arguments):
    """Send a signal to a process that has begun, and return its end when no process holds its output open any more."""
    command = (sys.executable, "-c", script, *arguments)
    with Popen(command, stdout=PIPE, stderr=DEVNULL, start_new_session=True) as first:
        try:
            assert first.stdout.readline() == b"begun\n"
            first.send_signal(number)
            assert first.communicate(timeout=60)[0] == b""
        finally:
            with suppress(ProcessLookupError):
                os.killpg(first.pid, signal.SIGKILL)
        return first.wait()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_signal_that_ends_the_first_process_ends_the_second_one(number):
    assert ended_by(number, ENDLESS) == -number


def test_a_second_process_takes_in_no_more_rows_when_the_first_one_is_gone(tmp_path):
    assert ended_by(signal.SIGKILL, HALVES, tmp_path) == -signal.SIGKILL


def read_by_the_first(rows, folder):
    """Return which parts of the rows the first of two processes reads."""
    read = []

    def part(begin, end):
        read.append((begin, end))
        return some_of(rows, begin, end)

    metrics = StreamedMetrics(lambda _: None, layout=LAYOUT)
    take_halves(metrics, TaskList(io.BytesIO()), Cut(part, TAUGHT, MIDDLE), folder, lambda: False)
    return read


def test_the_first_process_reads_no_row_that_the_second_one_took_in(tmp_path):
    assert read_by_the_first(rows_of(), tmp_path) == [(0, TAUGHT), (TAUGHT, MIDDLE)]


@pytest.mark.parametrize("last", [{"fresh": 4.5}, {"fresh": "text"}], ids=["a number", "a text"])
def test_the_first_process_reads_all_rows_where_the_second_one_met_a_field_of_its_own(last, tmp_path):
    assert read_by_the_first(rows_of(**last), tmp_path) == [(0, TAUGHT), (TAUGHT, MIDDLE), (MIDDLE, None)]
