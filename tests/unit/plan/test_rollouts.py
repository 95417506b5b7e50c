import msgspec
import pytest

from rollbook.errors import InputError
from rollbook.plan.rollouts import Destination, owed, rollout_of
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
    ("outcomes", "attempt"),
    [
        ([], 0),
        ([Failed("agent_run_error")], 1),
        ([Failed("agent_run_error"), Failed("judge_failed")], 2),
        ([Failed("agent_run_error"), Interrupted("kill_shaped")], 1),
        ([Failed("x"), Failed("x"), Failed("x")], None),
        ([Failed("x", terminal=True)], None),
        ([Failed("x"), Scored(0.0)], None),
    ],
)
def test_what_is_owed_and_under_which_number(outcomes, attempt):
    standings = Standings()
    for outcome in outcomes:
        standings.add(Record(RolloutKey(2, 1), 0, outcome))
    found = list(owed([rollout()], standings))
    assert [one.attempt for one in found] == ([] if attempt is None else [attempt])
    for one in found:
        assert msgspec.json.decode(one.line).get("_ng_attempt_index") == (attempt or None)
        assert one.stamps.get("_ng_attempt_index") == (attempt or None)
