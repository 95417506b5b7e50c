"""Preprocessing: vectors V1 to V3 of the collection contract, and the rules around them."""

import json

import pytest

from rollbook.errors import InputError
from rollbook.inputs.examples import rows_of
from rollbook.plan.expand import Expansion
from rollbook.plan.options import PlanOptions, RoutingMode

A = {"responses_create_params": {"input": "a"}, "agent_ref": {"name": "A", "type": "responses_api_agents"}}
B = {
    "responses_create_params": {"input": "b", "metadata": {"extra_body": '{"top_k":5}'}},
    "task_source": "rs",
}
EPISODE = {"task_id": {"taskset": "ts", "task_id": "t1"}, "task_input": {"q": 1}}


def expand(rows, **options):
    expansion = Expansion(PlanOptions(**options))
    return list(expansion.rows(rows_of(rows))), expansion


def who(row):
    return row["_ng_task_index"], row["_ng_rollout_index"], row.get("agent_ref", {}).get("name")


def seed_of(row):
    return json.loads(row["responses_create_params"]["metadata"]["extra_body"])


def test_v1_repeats_seeds_and_fan_out():
    rows, _ = expand([A, B, A], repeats={"A": 2, "rs": 1, "_default": 3}, add_seed=True, fan_out={"rs": ("X", "Y")})
    assert [who(row) for row in rows] == [(0, 0, "A"), (0, 1, "A"), (1, 0, "X"), (1, 1, "Y"), (0, 2, "A"), (0, 3, "A")]
    assert [seed_of(row)["seed"] for row in rows] == [0, 1, 0, 1, 2, 3]
    assert rows[0]["agent_ref"]["type"] == "responses_api_agents"
    assert rows[2]["agent_ref"] == {"name": "X"}
    assert seed_of(rows[2])["top_k"] == 5


def test_a_seed_is_written_as_other_collectors_write_it():
    row = A | {"responses_create_params": {"input": "1", "metadata": {"extra_body": '{"top_k":5}'}}}
    rows, _ = expand([row], add_seed=True)
    assert rows[0]["responses_create_params"]["metadata"]["extra_body"] == '{"top_k": 5, "seed": 0}'


def test_v2_agent_map_with_a_default():
    rows, expansion = expand([A, B, A], agent_map={"rs": "Z", "_default": "D"})
    assert [who(row) for row in rows] == [(0, 0, "D"), (1, 0, "Z"), (0, 1, "D")]
    assert all(row["agent_ref"].keys() == {"name"} for row in rows)
    assert any("A -> D" in note for note in expansion.notes)


def test_v3_a_materialized_row_needs_a_route():
    with pytest.raises(InputError, match="'ts'"):
        expand([EPISODE])
    rows, _ = expand([EPISODE], environment_routes={"ts": "env1"}, repeats=2)
    assert [row["_ng_environment_server"] for row in rows] == ["env1", "env1"]
    assert all("agent_ref" not in row for row in rows)


def test_input_rows_are_never_mutated():
    row = json.loads(json.dumps(B))
    expand([row], add_seed=True, overrides={"temperature": 1}, repeats=2)
    assert row == B


def test_overrides_merge_shallowly():
    rows, _ = expand([B], overrides={"temperature": 0.5, "metadata": {}})
    assert rows[0]["responses_create_params"] == {"input": "b", "metadata": {}, "temperature": 0.5}


@pytest.mark.parametrize(
    "options", [{"overrides": {"temperature": 1}}, {"skills_ref": {"path": "p"}}, {"add_seed": True}]
)
def test_an_episode_task_refuses_what_only_flat_rows_can_have(options):
    with pytest.raises(InputError, match="materialized"):
        expand([EPISODE], environment_routes={"ts": "env1"}, **options)


def test_seeds_by_name_leave_episode_tasks_without_them():
    rows, _ = expand([A, EPISODE], environment_routes={"ts": "env1"}, add_seed={"A": True, "_default": False})
    assert seed_of(rows[0]) == {"seed": 0}
    assert rows[1]["task_input"] == EPISODE["task_input"]
    with pytest.raises(InputError, match=r"row 0: num_repeats_add_seed.*materialized"):
        expand([EPISODE], environment_routes={"ts": "env1"}, add_seed={"ts": True})


def test_a_key_for_seeds_that_nobody_uses_is_reported_and_a_name_without_one_has_no_seed():
    rows, expansion = expand([A], add_seed={"typo": True})
    assert "metadata" not in rows[0]["responses_create_params"]
    assert any("num_repeats_add_seed lists typo" in note for note in expansion.notes)


