"""Lines in a log, the redrawn line of a terminal, and what neither may do."""

import asyncio
import io
import itertools

import pytest
from rich.console import Console

from rollbook.live.escape import escaped
from rollbook.live.terminal_view import TerminalView
from rollbook.live.view import LineView, beating, view_for
from rollbook.records.event import AttemptEnded, AttemptStarted, RunEnded, RunNoted, RunPlanned, RunStalled, Waiting
from rollbook.records.identity import RolloutKey
from rollbook.records.outcome import Failed, Scored
from rollbook.records.record import Record


class HeldClock:
    """Time that moves when it is told to."""

    def __init__(self):
        self.at = 1000.0

    def monotonic(self):
        return self.at

    def now(self):
        return self.at

    async def sleep(self, seconds):
        self.at += seconds
        await asyncio.sleep(0)


def started(task):
    return AttemptStarted(RolloutKey(task, 0), 0, at=0.0)


def ended(task, outcome, cause=None):
    return AttemptEnded(Record(RolloutKey(task, 0), 0, outcome, "r"), elapsed=1.0, at=0.0, cause=cause)


def a_slow_run(view, clock, stream, rollouts=1000, seconds_each=0.6):
    """Run `rollouts`, beating once a second, and return when each line was written."""
    written_at = []
    view.observe(RunPlanned(rollouts, rollouts))
    lines = 0
    for task in range(rollouts):
        view.observe(started(task))
        clock.at += seconds_each
        view.beat()
        view.observe(ended(task, Failed("agent_run_error", "no answer") if task % 10 == 0 else Scored(1.0)))
        if (now_lines := stream.getvalue().count("\n")) > lines:
            lines = now_lines
            written_at.append(clock.at)
    view.observe(RunEnded())
    return written_at


def test_a_log_of_a_thousand_rollouts_is_small_and_has_no_carriage_return():
    stream, clock = io.StringIO(), HeldClock()
    a_slow_run(LineView(stream, clock), clock, stream)
    assert "\r" not in stream.getvalue()
    assert len(stream.getvalue()) < 20_000


def test_a_log_is_never_silent_for_more_than_thirty_seconds():
    stream, clock = io.StringIO(), HeldClock()
    written_at = a_slow_run(LineView(stream, clock), clock, stream)
    assert max(later - earlier for earlier, later in itertools.pairwise(written_at)) <= 30.0


def test_a_log_of_ten_hours_is_small_and_never_silent():
    stream, clock = io.StringIO(), HeldClock()
    written_at = a_slow_run(LineView(stream, clock), clock, stream, rollouts=10_000, seconds_each=3.6)
    assert len(stream.getvalue()) < 200 * 1024
    assert max(later - earlier for earlier, later in itertools.pairwise(written_at)) <= 30.0 + 3.6


class NoClock(HeldClock):
    """A clock that a test forbids to ask."""

    def monotonic(self):
        assert self.may_ask
        return super().monotonic()

    may_ask = True


@pytest.mark.parametrize("terminal", [False, True])
def test_attempts_are_observed_without_asking_for_the_time(terminal):
    stream, clock = io.StringIO(), NoClock()
    console = Console(file=stream, force_terminal=True, width=80)
    view = TerminalView(console, clock) if terminal else LineView(stream, clock)
    view.observe(RunPlanned(2, 2))
    clock.may_ask = False
    view.observe(started(0))
    view.observe(ended(0, Scored(1.0)))
    view.observe(ended(1, Failed("agent_run_error", "HTTP 500")))
    assert "HTTP 500" in stream.getvalue()


@pytest.mark.parametrize("terminal", [False, True])
def test_a_stalled_run_names_who_it_waits_for(terminal):
    stream, clock = io.StringIO(), HeldClock()
    console = Console(file=stream, force_terminal=True, width=200)
    view = TerminalView(console, clock) if terminal else LineView(stream, clock)
    view.observe(RunStalled(30.0, 1, (Waiting(RolloutKey(3, 0), 30.0, "env", "127.0.0.1:80", "reading"),)))
    assert "3-0 reading for 30s on 127.0.0.1:80 (env)" in stream.getvalue()


def test_the_last_line_says_what_the_records_say():
    stream, clock = io.StringIO(), HeldClock()
    a_slow_run(LineView(stream, clock), clock, stream)
    last = stream.getvalue().splitlines()[-1]
    assert last.startswith("1000/1000 finished (100%) · mean reward 1.000 over 900 · 100 failed · 100.0/min · ended")


def test_a_stalled_run_shows_a_sign_of_life_every_thirty_seconds():
    stream, clock = io.StringIO(), HeldClock()
    view = LineView(stream, clock)
    view.observe(RunPlanned(1, 1))
    view.observe(started(0))
    for _ in range(120):
        clock.at += 1
        view.beat()
    assert stream.getvalue().count("1 in flight") == 4


def test_rollouts_that_end_at_once_share_a_line():
    stream, clock = io.StringIO(), HeldClock()
    view = LineView(stream, clock)
    view.observe(RunPlanned(50, 50))
    for task in range(50):
        view.observe(started(task))
        view.observe(ended(task, Scored(1.0)))
    assert stream.getvalue().splitlines() == ["50 tasks, 50 rollouts planned"]


