"""What planned rows show of a batch."""

import hashlib

import pytest

from rollbook.plan.batch_facts import observed_members
from rollbook.plan.repeats import seeded
from rollbook.records.task_content import content_digest


def row(task=0, rollout=0, agent="math", **given):
    return {
        "responses_create_params": {"input": f"question {task}"},
        "expected_answer": "4",
        "_ng_task_index": task,
        "_ng_rollout_index": rollout,
        "agent_ref": {"name": agent},
        **given,
    }


def plan(tasks=3, repeats=2, **given):
    return [row(task, rollout, **given) for task in range(tasks) for rollout in range(repeats)]


def seen(rows):
    (member,) = observed_members(rows)
    return member


def test_a_member_shows_its_tasks_and_the_shape_of_its_repeats():
    member = seen(plan(tasks=3, repeats=2))
    assert (member.agent, member.tasks, member.repeats) == ("math", 3, (2,))
    assert seen([*plan(tasks=3, repeats=2), row(task=3)]).repeats == (1, 2)


@pytest.mark.parametrize(
    "change",
    [
        {"agent_ref": {"name": "other"}},
        {"task_source": "math_with_judge"},
        {"_ng_environment_server": "env"},
        {"_ng_rollout_index": 7},
        {"_ng_attempt_index": 2},
        {"_ng_run_id": "5f1c"},
        {"skills_ref": {"hash": "ab"}},
        {"responses_create_params": {"metadata": {"extra_body": '{"seed": 3}'}, "input": "question 0"}},
    ],
)
def test_routing_repeats_seeds_attempts_and_skills_do_not_change_what_a_task_says(change):
    assert content_digest(row(**change)) == content_digest(row())


@pytest.mark.parametrize(
    "change",
    [
        {"expected_answer": "5"},
        {"responses_create_params": {"input": "question 1"}},
        {"responses_create_params": {"input": "question 0", "temperature": 0.5}},
        {"responses_create_params": {"input": "question 0", "metadata": {"extra_body": '{"top_k": 3}'}}},
        {"_ng_digest": "ab12"},
        {"difficulty": None},
    ],
)
def test_what_a_task_says_changes_its_digest(change):
    assert content_digest(row(**change)) != content_digest(row())


@pytest.mark.parametrize(
    "params", [None, {}, {"input": "x"}, {"metadata": {}}, {"metadata": {"extra_body": ""}}, {"metadata": {"a": "b"}}]
)
def test_a_seed_leaves_the_digest_as_it_was_whatever_it_was_put_into(params):
    plain = {"responses_create_params": params, "question": "2+2?"}
    assert content_digest(seeded(plain, 3)) == content_digest(plain)


def test_text_that_is_no_object_where_a_seed_would_be_is_content():
    broken = row(responses_create_params={"input": "question 0", "metadata": {"extra_body": "{"}})
    assert content_digest(broken) != content_digest(row())
    assert not seen([broken]).seeds_vary


def test_the_order_of_tasks_and_of_keys_does_not_change_the_fingerprint():
    rows = plan()
    mixed = [dict(reversed(row.items())) for row in (*rows[3:], *rows[2::-1])]
    assert seen(mixed) == seen(rows)


def test_a_fingerprint_is_the_digest_of_the_sorted_digests_of_its_tasks():
    digests = sorted(content_digest(row(task)) for task in range(20))
    assert seen(plan(tasks=20)).dataset_fingerprint == hashlib.sha256(b"".join(digests)).hexdigest()


def test_repeats_do_not_change_the_fingerprint_and_a_missing_task_does():
    assert seen(plan(repeats=5)).dataset_fingerprint == seen(plan(repeats=1)).dataset_fingerprint
    assert seen(plan(tasks=2)).dataset_fingerprint != seen(plan(tasks=3)).dataset_fingerprint


def test_two_tasks_that_say_the_same_are_two():
    twins = [row(task=0), row(task=1, responses_create_params={"input": "question 0"})]
    assert seen(twins).dataset_fingerprint != seen(twins[:1]).dataset_fingerprint


def test_seeds_that_are_the_rollouts_indexes_follow_the_repeats():
    member = seen([seeded(each, each["_ng_rollout_index"]) for each in plan()])
    assert member.seeds_follow_repeats
    assert member.seeds_vary


def test_a_tasks_own_seed_does_not_vary_and_does_not_follow():
    member = seen([seeded(each, 42 + each["_ng_task_index"]) for each in plan()])
    assert not member.seeds_follow_repeats
    assert not member.seeds_vary


def test_rows_without_seeds_neither_follow_nor_vary():
    assert (seen(plan()).seeds_follow_repeats, seen(plan()).seeds_vary) == (False, False)


def test_each_agent_is_a_member_and_one_task_may_be_of_several():
    rows = [*plan(agent="math"), *(dict(each, _ng_rollout_index=2) for each in plan(repeats=1, agent="code"))]
    code, math = observed_members(rows)
    assert (code.agent, code.repeats, math.agent, math.repeats) == ("code", (1,), "math", (2,))
    assert code.dataset_fingerprint == math.dataset_fingerprint


def test_rows_without_an_agent_are_known_by_their_server():
    rows = [{key: value for key, value in row(_ng_environment_server="env").items() if key != "agent_ref"}]
    assert seen(rows).agent == "env"