def test_rows_that_name_nobody_are_listed_together():
    nobody = {"responses_create_params": {"input": "n"}}
    with pytest.raises(InputError, match="row 0, row 2"):
        expand([nobody, A, nobody | {"x": 1}])


def test_a_row_that_names_nobody_goes_to_the_only_agent():
    rows, _ = expand([{"responses_create_params": {"input": "n"}}], only_agent="solo")
    assert rows[0]["agent_ref"] == {"name": "solo"}


@pytest.mark.parametrize("only_agent", [None, "solo"])
def test_a_row_that_names_a_server_alone_goes_there(only_agent):
    row = {"responses_create_params": {"input": "n"}, "_ng_environment_server": "env"}
    rows, _ = expand([row], only_agent=only_agent, repeats={"env": 2})
    assert [who(row) for row in rows] == [(0, 0, None), (0, 1, None)]
    assert {row["_ng_environment_server"] for row in rows} == {"env"}


@pytest.mark.parametrize("options", [{"agent_map": {"_default": "D"}}, {"fan_out": {"A": ("X", "Y")}}])
@pytest.mark.parametrize("routing", [RoutingMode.AGENT, RoutingMode.LEGACY])
def test_a_row_that_is_routed_by_its_server_is_neither_mapped_nor_fanned_out(routing, options):
    rows, expansion = expand(
        [A | {"_ng_environment_server": "env"}], routing=routing, environment_server="env", **options
    )
    assert [(who(row), row["_ng_environment_server"]) for row in rows] == [((0, 0, "A"), "env")]
    assert rows[0]["agent_ref"] == A["agent_ref"]
    assert not any("replaced" in note for note in expansion.notes)


def test_an_episode_task_goes_by_its_task_set_in_every_mode_and_keeps_no_agent():
    for routing in RoutingMode:
        options = {"environment_routes": {"ts": "env1"}, "environment_server": "env2", "repeats": {"ts": 2}}
        rows, _ = expand([EPISODE], routing=routing, agent_map={"_default": "D"}, **options)
        assert [row["_ng_environment_server"] for row in rows] == ["env1", "env1"]
        assert all("agent_ref" not in row for row in rows)


def test_a_fan_out_goes_by_the_name_before_the_map_and_ignores_the_map():
    rows, expansion = expand([A, B], agent_map={"_default": "D"}, fan_out={"A": ("X", "Y"), "D": ("never",)})
    assert [who(row) for row in rows] == [(0, 0, "X"), (0, 1, "Y"), (1, 0, "D")]
    assert not any("replaced" in note for note in expansion.notes)


def test_repeats_are_found_by_the_dispatched_agent_first_then_by_the_rows_own_name():
    sizes = {"X": 2, "rs": 3, "_default": 1}
    rows, _ = expand([B, A], repeats=sizes, fan_out={"rs": ("X", "Y")})
    assert [row["agent_ref"]["name"] for row in rows] == ["X", "X", "Y", "Y", "Y", "A"]


def test_a_supplied_index_stays_with_its_row():
    rows, _ = expand([A | {"_ng_task_index": 7}, B | {"_ng_task_index": 3}], agent_map={"rs": "Z"})
    assert [row["_ng_task_index"] for row in rows] == [7, 3]


def test_an_overridden_block_keeps_what_the_override_does_not_name_and_skills_travel_along():
    skills = {"path": "skills", "hash": "abc"}
    rows, _ = expand([A], overrides={"temperature": 1}, skills_ref=skills, repeats=2)
    assert [row["responses_create_params"] for row in rows] == [{"input": "a", "temperature": 1}] * 2
    assert [row["skills_ref"] for row in rows] == [skills] * 2


def test_a_repeats_mapping_that_misses_a_name_lists_it():
    with pytest.raises(InputError, match="num_repeats has no entry for rs"):
        expand([B], repeats={"A": 2})


def test_a_repeats_key_that_nobody_uses_is_reported():
    _, expansion = expand([A], repeats={"A": 1, "typo": 2})
    assert any("typo" in note for note in expansion.notes)


def test_a_flat_row_is_refused_where_routing_goes_by_task_set():
    with pytest.raises(InputError, match="taskset"):
        expand([A], routing=RoutingMode.TASKSET)


def test_legacy_routing_stamps_every_flat_row():
    rows, _ = expand([A, B], routing=RoutingMode.LEGACY, environment_server="env")
    assert [row["_ng_environment_server"] for row in rows] == ["env", "env"]


def test_limit_counts_tasks_and_keeps_all_repeats_of_them():
    rows, expansion = expand([A, B, A], limit=1, agent_map={"rs": "Z"})
    assert [who(row) for row in rows] == [(0, 0, "A"), (0, 1, "A")]
    assert expansion.tasks == 1


