"""The columns of a plan's tasks, held against tables."""

import hashlib
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollbook.plan.tasks import RolloutCounts, TaskNumbers

TASKS = st.one_of(st.integers(0, 9), st.sampled_from([1 << 31, 1 << 32, 1 << 80]))


def digest_of(number):
    return hashlib.blake2b(str(number).encode(), digest_size=16).digest()


@pytest.mark.parametrize("supplied", [lambda place: place, lambda place: 1 << 70 if place % 3 else place])
def test_every_text_has_the_number_that_it_was_given(supplied):
    numbers, table = TaskNumbers(), {}
    for place in range(1000):
        digest = digest_of(place)
        assert numbers.get(digest) is None
        numbers.add(digest, supplied(place))
        table[digest] = supplied(place)
        assert len(numbers) == len(table)
    assert all(numbers.get(digest) == task for digest, task in table.items())
    assert numbers.get(digest_of("another")) is None


def test_texts_whose_digests_begin_alike_are_told_apart():
    numbers, digests = TaskNumbers(), [bytes([255] * 8 + [0] * 7 + [end]) for end in range(200)]
    for task, digest in enumerate(digests):
        numbers.add(digest, task)
    assert [numbers.get(digest) for digest in digests] == list(range(200))
    assert numbers.get(bytes([255] * 16)) is None


@given(tasks=st.lists(TASKS))
def test_rollouts_are_counted_whatever_the_order_of_tasks(tasks):
    counts, table = RolloutCounts(), Counter()
    for task in tasks:
        assert counts.add(task) == table[task]
        table[task] += 1
    assert {task: counts.of(task) for task in table} == table
    assert counts.of(77) == 0
    largest = counts.largest()
    assert largest is None if not tasks else largest[1] == table[largest[0]] == max(table.values())
