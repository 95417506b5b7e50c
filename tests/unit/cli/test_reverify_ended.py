"""`gym eval reverify` in a process that dies or is told to stop while a judging is in flight."""

import signal
import threading

import pytest
from aiohttp import web

from cases.started import Started
from run_folder import RunFolder, rows_of
from stub import adding
from verifying import answered, judge_failed, reverified, verifying


@pytest.fixture
def stub():
    with verifying(answered()) as running:
        yield running


@pytest.fixture
def folder(tmp_path, stub):
    folder = RunFolder(tmp_path).asks(adding(4))
    folder.run(stub)
    return folder


@pytest.fixture
def again(tmp_path):
    return tmp_path / "again" / "v.jsonl"


class Holding:
    """A verifier that holds its reply to task 2 until it is let go; its first judging of it is `reached`."""

    def __init__(self):
        self.reached, self.let_go = threading.Event(), threading.Event()

    def __call__(self, row):
        if row["_ng_task_index"] == 2 and not self.let_go.is_set():
            self.reached.set()
            self.let_go.wait(20)
        return {"reward": 1.0}


def ended_while_judging(stub, folder, output, signal_number, *flags):
    """Start a command in a process of its own, end it by a signal while task 2 is judged, and return how it ended."""
    holding = stub.verify_script = Holding()
    named = ["--rollouts", str(folder.output), *(["-o", str(output)] if output else [])]
    driven = ["--concurrency", "1", "--retry-for", "0", "--grace", "0"]
    process = Started(["eval", "reverify", "--no-serve", *named, *driven, *flags, *stub.overrides])
    assert holding.reached.wait(30)
    process.send(signal_number)
    ended = process.ended()
    holding.let_go.set()
    return ended


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_command_that_is_ended_loses_nothing_and_pays_nothing_twice(folder, again, stub, number):
    ended = ended_while_judging(stub, folder, again, number)
    assert ended.code in {-signal.SIGKILL, 128 + signal.SIGTERM}
    assert [row["_ng_task_index"] for row in rows_of(again)] == [0, 1]
    answer = reverified(stub, folder.output, again, "--resume")
    assert answer.code == 0, answer.text
    assert sorted(row["_ng_task_index"] for row in stub.judged) == [0, 1, 2, 2, 3]
    assert sorted(row["_ng_task_index"] for row in rows_of(again)) == [0, 1, 2, 3]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_judge_that_was_paid_before_the_end_is_not_paid_again(tmp_path, number):
    with verifying(lambda row: web.json_response(row | judge_failed(row))) as stub:
        folder = RunFolder(tmp_path).asks(adding(4))
        folder.run(stub)
        ended_while_judging(stub, folder, None, number, "--judge-failed-only", "--append")
        assert {one["identity"] for one in folder.told_manifest()["pending_rejudges"]} >= {"2-0", "3-0"}
        status = folder.status()["coverage"]
        assert (status["scored"], status["held"]) == (2, 2)
        answer = reverified(stub, folder.output, None, "--judge-failed-only", "--append")
        assert answer.code == 0, answer.text
    assert sorted(row["_ng_task_index"] for row in stub.judged) == [0, 1, 2, 2, 3]
    assert folder.status()["coverage"]["scored"] == 4
    assert folder.told_manifest()["pending_rejudges"] == []