def test_tasks_are_chosen_by_id_and_unknown_ids_are_named():
    rows = [A | {"task_id": "one"}, A | {"problem_id": "two"}]
    chosen, _ = expand(rows, task_ids=frozenset({"two"}))
    assert [row["problem_id"] for row in chosen] == ["two"]
    with pytest.raises(InputError, match="four, three"):
        expand(rows, task_ids=frozenset({"three", "two", "four"}))


def test_parts_of_the_tasks_are_together_the_whole_whatever_their_number():
    rows = [A, B, {**A, "n": 1}, A, {**B, "n": 2}, {**A, "n": 3}]
    whole, _ = expand(rows, repeats=2, agent_map={"rs": "Z"})
    for parts in (1, 2, 3, 7):
        found = [expand(rows, repeats=2, agent_map={"rs": "Z"}, part=(k + 1, parts)) for k in range(parts)]
        assert sorted((row for part, _ in found for row in part), key=who) == sorted(whole, key=who)
        assert sum(expansion.tasks for _, expansion in found) == 5


def test_a_limit_counts_the_tasks_of_the_whole_and_an_empty_part_is_told():
    rows = [{**A, "n": number} for number in range(6)]
    planned, expansion = expand(rows, limit=4, part=(2, 3))
    assert [who(row)[0] for row in planned] == [1]
    assert (expansion.tasks, expansion.notes) == (1, [])
    _, expansion = expand(rows, part=(7, 8))
    assert "no task is in this part: there are 6" in expansion.notes


def test_a_chosen_task_is_taken_once_before_it_is_repeated_and_before_the_limit():
    one = A | {"instance_id": 1}
    rows, expansion = expand([A, one, one, EPISODE], task_ids=frozenset({"1", "t1"}), repeats=2, limit=1)
    assert [who(row) for row in rows] == [(0, 0, "A"), (0, 1, "A")]
    assert expansion.tasks == 1


def test_a_seed_needs_a_json_object_in_extra_body():
    row = {"responses_create_params": {"input": "a", "metadata": {"extra_body": "[1]"}}, "agent_ref": {"name": "A"}}
    with pytest.raises(InputError, match="extra_body"):
        expand([row], add_seed=True)


def named(name, text="a"):
    return A | {"_ng_rollout_id": name, "q": text}


@pytest.mark.parametrize(
    ("rows", "options", "said"),
    [
        ([named("x")], {"repeats": 2}, r"'x' at row 0 \(2 rollouts\).*one repeat"),
        ([named("x")], {"fan_out": {"A": ("X", "Y")}}, r"'x' at row 0 \(2 rollouts\).*one agent"),
        ([named("x"), A, named("x", "b")], {}, "'x' at row 0, row 2"),
        ([named("x"), named("x")], {}, "'x' at row 0, row 1"),
        ([A, named("0-0")], {}, "'0-0' at row 1 and of the rollout 0-0"),
        ([named(str(n // 2), str(n)) for n in range(4)], {}, "'0' at row 0, row 1; '1' at row 2, row 3"),
    ],
)
def test_an_explicit_id_that_would_name_several_rollouts_is_refused(rows, options, said):
    with pytest.raises(InputError, match=said):
        expand(rows, **options)


def test_explicit_ids_that_name_one_rollout_each_travel_along():
    rows, _ = expand([named("x"), named("1-0", "b"), named("0-0", "c"), A, named("3-1", "d"), named(None)])
    assert [row.get("_ng_rollout_id") for row in rows] == ["x", "1-0", "0-0", None, "3-1", None]


def test_an_id_beyond_the_limit_is_nobodys():
    rows, _ = expand([named("x"), named("x", "b")], limit=1)
    assert len(rows) == 1


def test_the_task_with_most_rollouts_is_known_whatever_makes_them_many():
    assert Expansion(PlanOptions()).largest_task is None
    _, expansion = expand([A, B, A], repeats=2, agent_map={"rs": "Z"})
    assert expansion.largest_task == (0, 4)


def test_rows_of_one_supplied_index_are_one_task_whatever_else_they_say():
    rows = [A | {"_ng_task_index": index, "_ng_rollout_index": n} for index in (4, 9) for n in range(2)]
    planned, expansion = expand(rows, limit=1, repeats=2)
    assert [who(row) for row in planned] == [(4, 0, "A"), (4, 1, "A"), (4, 2, "A"), (4, 3, "A")]
    assert (expansion.tasks, expansion.notes) == (1, [])
