"""The timing table of a run, fed by its events and told when it is to be."""

import asyncio
import json

import pytest

from rollbook import RunTimingReport
from rollbook.api.run_timing import TimedRun, report_for
from rollbook.config.collection import RolloutCollectionConfig
from rollbook.dispatch.stop import Stop
from rollbook.records.ending import Ending
from rollbook.records.event import AttemptCut, AttemptEnded, AttemptRefused, AttemptStarted
from rollbook.records.identity import RolloutKey
from rollbook.records.outcome import Failed, Interrupted, Scored
from rollbook.records.record import Record
from rollbook.testing.manual_clock import ManualClock
from run_folder import RunFolder
from stub import adding, serving

KEY = RolloutKey(0, 0)


def report(clock=None):
    return RunTimingReport(2, 10.0, 1.0, None, 5.0, 0.0, 0.0, 0.5, clock=clock or ManualClock())


@pytest.fixture
def timed():
    return TimedRun(report(), lambda _text: None)


def ended(outcome, elapsed=1.0):
    return AttemptEnded(Record(KEY, 0, outcome), elapsed, 1001.0)


def started(attempt=0):
    return AttemptStarted(KEY, attempt, 1001.0)


def refused():
    return AttemptRefused(KEY, 0, "busy", 1001.0, 1.0)


def test_a_rollout_that_is_sent_again_started_once(timed):
    for event in (started(), refused(), started(1), AttemptCut(KEY, 1, "why", 1002.0), started(2)):
        timed.observe(event)
    assert timed.report.timing.started == 1


@pytest.mark.parametrize(
    ("outcome", "finished", "by_limit"),
    [
        (Scored(1.0), 1, 0),
        (Failed("agent_run_error", kind="agent_timeout"), 1, 1),
        (Failed("timeout_exceeded"), 1, 1),
        (Failed("agent_run_error"), 1, 0),
        (Interrupted("kill_shaped"), 0, 0),
    ],
)
def test_results_and_failures_finish_and_a_failure_of_that_kind_was_ended_by_its_limit(
    timed, outcome, finished, by_limit
):
    timed.observe(ended(outcome))
    assert (timed.report.timing.finished, timed.report.timing.timed_out) == (finished, by_limit)


@pytest.mark.parametrize("in_its_own_text", [True, False])
@pytest.mark.parametrize(("members", "count"), [({"timeouts": [{"type": "tool"}]}, 1), ({"timeouts": []}, 0), ({}, 0)])
def test_a_result_with_timeout_events_was_ended_by_its_limit(timed, members, count, in_its_own_text):
    said = {"reward": 1.0} | members
    ending = Ending(Scored(1.0), kept=json.dumps(said).encode()) if in_its_own_text else Ending(Scored(1.0), said)
    timed.replied(ending)
    assert timed.report.timing.timed_out == count


def test_a_report_says_how_it_is_now():
    clock = ManualClock()
    public = report(clock)
    assert "pending" in public.table()
    public.record_start(clock.monotonic())
    public.record_result({"timeouts": [{}]}, 6.0)
    public.record_queue(3, 2)
    clock.advance(10)
    assert public.table().count("WARNING") == 4


def test_no_table_is_kept_unless_it_is_asked_for():
    settings = RolloutCollectionConfig(input_jsonl_fpath="i", output_jsonl_fpath="o")
    assert report_for(settings, 1, ManualClock()) is None


async def test_the_table_is_told_every_so_often_when_the_run_is_to_stop_and_at_the_end():
    clock, stop, told = ManualClock(), Stop(), []
    timed = TimedRun(report(clock), lambda text: told.append(text) if text == "Run timing" else None)
    counts = []
    async with timed.told(5.0, stop, clock):
        await clock.asleep()
        clock.advance(5.0)
        await clock.asleep()
        counts.append(len(told))
        stop.request("SIGTERM")
        await asyncio.sleep(0)
        counts.append(len(told))
    assert [*counts, len(told)] == [1, 2, 3]


def test_a_run_tells_its_table_on_standard_error_and_ends_as_it_would(tmp_path):
    flags = ["+dispatch_start_report_within_s=600", "+long_rollout_s=600"]
    with serving() as stub:
        answer = RunFolder(tmp_path).asks(adding(3)).run(stub, *flags)
    assert answer.code == 0, answer.text
    assert "Run timing" in answer.err
    assert "1.000 (3 of 3)" in answer.err
    assert "WARNING" not in answer.err
