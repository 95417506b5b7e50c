"""The log of a shard: every number that it hands out is in it, however many there are."""

import os

import pytest

from rollbook.ledger import shard
from rollbook.ledger.manifest_store import fold_log
from rollbook.ledger.shard import begin_log, end_without_rows, shard_paths
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


def test_what_the_log_of_a_shard_says_is_on_the_disk_before_anything_follows(tmp_path, monkeypatch):
    durable = []
    monkeypatch.setattr(shard, "DATA_SYNC", lambda descriptor: durable.append(os.fstat(descriptor).st_size))
    paths = shard_paths(tmp_path, "s")
    begin_log(paths, Opened(1, "run", "2026-01-01T00:00:00Z", (0, 0)), [(RolloutKey(0, 0), 0)])
    assert durable == [paths.manifest_log.stat().st_size]


def test_a_shard_without_rows_is_over(tmp_path):
    paths = shard_paths(tmp_path, "s")
    begin_log(paths, Opened(1, "run", "2026-01-01T00:00:00Z", (0, 0)), [])
    end_without_rows(paths, "2026-01-01T00:00:01Z")
    (session,) = fold_log(paths.manifest_log, Standings()).sessions
    assert (session.how, session.closed_at) == ("finished", "2026-01-01T00:00:01Z")
