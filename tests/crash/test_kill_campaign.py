"""A sample of the kill campaign, larger with `ROLLBOOK_FULL=1`; `make crash N=500` plays all of it."""

import os

import pytest

from crash import campaign

KILLS, SECONDS = (12, 15.0) if os.environ.get("ROLLBOOK_FULL") == "1" else (4, 6.0)


@pytest.mark.crash
def test_a_run_that_is_killed_and_resumed_loses_no_rollout_and_pays_for_none_twice():
    count = campaign.fought(KILLS, seconds=SECONDS)
    assert count.violations == []
    assert count.killed > 0
