"""How many rollouts wait to be sent again, as a session counts it."""

from rollbook.records.event import AttemptCut, AttemptRefused, AttemptStarted
from rollbook.records.identity import RolloutKey
from rollbook.telemetry.pace import Pace


def test_rollouts_that_were_refused_or_cut_wait_until_they_start_again_and_only_refusals_count_as_such():
    pace = Pace()
    for task in range(3):
        pace.observe(AttemptStarted(RolloutKey(task, 0), 0, at=0.0))
    pace.observe(AttemptRefused(RolloutKey(0, 0), 0, "503", at=1.0, retry_in=1.0))
    pace.observe(AttemptCut(RolloutKey(1, 0), 0, "asked for", at=1.0))
    assert (len(pace.again), pace.refused) == (2, 1)
    pace.observe(AttemptStarted(RolloutKey(0, 0), 1, at=2.0))
    assert len(pace.again) == 1
