"""The owed rollouts of a session in the order in which they are sent."""

import json
from types import SimpleNamespace

import pytest

from rollbook.api.ordered_plan import OrderedPlan
from rollbook.api.session import PlanLines
from rollbook.ledger.paths import RunPaths
from rollbook.plan.rollouts import Destination
from rollbook.records.disposition import Rules
from rollbook.records.identity import RolloutKey
from rollbook.records.outcome import Scored
from rollbook.records.record import Record
from rollbook.records.standing import Standings


class Plan:
    """A plan on disk of (task, rollout, agent, stamped server), and a fold that knows it."""

    def __init__(self, folder, rows, *, longest_first=False, rules=None):
        self.paths, self.standings, self.rules = RunPaths(folder / "r.jsonl"), Standings(), rules or Rules()
        self.plan = SimpleNamespace(bytes=0)
        self.manifest = self.run = self.directory = self.request = self
        self.settings = SimpleNamespace(dispatch_longest_first=longest_first)
        lines = [self._line(*row) for row in rows]
        self.paths.materialized_inputs.write_bytes(b"\xef\xbb\xbf" + b"".join(lines))
        self.plan.bytes = self.paths.materialized_inputs.stat().st_size

    def _line(self, task, rollout, agent, server=None):
        self.standings.plan(RolloutKey(task, rollout), agent, server)
        row = {"_ng_task_index": task, "_ng_rollout_index": rollout, "agent_ref": {"name": agent}, "x": "é" * task}
        row |= {"_ng_environment_server": server} if server else {}
        return json.dumps(row, ensure_ascii=False).encode() + b"\n"

    def find(self, agent, server):
        return Destination(server or f"{agent}_server")

    def scored(self, task, rollout):
        self.standings.add(Record(RolloutKey(task, rollout), 0, Scored(1.0), None))
        return self

    def failed(self, *rows):
        self.paths.failures.write_bytes(
            b"".join(
                json.dumps({"_ng_task_index": t, "_ng_rollout_index": r, "elapsed_seconds": s}).encode() + b"\n"
                for t, r, s in rows
            )
        )
        return self

    def sent(self):
        return [str(rollout.key) for rollout in OrderedPlan(self) if rollout is not None]


def one_agent(count):
    return [(task, 0, "a") for task in range(count)]


def test_a_plan_of_one_agent_is_read_as_it_lies(tmp_path):
    plan = Plan(tmp_path, one_agent(3))
    assert list(OrderedPlan(plan)) == list(PlanLines(plan))


def test_agents_take_turns_and_rows_are_unchanged(tmp_path):
    plan = Plan(tmp_path, [(0, 0, "a"), (0, 1, "a"), (1, 0, "a"), (2, 0, "b"), (3, 0, "b")])
    assert plan.sent() == ["0-0", "2-0", "0-1", "3-0", "1-0"]
    by_key = {rollout.key: rollout for rollout in PlanLines(plan) if rollout is not None}
    assert all(by_key[rollout.key] == rollout for rollout in OrderedPlan(plan) if rollout is not None)


def test_a_stamped_server_takes_the_turn_and_not_its_agents(tmp_path):
    plan = Plan(tmp_path, [(0, 0, "a", "s"), (1, 0, "b", "s"), (2, 0, "a", "t"), (3, 0, "a"), (4, 0, "a")])
    assert plan.sent() == ["0-0", "2-0", "3-0", "1-0", "4-0"]


def test_what_is_settled_takes_no_turn(tmp_path):
    plan = Plan(tmp_path, [(0, 0, "a"), (1, 0, "b"), (2, 0, "a"), (3, 0, "b")])
    assert plan.scored(0, 0).sent() == ["1-0", "2-0", "3-0"]


def test_what_failed_after_the_longest_time_goes_first_where_that_is_asked_for(tmp_path):
    rows = (1, 0, 2.0), (2, 0, 5.0), (1, 0, 6.0)
    assert Plan(tmp_path, one_agent(4), longest_first=True).failed(*rows).sent() == ["1-0", "2-0", "0-0", "3-0"]
    assert Plan(tmp_path, one_agent(4)).failed(*rows).sent() == ["0-0", "1-0", "2-0", "3-0"]


def test_tasks_that_are_scored_together_stay_together_across_turns(tmp_path):
    rows = [(0, 0, "a"), (1, 0, "b"), (0, 1, "a"), (1, 1, "b"), (2, 0, "a"), (2, 1, "a")]
    plan = Plan(tmp_path, rows, rules=Rules(group_scored=True))
    assert plan.scored(1, 0).sent() == ["0-0", "0-1", "1-0", "1-1", "2-0", "2-1"]


def test_each_pass_orders_anew_and_what_was_settled_meanwhile_is_left_out(tmp_path):
    plan = Plan(tmp_path, [(0, 0, "a"), (1, 0, "b"), (2, 0, "a")])
    ordered = OrderedPlan(plan)
    going = (rollout for rollout in ordered if rollout is not None)
    assert str(next(going).key) == "0-0"
    plan.scored(1, 0)
    assert [str(rollout.key) for rollout in going] == ["2-0"]
    assert [str(rollout.key) for rollout in ordered if rollout is not None] == ["0-0", "2-0"]


@pytest.mark.parametrize("rules", [Rules(), Rules(group_scored=True)])
def test_a_long_plan_is_ordered_in_pauses(tmp_path, rules):
    plan = Plan(tmp_path, [(task, 0, "ab"[task % 2]) for task in range(2500)], rules=rules)
    until_first = []
    for rollout in OrderedPlan(plan):
        if rollout is not None:
            break
        until_first.append(rollout)
    assert len(until_first) >= 2
