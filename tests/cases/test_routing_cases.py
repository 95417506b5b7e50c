"""Where a run's rows go, by what the command says and by what the deployment's own configuration says."""

from pathlib import Path

import pytest
from aiohttp import web
from omegaconf import OmegaConf

from cases.played import called, strict
from rollbook.api.direct_rows import direct_rows
from rollbook.api.rollout_collection import RolloutCollectionHelper
from rollbook.plan.directory import Directory
from stub import AGENT, ENVIRONMENT, Stub, lines, serving

EPISODES = [
    {"task_id": {"taskset": "sums", "task_id": str(n)}, "task_input": {"n": n}} | more
    for n, more in enumerate([{}, {"agent_ref": {"name": AGENT}}])
]


def answer(request):
    """Answer an episode; fail task 0 at its first attempt."""
    episode = request["episode_id"]
    if request["task"]["task_id"]["task_id"] == "0" and episode == {"rollout_id": "0-0", "attempt": 0}:
        return web.Response(status=500, text="no")
    named = {"episode_id": episode, "task_id": request["task"]["task_id"]}
    return web.json_response(named | {"result": {"reward": 1.0}, "failure": None})


@pytest.fixture
def stub(monkeypatch):
    """A deployment of two environment servers that routes one taskset."""
    plain = Stub.config

    def config(self):
        whole = plain(self)
        return whole | {"second": whole[ENVIRONMENT], "environment_server_routes": {"sums": "second"}}

    monkeypatch.setattr(Stub, "config", config)
    with serving(answer) as running:
        yield running


def run(folder: Path, stub: Stub, *words: str, rows=EPISODES):
    source, output = folder / "in.jsonl", folder / "out" / "r.jsonl"
    source.write_bytes(lines(rows))
    said = called(
        ["eval", "run", "--no-serve", "--retry-for", "0", "-i", str(source), "-o", str(output), *words, *stub.overrides]
    )
    return said, output


def servers(output: Path) -> list[str]:
    return [strict(line)["_ng_environment_server"] for line in output.read_bytes().splitlines()]


def asked(stub: Stub) -> list[tuple[str, int]]:
    return [(one["episode_id"]["rollout_id"], one["episode_id"]["attempt"]) for one in stub.requests]


def test_a_run_goes_by_the_routes_of_the_deployment_as_a_direct_call_does(tmp_path, stub):
    said, output = run(tmp_path, stub)
    assert (said.code, servers(output)) == (3, ["second"]), said.text
    rows = [row | {"_ng_rollout_id": str(number)} for number, row in enumerate(EPISODES)]
    direct = direct_rows(rows, Directory(OmegaConf.create(stub.config())))
    assert [row.rollout.server for row in direct] == ["second", "second"]


def test_a_route_of_the_command_goes_before_that_of_the_deployment(tmp_path, stub):
    _, output = run(tmp_path, stub, f"++environment_server_routes.sums={ENVIRONMENT}")
    assert servers(output) == [ENVIRONMENT]


LEGACY = ["+environment_routing_mode=legacy", f"+environment_server_name={ENVIRONMENT}"]
STAMPED = [row | {"_ng_environment_server": ENVIRONMENT} for row in EPISODES]


@pytest.mark.parametrize(
    ("rows", "words", "server"),
    [
        (EPISODES, LEGACY, ENVIRONMENT),
        (STAMPED, [], ENVIRONMENT),
        (EPISODES, [*LEGACY, "++environment_server_routes.sums=second"], "second"),
        (STAMPED, ["++environment_server_routes.sums=second"], "second"),
    ],
)
def test_a_named_server_goes_before_the_deployments_route_and_after_the_commands(tmp_path, stub, rows, words, server):
    said, output = run(tmp_path, stub, *words, rows=rows)
    assert (said.code, servers(output)) == (3, [server]), said.text
    said, _ = run(tmp_path, stub, "--resume", "+num_repeats=2", *words, rows=rows)
    assert (said.code, servers(output)) == (0, [server] * 4), said.text


def test_a_server_that_no_mode_sends_rows_to_is_told_of_by_a_run_and_its_resume(tmp_path, stub):
    name = f"+environment_server_name={ENVIRONMENT}"
    for words, code in (([], 3), (["--resume"], 0)):
        said, output = run(tmp_path, stub, name, *words)
        assert said.code == code, said.text
        assert f"environment_server_name={ENVIRONMENT} has no effect" in said.text.replace("\n", " ")
    assert servers(output) == ["second", "second"]


@pytest.mark.parametrize("words", [[], ["++environment_server_routes.sums=second"]])
def test_a_resume_sends_the_same_rollout_to_the_same_server_whoever_names_the_route(tmp_path, stub, words):
    assert run(tmp_path, stub)[0].code == 3
    said, output = run(tmp_path, stub, "--resume", *words)
    assert (said.code, servers(output)) == (0, ["second", "second"]), said.text
    assert sorted(asked(stub)) == [("0-0", 0), ("0-0", 1), ("1-0", 0)]


def test_a_run_of_some_tasks_is_the_run_that_preprocessing_plans_of_them(tmp_path, stub):
    rows = [*EPISODES, EPISODES[1] | {"task_id": {"taskset": "words", "task_id": "1"}}]
    words = ["+task_ids=[1]", "--num-repeats", "2", "++environment_server_routes.words=second"]
    said, output = run(tmp_path, stub, *words, rows=rows)
    assert said.code == 0, said.text
    assert [one["task"]["task_id"]["taskset"] for one in stub.requests] == ["sums", "sums", "words", "words"]
    plan = output.with_name("r_materialized_inputs.jsonl").read_bytes().splitlines()
    helper = RolloutCollectionHelper()
    routes = {"environment_server_routes": {"words": "second"}}
    config = OmegaConf.merge(OmegaConf.create(stub.config()), routes)
    assert [strict(line) for line in plan] == helper.preprocess_examples(
        rows, num_repeats=2, task_ids=[1], global_config_dict=config
    )
    said, _ = run(tmp_path, stub, "--resume", "+task_ids=[0]", *words[1:], rows=rows)
    assert (said.code, len(stub.requests)) == (1, 4)
    assert "the resume is refused" in said.text


def test_a_task_that_is_not_there_is_told_before_anything_is_sent(tmp_path, stub):
    said, output = run(tmp_path, stub, "+task_ids=[1,gone]")
    assert (said.code, output.exists(), stub.requests) == (1, False, [])
    assert "no task has these ids: gone" in said.text


def test_a_plan_given_as_rows_is_the_same_plan_byte_for_byte(tmp_path, stub):
    flat = {"responses_create_params": {"input": "a"}, "agent_ref": {"name": AGENT}, "task_id": "x"}
    rows = [EPISODES[0], flat | {"_ng_environment_server": ENVIRONMENT}]
    words = ["--num-repeats", "2", "--interleave-repeats", "+num_repeats_add_seed={_default: false, adder: true}"]
    stub.script = lambda row: answer(row) if "episode_id" in row else None
    first, output = run(tmp_path, stub, *words, rows=rows)
    assert first.code == 3, first.text
    plan = output.with_name("r_materialized_inputs.jsonl").read_bytes()
    (tmp_path / "again").mkdir()
    said, again = run(tmp_path / "again", stub, rows=[strict(line) for line in plan.splitlines()])
    assert "2 tasks, 4 rollouts planned" in said.text
    assert again.with_name("r_materialized_inputs.jsonl").read_bytes() == plan
