"""Small numbers by rollout."""

import tracemalloc

from hypothesis import given
from hypothesis import strategies as st

from rollbook.records.identity import RolloutKey
from rollbook.records.marks import MOST_MARKS, Marks

KEYS = st.builds(RolloutKey, st.integers(0, 2000) | st.integers(0, 2**40), st.integers(0, 9) | st.integers(0, 2**31))


@given(st.lists(st.tuples(KEYS, st.integers(0, MOST_MARKS)), max_size=50), KEYS)
def test_a_rollout_has_the_number_that_it_was_given_last(puts, other):
    marks, model = Marks(), {}
    for key, mark in puts:
        marks.put(key, mark)
        model[key] = mark
    assert [marks.of(key) for key in [*model, other]] == [*model.values(), model.get(other, 0)]


def test_a_mark_for_every_rollout_costs_three_bytes():
    keys = [RolloutKey(task, repeat) for task in range(4096) for repeat in range(4)]
    tracemalloc.start()
    try:
        marks = Marks()
        for key in keys:
            marks.put(key, 1)
        assert tracemalloc.get_traced_memory()[0] <= 3.5 * len(keys)
    finally:
        tracemalloc.stop()
