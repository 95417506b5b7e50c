"""Tasks with one prompt are paired by their other fields, or not at all."""

from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compared_sides import of, side
from rollbook.compare.lookalikes import MOST_FIELDS, TaskFields, told_apart
from rollbook.compare.pairing import paired

BOTH = (("a", "a"),)


def fields_in(*rows):
    """Return what is told of tasks by their rows, the first of which is task 0."""

    def fields_of(_side, tasks):
        numbers = sorted(set(tasks))
        fields = TaskFields(numbers)
        for number in numbers:
            for name, value in rows[number].items():
                fields.say(number, name, value)
        return fields

    return fields_of


def pairs(ours, theirs, names=0):
    """Return the pairs of tasks that have one prompt, and the pairing; a task is given by its other fields."""
    baseline, candidate = (
        side(*(of(1.0, content=crc32(repr(sorted(row.items())).encode()), prompt=7, name=names) for row in rows))
        for rows in (ours, theirs)
    )

    def fields_of(asked, tasks):
        return fields_in(*(ours if asked is baseline else theirs))(asked, tasks)

    found = paired(baseline, candidate, BOTH, fields_of=fields_of)
    return {(baseline.task[mine], candidate.task[other]) for mine, other in found}, found


def rows(*cases, **same):
    return [{"case": case} | same for case in cases]


@given(st.permutations(range(1, 9)))
def test_whatever_the_order_a_field_that_tells_tasks_apart_pairs_them(order):
    numbers, found = pairs(rows(*range(1, 9), version=1), rows(*order, version=2))
    assert numbers == {(case - 1, place) for place, case in enumerate(order)}
    assert found.counts() == {"prompt, other fields differ": 8}
    assert not found.ambiguous_baseline


def test_a_field_that_changed_for_one_task_does_not_part_it_from_itself():
    ours, theirs = rows(1, 2, 3), rows(3, 2, 1)
    for row, answer in zip((*ours, *theirs), (10, 20, 30, 30, 20, 99), strict=True):
        row["answer"] = answer
    assert pairs(ours, theirs)[0] == {(0, 2), (1, 1), (2, 0)}


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (rows(1, 2, 3), rows(4, 5, 6)),
        ([{"case": 1, "x": 1}, {"case": 1, "x": 2}], [{"case": 1, "x": 3}, {"case": 1, "x": 1}]),
        (rows(1, 2), rows(3)),
        ([{"case": 1, "index": 2}], [{"case": 1, "index": 1}, {"case": 2, "index": 2}]),
        ([{"case": 1, "index": 1}, {"case": 2, "index": 2}], [{"case": 2, "index": 1}, {"case": 1, "index": 2}]),
        ([{"case": 1, "level": 1}, {"case": 2, "level": 2}], [{"case": 3, "level": 1}, {"case": 4, "level": 2}]),
        ([{}, {"case": 1}], [{"case": 2}, {}]),
    ],
)
def test_tasks_that_nothing_tells_apart_stay_without_a_partner_and_are_counted(ours, theirs):
    numbers, found = pairs(ours, theirs)
    left = len(ours) - len(numbers), len(theirs) - len(numbers)
    assert all(ours[mine] == theirs[other] for mine, other in numbers)
    assert (len(found.ambiguous_baseline), len(found.ambiguous_candidate)) == left
    assert (len(found.only_baseline), len(found.only_candidate)) == left


def test_what_is_left_of_a_prompt_that_others_share_is_no_pair_by_itself():
    numbers, found = pairs(rows(1, 2, 3), rows(1, 2, 4))
    assert numbers == {(0, 0), (1, 1)}
    assert (list(found.ambiguous_baseline), list(found.ambiguous_candidate)) == ([2], [2])


def test_a_name_that_several_tasks_have_pairs_none_of_them():
    ours = side(of(1.0, content=1, prompt=1, name=5), of(1.0, content=2, prompt=2, name=5))
    theirs = side(of(1.0, content=3, prompt=3, name=5), of(1.0, content=4, prompt=4, name=5))
    found = paired(ours, theirs, BOTH)
    assert (len(found), len(found.ambiguous_baseline), len(found.ambiguous_candidate)) == (0, 2, 2)


def test_tasks_that_are_the_same_on_either_side_are_paired_in_their_order():
    twice, thrice = [of(1.0, content=1, prompt=5)] * 2, [of(1.0, content=2, prompt=5)] * 3
    found = paired(side(*twice), side(*thrice), BOTH)
    assert [*found] == [(0, 0), (1, 1)]
    assert (found.twins, list(found.only_candidate), len(found.ambiguous_candidate)) == (1, [2], 0)


def test_without_a_plan_tasks_of_one_prompt_are_not_told_apart():
    found = paired(side(of(1.0, prompt=5), of(0.0, prompt=5)), side(of(0.0, prompt=5), of(1.0, prompt=5)), BOTH)
    assert (len(found), len(found.ambiguous_baseline)) == (0, 2)


def test_fields_together_tell_apart_what_none_of_them_does():
    assert told_apart([([1, 1, 2], [2, 1, 1]), ([1, 2, 1], [1, 1, 2])]) == {0: 1, 1: 2, 2: 0}


def test_fields_beyond_the_most_are_not_kept():
    fields = TaskFields([3])
    for number in range(MOST_FIELDS + 5):
        fields.say(3, f"field {number}", 1)
    assert len([*fields.names]) == MOST_FIELDS
    assert list(fields.values("field 0", [3])) == [1]
    assert list(fields.values(f"field {MOST_FIELDS + 1}", [3])) == [0]
