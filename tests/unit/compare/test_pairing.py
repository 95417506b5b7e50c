"""Which tasks of two runs are the same."""

from hypothesis import given, settings
from hypothesis import strategies as st

from compared_sides import of, side
from rollbook.compare.pairing import PairBy, paired
from rollbook.compare.row_difference import row_difference

BOTH = (("a", "a"),)


def pairs(baseline, candidate, by=PairBy.CONTENT, agents=BOTH):
    found = paired(baseline, candidate, agents, by)
    return found, {(baseline.task[ours], candidate.task[theirs]) for ours, theirs in found}


tasks = st.lists(
    st.tuples(
        st.integers(1, 1 << 60), st.lists(st.sampled_from([0.0, 1.0, "missing", "masked"]), min_size=1, max_size=3)
    ),
    min_size=1,
    max_size=12,
    unique_by=lambda task: task[0],
)


def made(said, order):
    return side(*(of(*said[place][1], content=said[place][0], prompt=said[place][0]) for place in order))


@settings(deadline=None, max_examples=40)
@given(said=tasks, data=st.data())
def test_whatever_the_order_and_the_numbers_a_task_is_paired_with_itself(said, data):
    places = range(len(said))
    first, second = data.draw(st.permutations(places)), data.draw(st.permutations(places))
    found, numbers = pairs(made(said, first), made(said, second))
    assert numbers == {(first.index(place), second.index(place)) for place in places}
    assert not found.only_baseline
    assert not found.only_candidate


@settings(deadline=None, max_examples=10)
@given(said=tasks, data=st.data())
def test_numbering_tasks_anew_changes_no_digit_of_the_difference(said, data):
    order = data.draw(st.permutations(range(len(said))))
    others = [(content, list(reversed(ends))) for content, ends in said]
    baseline, candidate, plain = made(said, order), made(others, range(len(said))), made(said, range(len(said)))
    shuffled = row_difference(baseline, candidate, paired(baseline, candidate, BOTH))
    straight = row_difference(plain, candidate, paired(plain, candidate, BOTH))
    assert shuffled == straight


@settings(deadline=None, max_examples=40)
@given(kept=st.sets(st.integers(0, 9)), others=st.sets(st.integers(0, 9)))
def test_every_task_is_in_a_pair_or_on_one_side(kept, others):
    ours = side(*(of(1.0, content=place + 1) for place in sorted(kept)))
    theirs = side(*(of(1.0, content=place + 1) for place in sorted(others)))
    found, _ = pairs(ours, theirs)
    assert len(found) == len(kept & others)
    assert len(found.only_baseline) == len(kept - others)
    assert len(found.only_candidate) == len(others - kept)


def test_tasks_that_say_the_same_are_paired_in_their_order():
    twice = side(of(1.0, content=7), of(0.0, content=9), of(1.0, content=7))
    thrice = side(of(1.0, content=7), of(1.0, content=7), of(1.0, content=7), of(0.0, content=9))
    found, numbers = pairs(twice, thrice)
    assert numbers == {(0, 0), (2, 1), (1, 3)}
    assert found.twins == 1
    assert [thrice.task[unit] for unit in found.only_candidate] == [2]


def test_a_prompt_pairs_what_its_other_fields_do_not_and_that_is_said():
    ours = side(of(1.0, content=1, prompt=5), of(1.0, content=2, prompt=6))
    theirs = side(of(1.0, content=3, prompt=5), of(1.0, content=2, prompt=6))
    found, numbers = pairs(ours, theirs)
    assert numbers == {(0, 0), (1, 1)}
    assert found.counts() == {"content": 1, "prompt, other fields differ": 1}


def test_a_side_without_a_plan_is_paired_by_prompts():
    found, numbers = pairs(side(of(1.0, content=1, prompt=5)), side(of(1.0, prompt=5)))
    assert numbers == {(0, 0)}
    assert found.counts() == {"prompt": 1}


def test_a_name_pairs_tasks_whose_prompts_differ():
    ours = side(of(1.0, content=1, prompt=5, name=3))
    found, _ = pairs(ours, side(of(1.0, content=2, prompt=6, name=3)))
    assert found.counts() == {"name, content differs": 1}


def test_numbers_pair_nothing_unless_a_side_is_silent_or_it_is_asked_for():
    ours, theirs = side(of(1.0, content=1)), side(of(1.0, content=2))
    assert pairs(ours, theirs)[1] == set()
    assert pairs(ours, theirs, PairBy.NUMBER)[1] == {(0, 0)}
    silent, numbers = pairs(ours, side(of(1.0, prompt=0, content=0)))
    assert numbers == {(0, 0)}
    assert silent.counts() == {"number": 1}


def test_agents_of_different_names_are_compared_where_it_is_said():
    ours = side(of(1.0, content=1, agent="old"), of(1.0, content=2, agent="rest"))
    theirs = side(of(1.0, content=2, agent="new"), of(1.0, content=1, agent="new"))
    _, numbers = pairs(ours, theirs, agents=(("old", "new"),))
    assert numbers == {(0, 1)}
