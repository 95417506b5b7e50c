"""Rollouts by task and repeat, in whatever order they were named."""

import random

import pytest

from rollbook.records.columns import packed, unpacked_key
from rollbook.records.identity import RolloutKey
from rollbook.records.in_order import InOrder
from rollbook.records.seats import Seats
from rollbook.records.standing import Standings

KEYS = [(task, rollout) for task in range(20_000) for rollout in range(4)]
"""More than what is sorted at once."""


def by_repeat(keys):
    return sorted(keys, key=lambda key: key[::-1])


def by_chance(keys):
    return random.Random(4).sample(keys, len(keys))  # noqa: S311  no secret


@pytest.mark.parametrize("order", [list, by_repeat, by_chance])
def test_every_pass_gives_all_rollouts_with_their_seats_by_task_and_repeat(order):
    seats = Seats()
    for key in order(KEYS):
        seats.add(packed(*key))
    found = InOrder(seats)
    assert [unpacked_key(number) for number, _ in found] == [RolloutKey(*key) for key in KEYS]
    assert all(seats[number] == seat for number, seat in found)


@pytest.mark.parametrize("keys", [[], [(5, 0)], [(1, 0), (0, 0), (1, 1), (0, 1)]])
def test_a_task_is_counted_once_wherever_its_rollouts_are_named(keys):
    standings = Standings()
    for key in keys:
        standings.plan(RolloutKey(*key))
    assert standings.tasks() == len({task for task, _ in keys})
