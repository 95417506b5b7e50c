"""What judging again changed, held against two plain dictionaries."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollbook.records.identity import RolloutKey
from rollbook.records.outcome import Failed, Masked, Scored
from rollbook.records.record import Record
from rollbook.records.reward_delta import reward_delta
from rollbook.records.standing import Standings

KEYS = st.builds(RolloutKey, st.integers(0, 5), st.integers(0, 3))
OUTCOMES = st.one_of(
    st.builds(Scored, st.sampled_from([0.0, 0.5, 1.0])), st.just(Masked()), st.just(Failed("judge_failed"))
)
SIDES = st.dictionaries(KEYS, OUTCOMES, max_size=12)


def folded(side):
    standings = Standings()
    for key, outcome in side.items():
        standings.add(Record(key, 0, outcome, "r"))
    return standings


@given(SIDES, SIDES, st.sets(KEYS), st.integers(0, 3))
def test_the_difference_is_that_of_the_rollouts_that_have_both_rewards(before, after, judged, shown):
    delta = reward_delta(judged.__contains__, folded(before), folded(after), shown)
    pairs = [
        (key, before[key].reward, after[key].reward)
        for key in sorted(judged & before.keys() & after.keys())
        if isinstance(before[key], Scored) and isinstance(after[key], Scored)
    ]
    changed = [(key, old, new) for key, old, new in pairs if old != new]
    assert delta.judged_twice == len(pairs)
    assert math.isclose(delta.new_sum - delta.old_sum, sum(new - old for _, old, new in pairs), abs_tol=1e-9)
    assert (delta.up, delta.down) == (sum(n > o for _, o, n in pairs), sum(n < o for _, o, n in pairs))
    assert [(one.key, one.old, one.new) for one in delta.first] == changed[:shown]
    told = {key for key in judged if isinstance(after.get(key), Scored)}
    assert delta.gained == len(told) - len(pairs)
    assert sum(delta.moved.values()) == len(judged & after.keys()) - len(pairs)


@given(SIDES)
def test_a_verifier_that_says_the_same_changes_nothing(side):
    delta = reward_delta(lambda _key: True, folded(side), folded(side), 5)
    assert (delta.up, delta.down, delta.first, delta.gained) == (0, 0, [], 0)
    assert delta.old_mean == delta.new_mean or delta.old_mean == pytest.approx(delta.new_mean)
