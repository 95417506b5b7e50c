"""The tasks to look at first, of many."""

import random

import pytest

from rollbook.records.coverage import Coverage
from rollbook.scoring.worst_tasks import MOST, WorstTasks


def covered(kinds):
    return Coverage(planned=len(kinds))


TASKS = [(None if task % 7 == 0 else task % 50 / 50, task) for task in range(10 * MOST)]


def worst(tasks):
    fold = WorstTasks()
    for mean, task in tasks:
        fold.add("a", task, mean, mean is not None, [0 if mean is not None else 1])
    return [(score.mean, score.task) for score in fold.scores(covered)]


def by_chance(tasks):
    return random.Random(4).sample(tasks, len(tasks))  # noqa: S311  no secret


@pytest.mark.parametrize("order", [list, reversed, by_chance])
def test_of_many_tasks_the_worst_are_kept_in_whatever_order_they_come(order):
    by_badness = sorted(TASKS, key=lambda task: (task[0] is not None, task[0] or 0.0, task[1]))
    assert worst(order(by_badness)) == by_badness[:MOST]


def test_where_more_tasks_than_are_kept_do_best_none_of_them_is_told():
    assert worst([(1.0, task) for task in range(3 * MOST)]) == []
    assert worst([*((1.0, task) for task in range(3 * MOST)), (0.5, 7)]) == [(0.5, 7)]