def test_the_first_failures_of_a_class_are_told_and_the_rest_are_counted():
    stream, clock = io.StringIO(), HeldClock()
    view = LineView(stream, clock)
    for task in range(20):
        view.observe(ended(task, Failed("agent_run_error", "HTTP 500")))
    told = [text for text in stream.getvalue().splitlines() if "HTTP 500" in text]
    assert len(told) == 3
    assert told[-1].endswith("(further ones of this class are counted)")


def test_a_failure_of_another_cause_is_told_with_it():
    stream, clock = io.StringIO(), HeldClock()
    view = LineView(stream, clock)
    for task in range(5):
        view.observe(ended(task, Failed("agent_run_error", "HTTP 500"), "KeyError: 'a'"))
    view.observe(ended(5, Failed("agent_run_error", "HTTP 500"), "no such \x1b[31m file" + "x" * 500))
    last = stream.getvalue().splitlines()[-1]
    assert last.startswith(r"rollout 5-0 agent_run_error: HTTP 500: no such \x1b[31m filexx")
    assert len(last) < 230


def test_a_failure_message_cannot_drive_the_terminal():
    stream, clock = io.StringIO(), HeldClock()
    LineView(stream, clock).observe(ended(0, Failed("x", "red \x1b[31m nul \x00 return \r line \n end")))
    first = stream.getvalue().splitlines()[0]
    assert first == r"rollout 0-0 x: red \x1b[31m nul \x00 return \r line \n end"


@pytest.mark.parametrize("terminal", [False, True])
def test_a_note_is_told_as_it_comes_and_cannot_drive_the_terminal(terminal):
    stream, clock = io.StringIO(), HeldClock()
    console = Console(file=stream, force_terminal=True, width=80)
    view = TerminalView(console, clock) if terminal else LineView(stream, clock)
    view.observe(RunNoted("resumed all the same:\n  two keys, one of them \x1b[31mred"))
    assert stream.getvalue().splitlines() == ["resumed all the same:", r"  two keys, one of them \x1b[31mred"]


def test_a_log_that_cannot_be_written_does_not_reach_the_run():
    stream, clock = io.StringIO(), HeldClock()
    view = LineView(stream, clock)
    stream.close()
    view.observe(RunPlanned(1, 1))
    view.observe(RunEnded())


def test_a_file_gets_whole_lines_and_a_terminal_one_that_is_redrawn():
    assert isinstance(view_for(io.StringIO(), HeldClock()), LineView)


@pytest.mark.parametrize(("terminal", "view"), [("xterm", TerminalView), ("dumb", LineView)])
def test_a_terminal_gets_a_line_that_is_redrawn_where_its_cursor_moves(terminal, view, monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setenv("TERM", terminal)
    assert isinstance(view_for(Terminal(), HeldClock()), view)


def test_a_terminal_keeps_the_last_line():
    stream, clock = io.StringIO(), HeldClock()
    view = TerminalView(Console(file=stream, force_terminal=True, width=200), clock)
    view.observe(RunPlanned(1, 1))
    view.observe(started(0))
    view.beat()
    view.observe(ended(0, Scored(1.0)))
    clock.at += 2
    view.observe(RunEnded())
    view.close()
    assert stream.getvalue().count("1/1 finished (100%) · mean reward 1.000 over 1") == 1


async def _fail_after_the_first_start(view):
    async with beating(view, HeldClock()):
        view.observe(RunPlanned(2, 2))
        view.observe(started(0))
        raise RuntimeError


async def test_a_view_is_closed_with_what_stands_when_the_run_fails():
    stream = io.StringIO()
    with pytest.raises(RuntimeError):
        await _fail_after_the_first_start(LineView(stream, HeldClock()))
    assert stream.getvalue().splitlines()[-1] == "0/2 finished (0%) · 1 in flight · 0s so far"


async def test_a_view_beats_while_the_block_runs():
    clock, beats, twice = HeldClock(), [], asyncio.Event()

    class CountedView(LineView):
        def beat(self):
            beats.append(clock.at)
            if len(beats) == 2:
                twice.set()

    async with beating(CountedView(io.StringIO(), clock), clock):
        await twice.wait()
    assert beats[:2] == [1001.0, 1002.0]


def test_a_run_that_was_never_planned_leaves_no_line():
    stream, clock = io.StringIO(), HeldClock()
    view = LineView(stream, clock)
    view.beat()
    view.close()
    assert stream.getvalue() == ""


def test_a_long_preparation_shows_a_sign_of_life():
    stream, clock = io.StringIO(), HeldClock()
    view = LineView(stream, clock)
    clock.at += 31
    view.beat()
    assert stream.getvalue() == "preparing · 31s so far\n"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("日本 é", "日本 é"),
        ("a\x1b[31mb", r"a\x1b[31mb"),
        ("a\u202eb", r"a\u202eb"),
        ("\ud800", r"\ud800"),
    ],
)
def test_only_what_could_drive_a_terminal_is_escaped(text, shown):
    assert escaped(text) == shown
