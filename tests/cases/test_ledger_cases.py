"""Cases from the field about the files of a run: inherited, unlocked, read while written, and gone on with."""

import errno
import json
import os
import threading
import tracemalloc
from functools import partial
from itertools import pairwise

import pytest
from aiohttp import web

from cases.broken_locks import ALWAYS, break_locks
from cases.played import (
    BATCH,
    FAILURES,
    LOCK,
    LOG,
    MANIFEST,
    METRICS,
    RESULTS,
    Played,
    answering,
    called,
    failing,
    key_of,
    prompt_of,
)
from stub import adding, lines, serving

CALM = ["--concurrency", "1"]


@pytest.fixture
def play(tmp_path):
    """Return what plays a run against a stub of its own."""
    with serving() as stub:
        yield lambda rows: Played(tmp_path, stub, rows)


OLD = {"_ng_task_index": 0, "_ng_rollout_index": 0, "_ng_failure_class": "agent_run_error", "old": True}


def test_rc_10_a_fresh_run_beside_old_files_is_refused_without_a_word(play):
    played = play(adding(2))
    played.put(FAILURES, lines([OLD] * 3))
    played.put(METRICS, b'[{"old": 1}]')
    before = played.files()
    said = played.run(*CALM)
    assert said.code == 1
    assert "--overwrite" in said.text
    assert played.asked() == []
    assert played.untouched_but(before, {LOCK})


def test_rc_10_a_fresh_run_inherits_neither_attempts_nor_metrics(play):
    played = play(adding(2))
    played.run(*CALM)
    run_id = json.loads(played.bytes_of(MANIFEST))["run_id"]
    played.put(FAILURES, lines([OLD] * 3))
    played.put(METRICS, b'[{"old": 1}]')
    played.stub.script = failing(0)
    since = len(played.stub.requests)
    assert played.run(*CALM, "--overwrite", "--disable-aggregation").code == 3
    assert played.asked(since) == [(0, 0), (1, 0)]
    assert not (played.folder / METRICS).exists()
    assert [("old" in row, key_of(row)) for row in played.rows(FAILURES)] == [(False, (0, 0))]
    assert json.loads(played.bytes_of(MANIFEST))["run_id"] != run_id
    assert run_id.encode() not in b"".join(played.files().values())
    played.stub.script = failing()
    assert played.resume(*CALM).code == 0
    assert played.asked(since) == [(0, 0), (1, 0), (0, 0)]
    assert b"old" not in played.bytes_of(METRICS)


def run_and_resumed(played, number, times):
    """Run, and resume, in processes in which so many calls of flock fail; return what both said."""
    broken = partial(break_locks, number, times)
    said = [played.started(*CALM, *more, first=broken).ended() for more in ([], ["--resume"])]
    assert [(one.code, "3 of 3 rollouts scored" in one.out) for one in said] == [(0, True)] * 2
    assert len(played.rows(RESULTS)) == len(played.asked()) == 3
    return [one.err for one in said]


@pytest.mark.parametrize("number", [errno.ENOSYS, errno.ENOLCK])
def test_rc_12_a_run_on_a_file_system_without_locks_says_so_once_and_completes(play, number):
    for said in run_and_resumed(play(adding(3)), number, ALWAYS):
        assert said.count("file locks do not work on this file system") == 1
        assert os.strerror(number) in said
        assert "is writing" not in said


def test_rc_12_a_handle_that_is_stale_once_is_not_worth_a_word(play):
    assert not any("lock" in said for said in run_and_resumed(play(adding(3)), errno.ESTALE, 1))


class Watching(threading.Thread):
    """Another program that counts the complete lines of both files, again and again."""

    def __init__(self, played):
        super().__init__(daemon=True)
        self.played, self.over = played, threading.Event()
        self.seen, self.faults = [], []

    def look(self):
        self.seen.append((self.count(RESULTS), self.count(FAILURES)))

    def count(self, name):
        try:
            return len(self.played.rows(name))
        except ValueError as error:
            self.faults.append(error)
            return 0

    def run(self):
        while not self.over.wait(0.005):
            self.look()

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.join()
        self.look()


def grows(counts):
    return all(earlier <= later for earlier, later in pairwise(counts))


LONG = "判決 — ok " * 2048


def long_or_failed(tasks):
    failed, answered = failing(*tasks), answering(LONG)
    return lambda row: failed(row) or answered(row)


def test_rc_13_a_reader_of_a_running_run_sees_whole_rows_and_counts_that_only_grow(play):
    played = play(adding(100))
    played.stub.script = long_or_failed(range(0, 100, 10))
    with Watching(played) as watching:
        assert played.run("--concurrency", "8").code == 3
        played.stub.script = long_or_failed([])
        assert played.resume("--concurrency", "8").code == 0
    assert watching.faults == []
    assert grows([results for results, _ in watching.seen])
    assert grows([failures for _, failures in watching.seen])
    assert watching.seen[-1] == (100, 10)
    assert len({results for results, _ in watching.seen}) > 2


