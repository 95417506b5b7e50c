"""Rollouts in blocks: the same ones in the same order as one by one."""

import heapq
from operator import itemgetter

import pytest

from rollbook.scoring.profile import Kind
from rollbook.verbs.profile_blocks import Block, merged
from rollbook.verbs.profile_run import run_at
from unit.verbs.profiled import planned, row, write_run


def shard(folder, tasks, odd=None):
    """Three rollouts a task; of the one that is odd the second is another agent's, masked, or has no result."""
    plan = [planned(task, rollout) for task in tasks for rollout in range(3)]
    results = [row(task, rollout, float(task + rollout)) for task in tasks for rollout in range(3)]
    at = 4
    if odd == "masked":
        results[at]["mask_sample"] = True
    elif odd == "unscored":
        del results[at]["reward"]
    elif odd == "other agent":
        results[at]["agent_ref"] = {"name": "b"}
    elif odd == "missing":
        del results[at]
    return run_at(write_run(folder / "rollouts.jsonl", plan, results))


def told(part):
    if not isinstance(part, Block):
        return [(seen.task, seen.pair, seen.kind, str(seen.reward), seen.row) for seen in part]
    columns = zip(part.tasks, part.rewards, part.rows, strict=True)
    return [(task, part.pair, Kind.SCORED, str(reward), row) for task, reward, row in columns]


@pytest.mark.parametrize("odd", [None, "masked", "unscored", "other agent", "missing"])
@pytest.mark.parametrize("tasks", [((0, 1, 2), (3, 4, 5)), ((3, 4, 5), (0, 1, 2)), ((0, 2, 4), (1, 3, 5))])
def test_blocks_hold_what_is_told_one_by_one_in_the_same_order(tmp_path, tasks, odd):
    runs = [shard(tmp_path / "first", tasks[0], odd), shard(tmp_path / "second", tasks[1])]
    one_by_one = told(heapq.merge(*(run.rollouts() for run in runs), key=itemgetter(0)))

    for at_once in (1, 2, 4, 100):
        assert [one for part in merged(runs, at_once) for one in told(part)] == one_by_one


def test_rollouts_that_are_all_scored_come_as_one_block(tmp_path):
    (block,) = merged([shard(tmp_path, (0, 1))])

    assert isinstance(block, Block)
    assert block.tasks == [0, 0, 0, 1, 1, 1]
