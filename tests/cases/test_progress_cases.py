"""Cases from the field about what a log file holds of a run that is looked at the next morning (RC-56).

Rules:
* Ten minutes pass by a clock that the server moves; the view is the one that a command has for a file.
"""

import io
import re
from itertools import pairwise

import pytest

from cases import peer as peers
from cases.peer import reply_of
from cases.played import Played
from cases.stepped import SteppedRun
from rollbook.live.view import view_for
from rollbook.records.event import RunPlanned
from stub import adding

TASKS, LANES, SECONDS_EACH = 300, 2, 4.0
PROGRESS = re.compile(r"^(\d+)/300 finished \(\d+%\)")


class Log:
    """A log file, and the time at which each of its lines was written."""

    def __init__(self):
        self.file = io.StringIO()
        self.run = self.view = None
        self.lines = []

    def observe(self, event):
        """Let a second's beat follow each event."""
        if self.view is None:
            self.view = view_for(self.file, self.run.clock)
        self.view.observe(event)
        if not isinstance(event, RunPlanned):
            self.view.beat()
        self.lines += [(self.run.clock.at, text) for text in self.file.getvalue().splitlines()[len(self.lines) :]]

    @property
    def progress(self):
        """The lines that say how far the run is."""
        return [(at, text) for at, text in self.lines if PROGRESS.match(text)]


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    """The log of ten minutes of a slow run, of which every tenth rollout fails."""
    with peers.serving() as peer:
        log = Log()
        played = Played(tmp_path_factory.mktemp("log"), peer, adding(TASKS))
        log.run = SteppedRun(played, LANES, lambda _task: SECONDS_EACH)
        stepping = peer.script

        async def script(asked):
            await stepping(asked)
            if asked.task % 10 == 0:
                asked.answer(reply_of(b"oops", 500))

        peer.script = script
        log.run.run(log.observe)
        yield log


def test_rc_56_a_log_has_whole_lines_and_no_carriage_return(log):
    text = log.file.getvalue()
    assert not {"\r", "\x1b"} & set(text)
    assert text.endswith("\n")
    assert max(len(line) for line in text.splitlines()) < 250


def test_rc_56_a_line_comes_at_least_every_half_minute_and_not_with_every_rollout(log):
    times = [log.run.begun, *(at for at, _ in log.progress)]
    assert all(later - sooner <= 30 + SECONDS_EACH for sooner, later in pairwise(times))
    assert 20 <= len(log.progress) <= 130
    assert len(log.file.getvalue()) < 20_000


def test_rc_56_each_line_counts_what_failed_apart_and_says_what_is_in_flight_and_how_fast(log):
    later = [text for _, text in log.progress[3:-1]]
    assert all("failed" in text and "in flight" in text and "/min" in text for text in later)
    done, failed = re.search(r"^(\d+)/.* (\d+) failed", later[-1]).groups()
    assert int(failed) == pytest.approx(int(done) / 10, abs=1)


def test_rc_56_the_last_line_says_what_the_files_hold(log):
    _, last = log.progress[-1]
    assert last.startswith(f"{TASKS}/{TASKS} finished (100%) · mean reward 1.000 over {TASKS - 30} · 30 failed")
    assert "ended after 10m00s" in last
    assert len(log.run.played.scored()) == TASKS - 30
