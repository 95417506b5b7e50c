"""Records as columns: each comes back as it went in, but for its text."""

import pytest

from rollbook.records.failure_kinds import Delivery, FailureStage
from rollbook.records.identity import RolloutKey
from rollbook.records.outcome import (
    Evidence,
    Failed,
    Interrupted,
    Masked,
    NeverStarted,
    Scored,
    Unscored,
    without_text,
)
from rollbook.records.place import File, Place
from rollbook.records.record import Record
from rollbook.records.standing import Standings

KEY = RolloutKey(7, 3)
OUTCOMES = [
    Scored(0.25),
    Scored(0.0),
    Masked(0.5),
    Masked(None),
    Unscored(),
    Failed("a", "why", "k", FailureStage.SEED, terminal=True, http_status=500, response_body="b", counts_as_zero=True),
    Failed("a", delivery=Delivery.NOT_SENT, exception_type="T", legacy_class="l", saved_answer=True),
    Interrupted("kill_shaped", "why", Delivery.NOT_SENT, FailureStage.ADMISSION),
    NeverStarted("why"),
    Evidence("why"),
]


@pytest.mark.parametrize("place", [None, Place(File.FAILURES, 1 << 40, 70_000, 9), Place(File.RESULTS, 0, 2, 1)])
@pytest.mark.parametrize("outcome", OUTCOMES, ids=lambda outcome: type(outcome).__name__)
def test_a_record_comes_back_as_it_went_in_but_for_its_text(outcome, place):
    standings = Standings()
    standings.reserved(KEY, 2, 1)
    standings.add(Record(KEY, 2, outcome, "r", "agent", "server", place))
    assert standings.of(KEY) == Record(KEY, 2, without_text(outcome), "r", "agent", "server", place)


def test_records_that_share_an_ending_keep_what_is_their_own():
    standings = Standings()
    for task in range(50):
        standings.add(Record(RolloutKey(task, 0), 0, Scored(task / 7), agent=f"a{task % 3}"))
    assert [record.outcome for record in standings] == [Scored(task / 7) for task in range(50)]
    assert [record.agent for record in standings] == [f"a{task % 3}" for task in range(50)]


def test_the_records_of_a_rollout_come_back_in_the_order_in_which_they_were_read():
    standings = Standings()
    for attempt in (1, 0, 2):
        standings.add(Record(KEY, attempt, Failed("x"), "r"))
        standings.add(Record(RolloutKey(attempt, 0), 0, Scored(1.0)))
    assert [record.attempt for record in standings.records_of(KEY)] == [1, 0, 2]
    assert standings.records_of(RolloutKey(99, 0)) == ()
