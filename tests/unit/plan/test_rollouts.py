import msgspec
import pytest

from rollbook.errors import InputError
from rollbook.plan.rollouts import Destination, numbered, owed, rollout_of
from rollbook.records.disposition import Rules
from rollbook.records.identity import RolloutKey
from rollbook.records.outcome import Failed, Interrupted, Scored
from rollbook.records.record import Record
from rollbook.records.standing import Standings

ROW = {"x": 1, "agent_ref": {"name": "a", "type": "t"}, "_ng_task_index": 2, "_ng_rollout_index": 1, "task_source": "s"}


def find(agent, server):
    return Destination(server or f"{agent}_env", "legacy_agent", "policy_model")


def rollout(row=ROW):
    return rollout_of(msgspec.json.encode(row), find)


def test_a_line_is_sent_as_it_stands_and_stamps_are_read_from_it():
    read = rollout()
    assert msgspec.json.decode(read.line) == ROW
    assert (read.key, read.agent, read.server, read.is_episode) == (RolloutKey(2, 1), "a", "a_env", False)
    assert read.stamps == {
        "_ng_task_index": 2,
        "_ng_rollout_index": 1,
        "agent_ref": {"name": "a", "type": "t"},
        "task_source": "s",
        "_ng_environment_server": "a_env",
        "_ng_result_type": "legacy_agent",
        "ng_policy_model_server": "policy_model",
    }


def test_an_episode_task_carries_its_provenance():
    task = {"task_id": {"taskset": "t", "task_id": "1"}, "task_input": {"task_data": {"_ng_digest": "d", "other": 1}}}
    read = rollout({"_ng_task_index": 0, "_ng_rollout_index": 0, "_ng_environment_server": "env"} | task)
    assert read.is_episode
    assert read.server == "env"
    assert read.stamps["_ng_digest"] == "d"


def test_a_line_without_identity_is_refused():
    with pytest.raises(InputError, match="names no rollout"):
        rollout({"x": 1})


@pytest.mark.parametrize(
    ("outcomes", "is_owed"),
    [
        ([], True),
        ([Failed("agent_run_error")], True),
        ([Failed("agent_run_error"), Failed("judge_failed")], True),
        ([Failed("agent_run_error"), Interrupted("kill_shaped")], True),
        ([Failed("x"), Failed("x"), Failed("x")], False),
        ([Failed("x", terminal=True)], False),
        ([Failed("x"), Scored(0.0)], False),
    ],
)
def test_what_is_owed_is_what_a_resume_would_run(outcomes, is_owed):
    standings = Standings()
    for outcome in outcomes:
        standings.add(Record(RolloutKey(2, 1), 0, outcome))
    assert list(owed([rollout()], standings)) == [rollout()] * is_owed


def test_what_is_owed_is_asked_when_its_turn_comes_and_goes_out_in_plan_order():
    plan = [rollout(ROW | {"_ng_task_index": task}) for task in range(3)]
    standings = Standings()
    still_owed = owed(plan, standings)
    assert next(still_owed) == plan[0]
    standings.add(Record(plan[1].key, 0, Scored(1.0)))
    assert list(still_owed) == plan[2:]


@pytest.mark.parametrize("cap", [1, 2, 5])
def test_the_rules_of_the_run_say_how_many_failures_are_enough(cap):
    standings = Standings()
    for spent in range(cap):
        assert len(list(owed([rollout()], standings, Rules(cap)))) == 1, spent
        standings.add(Record(RolloutKey(2, 1), 0, Failed("agent_run_error")))
    assert list(owed([rollout()], standings, Rules(cap))) == []


def test_an_attempts_number_travels_in_its_row_and_on_its_records_and_changes_nothing_else():
    sent = numbered(rollout(), 2)
    assert sent.attempt == 2
    assert msgspec.json.decode(sent.line) == ROW | {"_ng_attempt_index": 2}
    assert sent.stamps == rollout().stamps | {"_ng_attempt_index": 2}
    assert numbered(sent, 3) == numbered(rollout(), 3)
