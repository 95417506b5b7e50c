"""In which order lines are sent: turns, longest first, tasks in one piece, and each step stable."""

import pytest

from rollbook.plan.order import Order, Spot, in_turn


def sent(lines, **options):
    """Return the names of (name, task, group, seconds) lines as they are sent; a name stands in for an offset."""
    order, names = Order(**options), []
    for name, task, group, seconds in lines:
        order.add(Spot(len(names), len(name), task, group, seconds))
        names.append(name)
    places = [place for place in order if place is not None]
    assert all(length == len(names[offset]) for offset, length in places)
    return [names[offset] for offset, _ in places]


def lines(text):
    """Read `name:group:seconds`, tasks by the name's letter."""
    parts = (word.split(":") for word in text.split())
    return [(name, ord(name[0]), int(group), float(seconds)) for name, group, seconds in parts]


def test_one_group_without_durations_keeps_the_order_of_the_file():
    assert sent(lines("a0:0:0 a1:0:0 b0:0:0")) == ["a0", "a1", "b0"]


def test_groups_take_turns_by_first_appearance_and_one_that_is_through_takes_none():
    given = lines("a0:5:0 a1:5:0 a2:5:0 b0:2:0 c0:7:0 c1:7:0")
    assert sent(given) == ["a0", "b0", "c0", "a1", "c1", "a2"]


def test_lines_with_a_duration_go_first_the_longest_first_and_equal_ones_as_they_came():
    given = lines("a0:0:0 a1:0:2 b0:0:9 b1:0:2 c0:0:0")
    assert sent(given) == ["b0", "a1", "b1", "a0", "c0"]


def test_turns_are_taken_after_the_longest_were_put_first():
    given = lines("a0:1:0 a1:1:3 b0:2:0 b1:2:8")
    assert sent(given) == ["b1", "a1", "b0", "a0"]


def test_a_task_in_one_piece_takes_its_first_lines_place_however_its_repeats_lie():
    given = lines("a0:0:0 b0:0:0 a1:0:0 b1:0:0 a2:0:0")
    assert sent(given, whole_tasks=True) == ["a0", "a1", "a2", "b0", "b1"]


def test_a_task_in_one_piece_takes_one_turn_and_counts_as_its_longest_line_does():
    given = lines("a0:1:0 a1:1:0 b0:1:1 b1:1:4 c0:2:0 c1:2:3")
    assert sent(given, whole_tasks=True) == ["b0", "b1", "c0", "c1", "a0", "a1"]


@pytest.mark.parametrize("whole_tasks", [False, True])
def test_every_line_is_sent_once(whole_tasks):
    given = [(f"l{n}", n % 7, n % 3, float(n % 5)) for n in range(200)]
    assert sorted(sent(given, whole_tasks=whole_tasks)) == sorted(name for name, *_ in given)
    assert sent([], whole_tasks=whole_tasks) == []


def test_queues_are_read_no_further_than_their_turn():
    read = []

    def queue(name):
        for number in range(2):
            read.append(f"{name}{number}")
            yield f"{name}{number}"

    turns = in_turn([queue("a"), queue("b")])
    assert [next(turns), next(turns), next(turns)] == ["a0", "b0", "a1"]
    assert read == ["a0", "b0", "a1"]
