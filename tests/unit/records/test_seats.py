"""Seats of keys, in whatever order keys come: held against a table."""

import json
import random
from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollbook.records.bulk import fold_plan, fold_reservations, fold_results
from rollbook.records.columns import LOW, RolloutColumns, packed
from rollbook.records.identity import (
    ATTEMPT_INDEX_KEY_NAME,
    ROLLOUT_INDEX_KEY_NAME,
    RUN_ID_KEY,
    TASK_INDEX_KEY_NAME,
    RolloutKey,
)
from rollbook.records.outcome import Scored
from rollbook.records.place import File, Place
from rollbook.records.reading import read_row
from rollbook.records.record import Record
from rollbook.records.seats import LARGEST, Seats
from rollbook.records.standing import Standings

TASKS, REPEATS = 40, 4
REGULAR = [(task, rollout) for task in range(TASKS) for rollout in range(REPEATS)]
INTERLEAVED = sorted(REGULAR, key=lambda key: key[::-1])
FARTHEST = [(0, LOW), (0, 0), (LOW, LOW), (LOW, 0), (LOW + 1, 0), (1 << 70, 3), (LOW, 1), (1, 2)]


def shuffled(keys):
    return random.Random(4).sample(keys, len(keys))  # noqa: S311  no secret


ORDERS = {
    "by task": REGULAR,
    "by repeat": INTERLEAVED,
    "by chance": shuffled(REGULAR),
    "backwards": REGULAR[::-1],
    "one repeat": [(task, 0) for task in range(TASKS)],
    "one task": [(3, rollout) for rollout in range(TASKS)],
    "from a later task and repeat on": [(task + 7, rollout + 2) for task, rollout in REGULAR],
    "by repeat, from a later task on": [(task + 7, rollout) for task, rollout in INTERLEAVED],
    "by task, with gaps": [key for key in REGULAR if key[0] % 7 and key != (9, 2)],
    "by repeat, with gaps": [key for key in INTERLEAVED if key[0] % 7 and key != (9, 2)],
    "by repeat, each key twice": [key for key in INTERLEAVED for _ in range(2)],
    "by repeat, and again by task": INTERLEAVED + REGULAR,
    "by task, and more repeats of each": REGULAR + [(task, rollout + REPEATS) for task, rollout in REGULAR],
    "by repeat, the last ones by chance": INTERLEAVED[:TASKS] + shuffled(INTERLEAVED[TASKS:]),
    "a stranger between": [*INTERLEAVED[:TASKS], (1000, 1000), *INTERLEAVED[TASKS:]],
    "a stranger first": [(1000, 1000), *REGULAR],
    "the farthest ones": FARTHEST,
    "the farthest ones between": [*REGULAR, *FARTHEST, *INTERLEAVED],
    "where the low half of a key turns over": [(task + (LOW // 61), rollout) for task, rollout in REGULAR],
    "the same by repeat": [(task + (LOW // 61), rollout) for task, rollout in INTERLEAVED],
}
INDICES = st.sampled_from([0, 1, 2, 3, 5, LOW // 61, LOW // 61 + 1, LOW - 1, LOW])
KEYS = st.tuples(st.one_of(INDICES, st.sampled_from([LOW + 1, 1 << 70])), INDICES)
SOME = st.sampled_from(list(ORDERS)).flatmap(
    lambda name: st.tuples(st.integers(0, len(ORDERS[name])), st.integers(1, 80)).map(
        lambda cut: ORDERS[name][cut[0] : cut[0] + cut[1]]
    )
)
SEQUENCES = st.lists(st.one_of(SOME, st.lists(KEYS, max_size=12)), max_size=4).map(
    lambda parts: list(chain.from_iterable(parts))
)


def hold_against_a_table(keys):
    seats, table = Seats(), {}
    for number in (packed(*key) for key in keys):
        assert seats.get(number) == table.get(number)
        assert (number > seats.highest) <= (number not in table)
        assert seats.add(number) == table.setdefault(number, len(table))
        assert seats.get(number) == seats[number] == table[number]
    assert all(seats[number] == seat for number, seat in table.items())
    assert list(seats) == list(table)
    assert list(seats.items()) == list(table.items())
    assert len(seats) == len(table)
    assert seats.all_rise == (list(table) == sorted(table))
    for task, rollout in [*REGULAR, *FARTHEST, (TASKS, 0), (0, REPEATS)]:
        number = packed(task, rollout)
        assert seats.get(number) == table.get(number)
        guess = seats.guess
        at = task * guess.by_task + rollout * guess.by_rollout + guess.start
        if 0 <= at < len(seats) and seats.keys[at] == number:
            assert table[number] == at


@pytest.mark.parametrize("name", ORDERS)
def test_every_key_has_the_seat_that_a_table_gives_it_in_any_order(name):
    hold_against_a_table(ORDERS[name])


@given(keys=SEQUENCES)
def test_every_key_has_the_seat_that_a_table_gives_it_whatever_comes(keys):
    hold_against_a_table(keys)


@pytest.mark.parametrize("name", ["by task", "by repeat", "one repeat", "from a later task and repeat on"])
def test_a_regular_plan_is_guessed_whole(name):
    seats = Seats()
    for key in ORDERS[name]:
        seats.add(packed(*key))
    by_task, by_rollout, start, _ = seats.guess
    assert [task * by_task + rollout * by_rollout + start for task, rollout in ORDERS[name]] == list(range(len(seats)))
    assert not seats._apart


def test_a_key_that_was_not_named_has_no_seat():
    seats = Seats()
    seats.add(packed(1, 1))
    with pytest.raises(KeyError):
        seats[packed(1, 0)]


def test_the_largest_keys_that_an_array_holds_lie_in_one():
    seats = Seats()
    seats.add(LARGEST)
    assert not isinstance(seats.keys, list)


def test_a_seat_has_a_place_in_every_column():
    columns = RolloutColumns()
    assert [columns.seat(packed(*key)) for key in [(1, 0), (0, 0), (1, 0)]] == [0, 1, 0]
    assert len(columns.row) == len(columns.flags) == len(columns.seats) == 2


def line_of(key, **more):
    return json.dumps({TASK_INDEX_KEY_NAME: key[0], ROLLOUT_INDEX_KEY_NAME: key[1]} | more).encode()


def lines_of(keys, **more):
    return [(number, 100 * number, 100, line_of(key, **more)) for number, key in enumerate(keys, start=1)]


@pytest.mark.parametrize("planned", [0, TASKS, 10_000])
@pytest.mark.parametrize("name", [name for name in ORDERS if "farthest" not in name])
def test_a_plan_with_its_attempts_and_results_is_folded_in_bulk_as_one_by_one(name, planned):
    keys = ORDERS[name]
    plan, ended = keys[:planned], shuffled(list(dict.fromkeys(keys)))
    bulk, single, faults, results = Standings(), Standings(), [], lines_of(ended, reward=1.0, **{RUN_ID_KEY: "r"})
    fold_plan(lines_of(plan), bulk, lambda number, _: faults.append(number))
    assert faults == [number for number, key in enumerate(plan, start=1) if not single.plan(RolloutKey(*key))]
    fold_reservations([part for key in ended for part in (*key, 0)], bulk, 1)
    fold_results(results, bulk, lambda number, _: faults.append(number))
    for key, (number, offset, length, _) in zip(ended, results, strict=True):
        single.reserved(RolloutKey(*key), 0, 1)
        single.add(Record(RolloutKey(*key), 0, Scored(1.0), "r", place=Place(File.RESULTS, offset, length, number)))
    assert list(bulk.standings()) == list(single.standings())
    assert list(bulk.in_order()) == list(single.in_order())


@pytest.mark.parametrize("run", [{}, {RUN_ID_KEY: "r"}])
@pytest.mark.parametrize("planned", [0, TASKS])
@pytest.mark.parametrize("attempt", [{}, {ATTEMPT_INDEX_KEY_NAME: 1}])
def test_results_that_nobody_reserved_are_folded_in_bulk_as_one_by_one(run, planned, attempt):
    keys = ORDERS["by chance"]
    twice = [*keys, *keys[:3]]
    bulk, single, results = Standings(), Standings(), lines_of(twice, reward=1.0, **run, **attempt)
    for standings in (bulk, single):
        fold_plan(lines_of(keys[:planned]), standings, lambda *_: None)
        standings.refused(RolloutKey(*keys[0]), 0)
    fold_results(results, bulk, lambda *_: None)
    for number, offset, length, text in results:
        single.add(read_row(text, File.RESULTS, Place(File.RESULTS, offset, length, number)))
    assert list(bulk.standings()) == list(single.standings())
    assert (bulk.unreserved, bulk.first_unreserved) == (single.unreserved, single.first_unreserved)
    assert [bulk.next_attempt(RolloutKey(*key)) for key in keys] == [
        single.next_attempt(RolloutKey(*key)) for key in keys
    ]


def test_a_plan_holds_keys_larger_than_any_array_does():
    standings, faults = Standings(), []
    fold_plan(lines_of([*FARTHEST, *FARTHEST]), standings, lambda number, _: faults.append(number))
    assert [standing.key for standing in standings.standings()] == [RolloutKey(*key) for key in FARTHEST]
    assert faults == list(range(len(FARTHEST) + 1, 2 * len(FARTHEST) + 1))
