"""Counting rollouts that stand alike, while others are being told how they ended."""

from array import array

import pytest

from rollbook.records import alike
from rollbook.records.identity import RolloutKey
from rollbook.records.outcome import Scored
from rollbook.records.record import Record
from rollbook.records.standing import Standings


class Busy(array):
    """A column; whenever somebody reads on in it, `meanwhile` happens first."""

    meanwhile = staticmethod(lambda: None)

    def __iter__(self):
        self.meanwhile()
        return super().__iter__()

    def __getitem__(self, index):
        self.meanwhile()
        return super().__getitem__(index)


def sent(count):
    standings = Standings()
    for task in range(count):
        standings.plan(RolloutKey(task, 0))
        standings.reserved(RolloutKey(task, 0), 0, 1)
    return standings


@pytest.mark.parametrize("column", ["row", "flags", "group", "spent", "ended", "handed_out"])
def test_rollouts_of_agents_not_seen_yet_may_end_while_they_are_counted(monkeypatch, column):
    monkeypatch.setattr(alike, "_AT_ONCE", 4)
    standings = sent(40)
    left = list(range(39, 0, -1))

    def end_one():
        if left:
            task = left.pop()
            standings.add(Record(RolloutKey(task, 0), 0, Scored(1.0), "r", f"agent {task}", "s"))

    columns, attempts = standings.columns, standings.columns.attempts
    owner, name = (getattr(attempts, column), "bits") if column in {"ended", "handed_out"} else (columns, column)
    setattr(owner, name, Busy(getattr(owner, name).typecode, getattr(owner, name)))
    monkeypatch.setattr(Busy, "meanwhile", staticmethod(end_one))
    while_busy = standings.coverage()
    assert while_busy.scored + while_busy.interrupted == 40
    monkeypatch.setattr(Busy, "meanwhile", staticmethod(lambda: None))
    while left:
        end_one()
    afterwards = standings.coverage()
    assert (afterwards.scored, afterwards.interrupted) == (39, 1)


def test_rollouts_of_a_plan_without_servers_are_counted_by_the_server_that_answered():
    standings = sent(8)
    for task in range(8):
        standings.add(Record(RolloutKey(task, 0), 0, Scored(1.0), "r", "agent", "one" if task < 3 else "other"))
    counts, _ = standings.counted()
    assert {group.server: group.coverage.scored for group in counts} == {"one": 3, "other": 5}
