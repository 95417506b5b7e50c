"""Where rows go by the options of a run, and what is said of those that lead nowhere."""

import pytest

from rollbook.errors import InputError
from rollbook.inputs.examples import rows_of
from rollbook.plan.expand import Expansion
from rollbook.plan.options import PlanOptions, RoutingMode

A = {"responses_create_params": {"input": "a"}, "agent_ref": {"name": "A"}}
SEVERAL = {"sums": "turns", "words": "talks"}


def episode(taskset, **names):
    return {"task_id": {"taskset": taskset, "task_id": "1"}, "task_input": {}} | names


def expand(rows, **options):
    expansion = Expansion(PlanOptions(**options))
    return list(expansion.rows(rows_of(rows))), expansion


def servers(rows, **options):
    return [row.get("_ng_environment_server") for row in expand(rows, **options)[0]]


@pytest.mark.parametrize("mode", RoutingMode)
def test_an_episode_task_goes_by_its_route_in_every_mode(mode):
    rows = [episode("sums"), episode("words", _ng_environment_server="old")]
    options = {"routing": mode, "environment_server": "all", "environment_routes": SEVERAL}
    assert servers(rows, **options) == ["turns", "talks"]


LEGACY = {"routing": RoutingMode.LEGACY, "environment_server": "all"}
OWN, THEIRS = {"environment_routes": {"sums": "own"}}, {"deployment_routes": {"sums": "theirs"}}
STAMP = {"_ng_environment_server": "stamp"}


@pytest.mark.parametrize(
    ("options", "names", "server"),
    [
        (OWN | THEIRS, STAMP, "own"),
        (OWN | THEIRS | LEGACY, STAMP, "own"),
        (OWN | THEIRS | {"routing": RoutingMode.TASKSET}, STAMP, "own"),
        (OWN | THEIRS, {}, "own"),
        (THEIRS, STAMP, "stamp"),
        (THEIRS | {"environment_server": "all"}, STAMP, "stamp"),
        (THEIRS | {"routing": RoutingMode.TASKSET}, STAMP, "stamp"),
        (THEIRS | LEGACY, STAMP, "all"),
        (THEIRS | LEGACY, {}, "all"),
        (THEIRS | {"environment_routes": {"words": "own"}} | LEGACY, {}, "all"),
        (THEIRS, {}, "theirs"),
        (THEIRS | {"routing": RoutingMode.TASKSET}, {}, "theirs"),
    ],
)
def test_the_commands_routes_go_before_a_named_server_and_that_before_the_deployments(options, names, server):
    assert servers([episode("sums", **names)], **options) == [server]


def test_legacy_routing_sends_all_that_has_no_route_to_its_one_server():
    rows = [A, episode("sums"), A | {"_ng_environment_server": "old", "n": 1}, episode("lost")]
    options = {"routing": RoutingMode.LEGACY, "environment_server": "all", "environment_routes": SEVERAL}
    assert servers(rows, **options) == ["all", "turns", "all", "all"]


def test_tasksets_without_a_route_are_told_together_each_with_its_first_row():
    rows = [episode("a"), episode("sums"), episode("b:c"), episode("a", n=1)]
    with pytest.raises(InputError) as error:
        expand(rows, environment_routes=SEVERAL)
    told = "no environment server for taskset"
    assert str(error.value).splitlines() == [
        f"row 0: {told} 'a'; add ++environment_server_routes.a=<environment server>",
        rf"row 2: {told} 'b:c'; add '++environment_server_routes={{b\:c: <environment server>}}'",
    ]


def test_many_tasksets_without_a_route_are_counted():
    with pytest.raises(InputError, match=r"and 5 more tasksets$"):
        expand([episode(f"ts{number}") for number in range(25)])


def test_a_fan_out_of_a_name_that_no_row_has_is_told():
    _, expansion = expand([A], fan_out={"A": ("A", "B"), "typo": ("A", "B")})
    assert expansion.notes == ["fan_out lists typo, which no row uses: a typo?"]
    _, expansion = expand([A, A | {"n": 1}], fan_out={"typo": ("A", "B")}, part=(1, 2))
    assert expansion.notes == []


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"agent_map": {"A": ""}}, "agent_map.A is ''"),
        ({"agent_map": {"A": None}}, "agent_map.A is None"),
        ({"agent_map": {"A": {"name": "B"}}}, "agent_map.A is {'name': 'B'}"),
        ({"agent_map": ["A"]}, r"agent_map is \['A'\]"),
        ({"fan_out": ["A"]}, r"fan_out is \['A'\]"),
        ({"add_seed": "yes"}, "num_repeats_add_seed: yes"),
        ({"add_seed": {"A": True, "B": "false"}}, "B: false"),
        ({"add_seed": 1}, "num_repeats_add_seed: 1"),
    ],
)
def test_options_that_would_be_read_otherwise_than_meant_are_refused(options, said):
    with pytest.raises(InputError, match=said):
        PlanOptions(**options)


@pytest.mark.parametrize("add_seed", [None, {}])
def test_no_seeds_are_no_seeds(add_seed):
    rows, _ = expand([A], add_seed=add_seed)
    assert rows[0]["responses_create_params"] == A["responses_create_params"]


def test_of_tasks_with_one_id_all_are_chosen_and_each_once():
    rows = [A | {"problem_id": "1", "n": n} for n in (1, 2, 1)] + [episode("sums"), episode("words")]
    chosen, expansion = expand(rows, task_ids=frozenset({"1"}), environment_routes=SEVERAL)
    assert [(row["_ng_task_index"], row["_ng_rollout_index"]) for row in chosen] == [(0, 0), (1, 0), (2, 0), (3, 0)]
    assert expansion.tasks == 4


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({"metadata": "m"}, r"row 0: .*metadata` must be an object, found 'm'"),
        ({"metadata": {"extra_body": {"top_k": 1}}}, r"row 0: .*extra_body.*found \{'top_k': 1\}"),
        ({"metadata": {"extra_body": False}}, r"row 0: .*extra_body.*found False"),
    ],
)
def test_a_seed_never_takes_the_place_of_what_a_row_says(params, said):
    with pytest.raises(InputError, match=said):
        expand([A | {"responses_create_params": params}], add_seed=True)


@pytest.mark.parametrize("params", [{}, {"metadata": None}, {"metadata": {"extra_body": None}}])
def test_a_seed_is_all_there_is_where_a_row_says_nothing(params):
    (row,), _ = expand([A | {"responses_create_params": params}], add_seed=True)
    assert row["responses_create_params"] == {"metadata": {"extra_body": '{"seed": 0}'}}
