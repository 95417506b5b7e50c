"""Each side's collector against each side's servers."""

import pytest
import yaml

from interop.rows import companion, json_lines, plan_keys, rewards, unlike_metrics

FOUR = [(collector, servers) for collector in ("ours", "theirs") for servers in ("ours", "theirs")]
CROSSED = [("ours", "theirs"), ("theirs", "ours")]


@pytest.fixture(scope="session")
def runs(field, tmp_path_factory):
    """Return a function that gives the output of one of the four runs, each made once."""
    made = {}

    def _run(collector, servers):
        if (collector, servers) not in made:
            output = tmp_path_factory.mktemp(f"{collector}-on-{servers}") / "rollouts.jsonl"
            said = field.sides[collector].run(*field.collect(collector, servers, output))
            assert said.code == 0, said.text[-3000:]
            made[collector, servers] = output
        return made[collector, servers]

    return _run


@pytest.mark.parametrize(("collector", "servers"), FOUR)
def test_every_rollout_is_collected_once(field, runs, collector, servers):
    output = runs(collector, servers)
    planned = plan_keys(output)
    assert len(planned) == field.planned
    assert rewards(output).keys() == planned.keys()
    assert json_lines(companion(output, "_failures.jsonl")) == []


@pytest.mark.parametrize(("collector", "servers"), FOUR)
def test_rewards_are_those_of_our_own_collector_on_our_own_servers(runs, collector, servers):
    told = rewards(runs(collector, servers))
    assert 0 < sum(told.values()) < len(told)
    assert told == rewards(runs("ours", "ours"))


@pytest.mark.parametrize(("collector", "servers"), FOUR)
def test_plans_are_equal_byte_for_byte(runs, collector, servers):
    plans = [companion(runs(*who), "_materialized_inputs.jsonl") for who in ((collector, servers), ("ours", "ours"))]
    assert plans[0].read_bytes() == plans[1].read_bytes()


@pytest.mark.parametrize(("collector", "servers"), FOUR)
def test_metrics_are_those_of_our_own_collector_on_our_own_servers(runs, collector, servers):
    assert unlike_metrics(runs(collector, servers), runs("ours", "ours")) == []


@pytest.mark.parametrize(("asking", "asked"), CROSSED)
def test_a_deployment_is_found_well_from_the_other_side(field, asking, asked):
    said = field.sides[asking].run("env", "status", "--json", *field.heads[asked].overrides)
    assert said.code == 0, said.text[-3000:]
    assert {server["status"] for server in said.json} == {"success"}
    assert len(said.json) == 10


def test_both_heads_answer_the_same_routes_with_the_same_shapes(field):
    ours, theirs = field.heads["ours"], field.heads["theirs"]
    for path in ("/", "/livez", "/readyz", "/healthz", "/health"):
        assert ours.get(path) == theirs.get(path) == {"status": "ok"}
    near, far = ours.get("/server_instances"), theirs.get("/server_instances")
    assert [set(record) for record in near] == [set(far[0])] * len(near)
    assert _names(near) == _names(far)


def test_both_heads_tell_the_same_servers_in_one_json_string_of_yaml(field):
    near, far = (yaml.safe_load(field.heads[side].get("/global_config_dict_yaml")) for side in ("ours", "theirs"))
    kinds = ("resources_servers", "responses_api_agents", "responses_api_models", "environment_servers")
    assert _servers(near, kinds) == _servers(far, kinds)


def _names(records):
    return sorted((record["process_name"], record["server_type"], record["name"]) for record in records)


def _servers(config, kinds):
    return {name: list(block[kind]) for name, block in config.items() for kind in kinds if _holds(block, kind)}


def _holds(block, kind):
    return isinstance(block, dict) and kind in block
