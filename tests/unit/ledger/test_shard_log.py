"""The log of a shard: every number that it hands out is in it, however many there are."""

import pytest

from rollbook.ledger.manifest_store import fold_log
from rollbook.ledger.shard import begin_log, shard_paths
from rollbook.records.identity import RolloutKey
from rollbook.records.manifest import Opened
from rollbook.records.standing import Standings


@pytest.mark.parametrize("rollouts", [0, 1, 999, 1000, 1001, 2500])
def test_a_shard_of_any_size_has_each_of_its_numbers_in_its_log(tmp_path, rollouts):
    paths = shard_paths(tmp_path, "s")
    attempts = [(RolloutKey(task, task % 3), task % 5) for task in range(rollouts)]
    begin_log(paths, Opened(1, "run", "2026-01-01T00:00:00Z", (0, 0)), attempts)
    standings = Standings()
    summary = fold_log(paths.manifest_log, standings)
    assert (summary.session, summary.sessions[0].reserved) == (1, rollouts)
    assert [standings.lost(key) for key, _ in attempts] == [(attempt,) for _, attempt in attempts]
