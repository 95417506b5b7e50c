"""In which order a run sends what it owes."""

import pytest
from aiohttp import web

from cases.played import FAILURES, Played
from rollbook.api.unsupported import LATER
from stub import adding, serving

WIRED = pytest.mark.skipif("dispatch_longest_first" in LATER, reason="the option is refused")
LONGEST = "+dispatch_longest_first=true"


def taking(seconds):
    """Fail tasks after so many seconds, as their replies say."""
    failure = {"_ng_failure_class": "agent_run_error", "_ng_failure_message": "no"}

    def answer(row):
        task = row["_ng_task_index"]
        return web.json_response(failure | {"elapsed_seconds": seconds[task]}) if task in seconds else None

    return answer


@pytest.fixture
def failed(tmp_path):
    """A run of which tasks 1, 2 and 4 failed, after 3, 9 and 6 seconds, and tasks 5 and 6 were never sent."""
    with serving(taking({1: 3.0, 2: 9.0, 4: 6.0})) as stub:
        played = Played(tmp_path, stub, adding(7))
        assert played.run("--concurrency", "1", "--limit", "5").code == 3
        yield played


@WIRED
def test_a_resume_sends_what_failed_after_the_longest_time_first(failed):
    assert [row["elapsed_seconds"] for row in failed.rows(FAILURES)] == [3.0, 9.0, 6.0]
    failed.stub.script = lambda _row: None
    since = len(failed.stub.requests)
    assert failed.resume("--concurrency", "1", LONGEST).code == 0
    assert [task for task, _ in failed.asked(since)] == [2, 4, 1, 5, 6]


@WIRED
def test_without_the_option_a_resume_sends_in_plan_order(failed):
    failed.stub.script = lambda _row: None
    since = len(failed.stub.requests)
    assert failed.resume("--concurrency", "1").code == 0
    assert [task for task, _ in failed.asked(since)] == [1, 2, 4, 5, 6]
