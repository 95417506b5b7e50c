"""Tasks whose repeats are scored together (RC-89): sent whole, sent again whole, or not sent at all."""

import asyncio
import json
from collections import Counter

import pytest
from aiohttp import web

from cases.played import LOG, PLAN, RESULTS, Played, called
from rollbook.api.unsupported import LATER
from stub import adding, serving

WIRED = pytest.mark.skipif("group_scored" in LATER, reason="the option is refused")


class Jury:
    """A scorer that answers the repeats of a task once all of them are there; some of them it answers otherwise."""

    def __init__(self, size, otherwise=None):
        self.size, self.otherwise = size, otherwise or (lambda _row: None)
        self.waiting = {}

    async def __call__(self, row):
        waiting = self.waiting.setdefault(row["_ng_task_index"], [])
        mine = asyncio.get_running_loop().create_future()
        waiting.append(mine)
        if len(waiting) == self.size:
            for arrived in waiting:
                arrived.set_result(None)
            waiting.clear()
        await mine
        return self.otherwise(row)


@pytest.fixture
def stub():
    with serving(Jury(4)) as stub:
        yield stub


@pytest.fixture
def played(tmp_path, stub):
    """Three tasks of four repeats."""
    return Played(tmp_path, stub, adding(3))


def run(played, *flags, lanes=4):
    said = called(played.words("--group-scored", "--num-repeats", "4", "--concurrency", str(lanes), *flags))
    for name in (RESULTS, PLAN, LOG):
        played.rows(name)
    return said


def asked_by_task(played, since):
    return Counter(task for task, _ in played.asked(since))


@WIRED
def test_fewer_lanes_than_a_task_has_repeats_end_before_anything_is_sent(played):
    said = run(played, lanes=2)
    assert said.code == 1
    assert "task 0 has 4 rollouts" in said.text
    assert "--concurrency 4" in said.text
    assert not played.stub.requests
    assert played.rows(PLAN) == []


@WIRED
@pytest.mark.parametrize("lanes", [4, 6, 12])
def test_as_many_lanes_as_a_task_has_repeats_finish_the_run(played, lanes):
    assert run(played, lanes=lanes).code == 0
    assert asked_by_task(played, 0) == {0: 4, 1: 4, 2: 4}
    assert len(played.scored()) == 12


@WIRED
def test_repeats_that_are_scored_together_are_not_interleaved(played):
    said = run(played, "--interleave-repeats")
    assert said.code == 1
    assert "group_scored and interleave_repeats" in said.text
    assert not played.stub.requests


def killed_with(played, results):
    """Leave what a kill leaves once so many results were written."""
    lines = played.bytes_of(RESULTS).splitlines(keepends=True)
    played.as_if_killed(RESULTS, sum(map(len, lines[:results])))


@WIRED
@pytest.mark.parametrize(("kept", "again"), [(6, {1: 4, 2: 4}), (4, {1: 4, 2: 4}), (11, {2: 4}), (8, {2: 4})])
def test_after_a_kill_what_is_broken_is_sent_whole_and_what_is_whole_is_left_alone(played, kept, again):
    assert run(played).code == 0
    killed_with(played, kept)
    code, status = played.status()
    assert code == 3
    assert sum(status["owed_by"].values()) == sum(again.values())
    since = len(played.stub.requests)
    assert run(played, "--resume").code == 0
    assert asked_by_task(played, since) == again
    code, status = played.status()
    assert (code, status["outstanding"], status["law_holds"]) == (0, 0, True)


@WIRED
def test_a_resume_that_does_not_say_so_scores_together_all_the_same(played):
    assert run(played).code == 0
    killed_with(played, 10)
    since = len(played.stub.requests)
    assert called(played.words("--resume", "--num-repeats", "4", "--concurrency", "4")).code == 0
    assert asked_by_task(played, since) == {2: 4}


@WIRED
def test_a_repeat_that_fails_sends_its_whole_task_again_and_the_new_rewards_stand(played):
    failed = {"_ng_failure_class": "agent_run_error", "_ng_failure_message": "no"}
    played.stub.script = Jury(
        4,
        lambda row: web.json_response(failed) if (row["_ng_task_index"], row["_ng_rollout_index"]) == (1, 2) else None,
    )
    assert run(played).code == 3
    code, status = played.status()
    assert status["owed_by"] == {"retryable": 1, "of a task that runs again whole": 3}
    assert code == 3
    played.stub.script = Jury(4, lambda row: web.json_response(row | {"reward": 0.25}))
    since = len(played.stub.requests)
    assert run(played, "--resume").code == 0
    assert asked_by_task(played, since) == {1: 4}
    rewards = {(row["_ng_task_index"], row["_ng_attempt_index"]): row["reward"] for row in again(played)}
    assert rewards == {(1, 1): 0.25}
    assert json.loads(played.bytes_of("r_aggregate_metrics.json"))


def again(played):
    return [row for row in played.rows(RESULTS) if row.get("_ng_attempt_index")]