LARGE = 20 << 20


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """One row of 20 MiB among fifty small ones."""
    message = {"type": "message", "content": [{"type": "output_text", "text": "x" * LARGE}]}
    with serving() as stub:
        played = Played(tmp_path_factory.mktemp("large"), stub, adding(51))
        stub.script = lambda row: (
            web.json_response(row | {"reward": 1.0, "response": {"output": [message]}})
            if row["_ng_task_index"] == 25
            else None
        )
        assert called(played.words()).code == 0
        assert played.output.stat().st_size > LARGE
        yield played


def peak_of(work):
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_rc_14_a_status_keeps_no_value_of_a_huge_row(large):
    def status():
        assert called(["eval", "status", str(large.output)]).code == 0

    assert peak_of(status) < LARGE


def test_rc_14_a_resume_with_nothing_to_do_keeps_no_value_of_a_huge_row(large):
    def resume():
        assert called(large.words("--resume")).code == 0

    assert peak_of(resume) < LARGE


def test_rc_14_metrics_of_a_huge_row_cost_a_small_multiple_of_it(large):
    def aggregate():
        (large.folder / METRICS).unlink()
        assert called(large.words("--resume")).code == 0

    assert peak_of(aggregate) < 3 * LARGE


def test_rc_19_a_finished_run_is_gone_on_with_twice_and_nothing_changes(play):
    played = play(adding(3))
    assert played.run("--num-repeats", "2").code == 0
    before = {name: data for name, data in played.files().items() if name != LOCK}
    for _ in range(2):
        said = played.resume("--num-repeats", "2")
        assert said.code == 0
        assert "already complete" in said.text
        assert {name: data for name, data in played.files().items() if name != LOCK} == before
    assert len(played.asked()) == 6
    assert len(played.stub.aggregated) == 1
    assert played.status()[0] == 0


def test_rc_19_only_metrics_that_are_missing_are_computed_again(play):
    played = play(adding(3))
    played.run(*CALM)
    before = played.files()
    (played.folder / METRICS).unlink()
    assert played.resume(*CALM).code == 0
    assert len(played.asked()) == 3
    assert len(played.stub.aggregated) == 2
    after = played.files()
    assert {name for name in before if after[name] != before[name]} <= {MANIFEST, LOCK, BATCH}


def test_rc_26_a_task_number_is_a_name_and_never_a_position(play):
    rows = [row | {"_ng_task_index": index} for row, index in zip(adding(2), (1, 0), strict=True)]
    played = play(rows)
    played.stub.script = lambda row: answering("", float(prompt_of(row) == "add 1 and 1"))(row)
    assert played.run(*CALM).code == 0
    told = {row["_ng_task_index"]: (prompt_of(row), row["reward"]) for row in played.rows(RESULTS)}
    assert told == {1: ("add 0 and 0", 0.0), 0: ("add 1 and 1", 1.0)}
    scored = [row for body in played.stub.aggregated for row in body["verify_responses"]]
    assert {row["_ng_task_index"]: row["reward"] for row in scored} == {1: 0.0, 0: 1.0}
    for index, reward in ((1, "0"), (0, "1")):
        said = called(["eval", "explain", str(played.output), str(index), "0"])
        assert said.code == 0
        assert f"reward {reward}" in said.text
    code, status = played.status()
    assert (code, status["coverage"]["scored"]) == (0, 2)


def test_rc_27_totals_describe_the_run_and_not_its_last_hop(play):
    usage = {"input_tokens": 4, "output_tokens": 6, "total_tokens": 10}
    response = {"output": [], "usage": usage}
    played = play(adding(6))
    failed = failing(3, 4, 5)
    answer = lambda row: web.json_response(row | {"reward": 1.0, "response": response})  # noqa: E731
    played.stub.script = lambda row: failed(row) or answer(row)
    assert played.run(*CALM).code == 3
    opened = played.rows(LOG)[0]["at"]
    first = played.status()[1]
    played.stub.script = answer
    assert played.resume(*CALM).code == 0
    told = played.status()[1]
    assert told["started_at"] == first["started_at"] <= opened
    assert len(told["sessions"]) == 2
    assert told["elapsed_s"] >= first["elapsed_s"] > 0
    active = [event["after"] for event in played.rows(LOG) if event["t"] == "close"]
    assert told["elapsed_s"] == pytest.approx(sum(active), abs=0.01)
    assert told["coverage"]["scored"] == 6
    assert told["tokens"]["input_tokens"] == 24
    assert told["tokens"]["output_tokens"] == 36
