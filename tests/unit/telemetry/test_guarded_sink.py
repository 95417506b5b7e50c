"""A sink that raises, hangs or is slow, and the run that does not notice."""

import logging
import threading

import pytest

from rollbook.telemetry.guarded import GuardedSink


class Kept:
    """A sink that keeps what it is told, and tells when it has `enough`."""

    def __init__(self, enough=1):
        self.told = []
        self.full = threading.Event()
        self._enough = enough

    def log(self, metrics, step):
        self.told.append((metrics, step))
        if len(self.told) >= self._enough:
            self.full.set()


class Raising:
    def __init__(self):
        self.calls = 0

    def log(self, metrics, step):
        self.calls += 1
        raise ValueError("no such run")


class Leaving:
    def log(self, metrics, step):
        raise SystemExit(3)


class Closed:
    """A sink that cannot even be asked for its method."""

    @property
    def log(self):
        raise RuntimeError("closed")


class Hanging:
    """A sink that stays in its first call until it is let go."""

    def __init__(self):
        self.entered, self.let_go, self.left = threading.Event(), threading.Event(), threading.Event()
        self.steps = []

    def log(self, metrics, step):
        self.steps.append(step)
        self.entered.set()
        self.let_go.wait(10)
        if len(self.steps) >= 3:
            self.left.set()


def test_what_is_logged_arrives_in_order_and_before_the_end():
    sink = Kept()
    guarded = GuardedSink(sink)
    for step in range(20):
        guarded.log({"a": step}, step)
    guarded.close()
    assert sink.told == [({"a": step}, step) for step in range(20)]


@pytest.mark.parametrize("sink", [Closed(), object()], ids=["closed", "no sink"])
def test_what_has_no_method_to_call_is_named_once_and_told_nothing(sink, caplog):
    guarded = GuardedSink(sink)
    for step in range(5):
        guarded.log({}, step)
    guarded.close()
    (record,) = caplog.records
    assert record.message.endswith("failed and is not told anything more")


def test_what_is_logged_is_a_copy():
    sink, metrics = Kept(), {"a": 1.0}
    guarded = GuardedSink(sink)
    guarded.log(metrics, 1)
    metrics["a"] = 2.0
    guarded.close()
    assert sink.told == [({"a": 1.0}, 1)]


def test_a_sink_that_raises_is_named_once_and_told_nothing_more(caplog):
    sink = Raising()
    guarded = GuardedSink(sink)
    for step in range(5):
        guarded.log({}, step)
    guarded.close()
    guarded.log({}, 9)
    assert sink.calls == 1
    assert [record.message.endswith("Raising failed and is not told anything more") for record in caplog.records] == [
        True
    ]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_sink_that_leaves_the_thread_is_told_nothing_more():
    guarded = GuardedSink(Leaving())
    guarded.log({}, 1)
    guarded.close()
    guarded.log({}, 2)


def test_a_sink_that_hangs_keeps_neither_the_run_nor_its_end_and_is_told_of_once(caplog):
    sink = Hanging()
    guarded = GuardedSink(sink)
    guarded.log({}, 1)
    assert sink.entered.wait(10)
    guarded.log({}, 2)
    guarded.close(wait_s=0.001)
    guarded.close(wait_s=0.001)
    sink.let_go.set()
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    assert "Hanging did not return within 0.001 s and is left alone" in caplog.text


def test_a_sink_that_does_not_keep_up_loses_its_oldest_numbers_with_one_warning(caplog):
    sink = Hanging()
    guarded = GuardedSink(sink, room=2)
    guarded.log({}, 0)
    assert sink.entered.wait(10)
    for step in range(1, 100):
        guarded.log({}, step)
    sink.let_go.set()
    assert sink.left.wait(10)
    guarded.close()
    assert sink.steps == [0, 98, 99]
    assert caplog.text.count("does not keep up") == 1


def test_the_thread_of_a_sink_does_not_keep_the_process():
    sink = Hanging()
    guarded = GuardedSink(sink)
    guarded.log({}, 1)
    assert sink.entered.wait(10)
    assert all(thread.daemon for thread in threading.enumerate() if thread.name == "rollbook-sink")
    sink.let_go.set()
    guarded.close()


def test_a_sink_that_was_told_nothing_has_no_thread():
    guarded = GuardedSink(Kept())
    before = threading.active_count()
    guarded.close()
    guarded.log({}, 1)
    assert threading.active_count() <= before


def test_a_machine_without_a_thread_to_give_does_not_reach_the_run(monkeypatch, caplog):
    def refuse(self):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    guarded = GuardedSink(Kept())
    guarded.log({}, 1)
    guarded.log({}, 2)
    guarded.close()
    assert caplog.text.count("has no thread and is told nothing") == 1
