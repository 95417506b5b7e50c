import json

import pytest
from aiohttp import web
from omegaconf import OmegaConf

from rollbook.api.evaluation import evaluate
from rollbook.api.request import EvaluationRequest, ServeMode, deployment_for
from rollbook.api.rollout_collection import RolloutCollectionHelper
from rollbook.api.unsupported import LATER, TIMED, WITHOUT_EFFECT, refuse_unsupported, without_effect
from rollbook.config import parser
from rollbook.config.collection import RolloutCollectionConfig
from rollbook.errors import (
    ConfigError,
    DamagedRunError,
    IncompleteEvaluationError,
    InputError,
    NothingProducedError,
    UnroutedRunError,
)
from rollbook.records.event import AttemptEnded, RunPlanned
from stub import AGENT, adding, lines, serving


@pytest.fixture
def collect(tmp_path):
    async def collect(stub, count=3, **settings):
        (tmp_path / "in.jsonl").write_bytes(lines(adding(count)))
        config = RolloutCollectionConfig(
            input_jsonl_fpath=str(tmp_path / "in.jsonl"),
            output_jsonl_fpath=str(tmp_path / "out" / "r.jsonl"),
            **{"retry_for_s": 0} | settings,
        )
        parser.set_global_config_dict(OmegaConf.create(stub.config()))
        try:
            return await RolloutCollectionHelper().run_from_config(config)
        finally:
            parser.forget_global_config_dict()

    return collect


def failing(status):

    return lambda row: web.Response(status=status) if "add 1 " in row["responses_create_params"]["input"] else None


def rows_in(path):
    return [json.loads(line) for line in path.read_bytes().splitlines()]


async def test_results_come_back_in_task_order_with_their_stamps(collect, tmp_path):
    with serving() as stub:
        results = await collect(stub, num_repeats=2)
    assert [(row["_ng_task_index"], row["_ng_rollout_index"]) for row in results] == [
        (task, repeat) for task in range(3) for repeat in range(2)
    ]
    assert {row["_ng_environment_server"] for row in results} == {f"{AGENT}_environment_server"}
    assert {row["_ng_result_type"] for row in results} == {"legacy_agent"}
    metrics = json.loads((tmp_path / "out" / "r_aggregate_metrics.json").read_text())
    assert metrics[0]["agent_ref"] == {"name": AGENT}
    assert metrics[0]["key_metrics"] == {"mean/reward": 1.0}
    assert len(rows_in(tmp_path / "out" / "r_materialized_inputs.jsonl")) == 6


async def test_without_routing_a_failed_run_ends_the_collection_with_evidence_on_disk(collect, tmp_path):
    with serving(failing(500)) as stub, pytest.raises(UnroutedRunError, match="500"):
        await collect(stub, num_samples_in_parallel=1)
    saved = rows_in(tmp_path / "out" / "r_failures.jsonl")
    assert saved[-1]["_ng_unrouted_run_error"] is True


async def test_with_routing_a_failed_run_is_a_row_and_the_rest_is_scored(collect, tmp_path):
    with serving(failing(503)) as stub:
        results = await collect(stub, route_failures_to_sidecar=True)
    assert [row["_ng_task_index"] for row in results] == [0, 2]
    (failed,) = rows_in(tmp_path / "out" / "r_failures.jsonl")
    assert (failed["_ng_failure_class"], failed["_ng_failure_http_status"]) == ("agent_request_failed", 503)
    assert "reward" not in failed


async def test_a_resumed_run_sends_only_what_has_no_result(collect):
    with serving(failing(500)) as stub:
        await collect(stub, route_failures_to_sidecar=True)
        stub.script, before = (lambda _row: None), len(stub.requests)
        results = await collect(stub, resume_from_cache=True)
        again = stub.requests[before:]
    assert [row["_ng_task_index"] for row in again] == [1]
    assert again[0]["_ng_attempt_index"] == 1
    assert [row["_ng_task_index"] for row in results] == [0, 1, 2]


async def test_a_strict_run_that_is_not_complete_publishes_no_metrics(collect, tmp_path):
    with serving(failing(500)) as stub, pytest.raises(IncompleteEvaluationError, match="2/3"):
        await collect(stub, route_failures_to_sidecar=True, require_complete=True)
    assert not (tmp_path / "out" / "r_aggregate_metrics.json").exists()


async def test_a_run_without_any_result_says_why(collect):
    said = r"None of the 3 .*agent_run_error.*r_failures\.jsonl"
    with serving(lambda _row: web.Response(status=500)) as stub, pytest.raises(NothingProducedError, match=said):
        await collect(stub, route_failures_to_sidecar=True)


async def test_results_can_stay_on_disk_alone(collect, tmp_path):
    with serving() as stub:
        assert await collect(stub, retain_results_in_memory=False) == []
    assert len(rows_in(tmp_path / "out" / "r.jsonl")) == 3


async def test_an_overwritten_run_keeps_the_old_one_until_the_new_plan_stands(collect, tmp_path):
    with serving() as stub:
        await collect(stub)
        old = (tmp_path / "out" / "r.jsonl").read_bytes()
        with pytest.raises(ConfigError, match="`nobody` is not in the configuration"):
            await collect(stub, overwrite=True, agent_name="nobody")
        assert (tmp_path / "out" / "r.jsonl").read_bytes() == old
        await collect(stub, count=2, overwrite=True)
    assert len(rows_in(tmp_path / "out" / "r.jsonl")) == 2


def test_preprocessing_neither_mutates_rows_nor_needs_a_deployment():
    examples = adding(2)
    rows = RolloutCollectionHelper().preprocess_examples(examples, num_repeats=2, num_repeats_add_seed=True)
    assert [(row["_ng_task_index"], row["_ng_rollout_index"]) for row in rows] == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert examples == adding(2)


@pytest.mark.parametrize("option", [{"long_rollout_s": 5.0}, {"timing_summary_interval_s": 5.0}])
def test_an_option_of_a_table_that_nothing_turned_on_is_refused_by_name(option):
    settings = RolloutCollectionConfig(input_jsonl_fpath="i", output_jsonl_fpath="o", **option)
    with pytest.raises(ConfigError, match=next(iter(option))):
        refuse_unsupported(settings)


@pytest.mark.parametrize(("mode", "told"), [("agent", 1), ("taskset", 1), ("legacy", 0)])
def test_a_server_of_another_routing_mode_is_taken_and_told_to_do_nothing(mode, told):
    more = {"environment_routing_mode": mode, "environment_server_routes": {"sums": "adder"}}
    named = {"input_jsonl_fpath": "i", "output_jsonl_fpath": "o", "environment_server_name": "adder"}
    settings = RolloutCollectionConfig(**named, **more)
    refuse_unsupported(settings)
    notes = list(without_effect(settings))
    assert len(notes) == told
    for note in notes:
        assert note.startswith(f"environment_server_name=adder has no effect where environment_routing_mode is {mode};")


@pytest.mark.parametrize("repeats", [0, -1, 2.5, True, "2", {"A": 0}, {AGENT: -3}, {AGENT: 2.5}, {AGENT: None}])
def test_rc_69_preprocessing_refuses_repeats_that_are_no_whole_number_from_1_on(repeats):
    with pytest.raises(InputError, match=r"num_repeats.*whole numbers from 1 on"):
        RolloutCollectionHelper().preprocess_examples(adding(3), num_repeats=repeats)


@pytest.mark.parametrize(("repeats", "count"), [(None, 3), (2, 6), ({AGENT: 3}, 9)])
def test_rc_69_preprocessing_takes_no_repeats_for_one(repeats, count):
    assert len(RolloutCollectionHelper().preprocess_examples(adding(3), num_repeats=repeats)) == count


@pytest.mark.parametrize(
    ("agents", "said"),
    [
        ([], "is empty"),
        (["X", "X"], "X more than once"),
        ("XY", "list"),
        ([1], "names"),
        ([""], "names"),
        (None, "list"),
    ],
)
def test_preprocessing_refuses_a_fan_out_that_would_lose_or_double_rollouts(agents, said):
    with pytest.raises(InputError, match=rf"fan_out\.{AGENT}.*{said}"):
        RolloutCollectionHelper().preprocess_examples(adding(1), fan_out={AGENT: agents})


def test_preprocessing_chooses_tasks_by_ids_of_any_scalar_type():
    rows = [row | {"task_id": n} for n, row in enumerate(adding(3))]
    chosen = RolloutCollectionHelper().preprocess_examples(rows, task_ids=[1])
    assert [row["task_id"] for row in chosen] == [1]


ACTED_ON = {
    *("agent_map", "agent_name", "disable_aggregation", "dispatch_connect_grace_s", "environment_routing_mode"),
    *("environment_server_name", "environment_server_routes", "fan_out", "input_jsonl_fpath", "interleave_repeats"),
    *(
        "limit",
        "task_ids",
        "task_shard",
        "max_resident_rollout_tasks",
        "num_repeats",
        "num_repeats_add_seed",
        "num_samples_in_parallel",
    ),
    *("output_jsonl_fpath", "overwrite", "prompt_config", "record_omitted_rollouts", "require_complete"),
    *(
        "responses_create_params",
        "resume_from_cache",
        "retain_results_in_memory",
        "route_failures_to_sidecar",
        "skills",
    ),
    *("allow_unsafe_resume", "batch_manifest_fpath", "durability", "interrupt_grace_s", "resubmit", "retry_for_s"),
    *("attempt_extension", "retry_terminal_timeouts", "take_over"),
    *("adaptive_concurrency", "dispatch_budget_s", "drain_margin_s", "environment_protocol_violation_stop_after"),
    *("rollout_body_timeout_s", "rollout_response_timeout_s", "rollout_timeout_s", "stop_after_failures"),
    *("dispatch_longest_first", "group_scored", "max_reply_bytes", "rollout_collection_driver"),
    *("rollout_connect_timeout_s", "server_queue_metrics_urls", "server_queue_sample_interval_s"),
    *("count_failure_classes_as_zero", "count_missing_rollouts_as_zero", "min_coverage"),
    *("max_failed_fraction", "max_missing_fraction", "max_unhealthy_fraction"),
    *("disable_health_check", "health_check_ignored_checks", "health_check_workers"),
    *("dispatch_start_report_within_s", *TIMED),
}


def test_every_option_is_acted_on_or_refused_or_about_a_step_that_is_not_taken():
    assert set(RolloutCollectionConfig.model_fields) == ACTED_ON | LATER | WITHOUT_EFFECT


async def test_an_observer_that_raises_costs_neither_rollouts_nor_scores(tmp_path):
    def observe(_event):
        raise RuntimeError("the screen is gone")

    (tmp_path / "in.jsonl").write_bytes(lines(adding(3)))
    settings = RolloutCollectionConfig(
        input_jsonl_fpath=str(tmp_path / "in.jsonl"), output_jsonl_fpath=str(tmp_path / "r.jsonl")
    )
    with serving() as stub:
        config = OmegaConf.create(stub.config())
        result = await evaluate(EvaluationRequest(settings, config, ServeMode.NONE, observe))
    assert result.coverage.scored == 3
    assert len(result.metrics) == 1


async def test_a_resumed_run_counts_what_is_settled_and_finishes_no_more_than_it_planned(collect, tmp_path):
    events = []
    with serving(failing(500)) as stub:
        await collect(stub, route_failures_to_sidecar=True)
        stub.script = lambda _row: None
        settings = RolloutCollectionConfig(
            input_jsonl_fpath=str(tmp_path / "in.jsonl"),
            output_jsonl_fpath=str(tmp_path / "out" / "r.jsonl"),
            resume_from_cache=True,
        )
        await evaluate(EvaluationRequest(settings, OmegaConf.create(stub.config()), ServeMode.NONE, events.append))
    planned = next(event for event in events if isinstance(event, RunPlanned))
    assert (planned.tasks, planned.rollouts, planned.settled) == (3, 3, 2)
    assert sum(isinstance(event, AttemptEnded) for event in events) == 1


def name_another_agent(folder):
    plan = folder / "r_materialized_inputs.jsonl"
    plan.write_bytes(plan.read_bytes().replace(b'"name":"adder"', b'"name":"gone"'))


async def test_a_plan_that_was_edited_is_not_the_one_of_the_manifest_and_sends_nothing(collect, tmp_path):
    with serving(failing(500)) as stub:
        await collect(stub, route_failures_to_sidecar=True)
        name_another_agent(tmp_path / "out")
        before = len(stub.requests)
        with pytest.raises(DamagedRunError, match=r"r_materialized_inputs\.jsonl: not the plan"):
            await collect(stub, route_failures_to_sidecar=True, resume_from_cache=True)
        assert len(stub.requests) == before


async def test_a_plan_that_names_an_agent_who_is_gone_sends_nothing(collect, tmp_path):
    with serving(failing(500)) as stub:
        await collect(stub, route_failures_to_sidecar=True)
        name_another_agent(tmp_path / "out")
        for name in ("r_manifest.json", "r_manifest.log"):
            (tmp_path / "out" / name).unlink()
        before = len(stub.requests)
        with pytest.raises(ConfigError, match=r"r_materialized_inputs\.jsonl:1: .*gone.*\n.*--overwrite"):
            await collect(stub, route_failures_to_sidecar=True, resume_from_cache=True)
        assert len(stub.requests) == before


async def test_spent_attempts_are_said_to_be_spent(collect):
    with serving(lambda _row: web.Response(status=500)) as stub:
        for resume in (False, True, True):
            with pytest.raises(NothingProducedError, match="None of the 3 dispatched"):
                await collect(stub, route_failures_to_sidecar=True, resume_from_cache=resume)
        before = len(stub.requests)
        with pytest.raises(NothingProducedError, match=r"attempts .* are spent.*--overwrite"):
            await collect(stub, route_failures_to_sidecar=True, resume_from_cache=True)
        assert len(stub.requests) == before == 9


async def test_a_rollout_with_two_saved_lines_is_aggregated_once(collect, tmp_path):
    with serving() as stub:
        await collect(stub)
        output = tmp_path / "out" / "r.jsonl"
        output.write_bytes(output.read_bytes() + output.read_bytes().splitlines(keepends=True)[0])
        await collect(stub, resume_from_cache=True)
    assert len(stub.aggregated[-1]["verify_responses"]) == 3


@pytest.mark.parametrize("name", ["in.jsonl", "in_materialized_inputs.jsonl"])
async def test_a_run_never_writes_over_the_rows_that_it_reads(tmp_path, name):
    rows = tmp_path / name
    rows.write_bytes(lines(adding(2)))
    settings = RolloutCollectionConfig(
        input_jsonl_fpath=str(rows), output_jsonl_fpath=str(tmp_path / "in.jsonl"), overwrite=True
    )
    with serving() as stub:
        with pytest.raises(ConfigError, match=r"--input .* is a file that this run writes"):
            await evaluate(EvaluationRequest(settings, OmegaConf.create(stub.config()), ServeMode.NONE))
        assert stub.requests == []
    assert rows.read_bytes() == lines(adding(2))


async def test_an_output_that_is_a_link_leads_to_the_file_behind_it(tmp_path):
    (tmp_path / "in.jsonl").write_bytes(lines(adding(2)))
    (tmp_path / "real").mkdir()
    (tmp_path / "link.jsonl").symlink_to(tmp_path / "real" / "r.jsonl")
    settings = RolloutCollectionConfig(
        input_jsonl_fpath=str(tmp_path / "in.jsonl"), output_jsonl_fpath=str(tmp_path / "link.jsonl")
    )
    with serving() as stub:
        await evaluate(EvaluationRequest(settings, OmegaConf.create(stub.config()), ServeMode.NONE))
    assert (tmp_path / "link.jsonl").is_symlink()
    assert len(rows_in(tmp_path / "real" / "r.jsonl")) == 2


@pytest.mark.parametrize(("asked", "told_again"), [({}, False), ({"dispatch_connect_grace_s": 0.6}, True)])
async def test_connecting_goes_on_no_longer_than_trying_again_unless_it_was_asked_to(
    asked, told_again, tmp_path, caplog, unused_tcp_port
):
    (tmp_path / "in.jsonl").write_bytes(lines(adding(1)))
    settings = RolloutCollectionConfig(
        input_jsonl_fpath=str(tmp_path / "in.jsonl"),
        output_jsonl_fpath=str(tmp_path / "r.jsonl"),
        route_failures_to_sidecar=True,
        retry_for_s=0,
        **asked,
    )
    with serving() as stub:
        request = EvaluationRequest(settings, OmegaConf.create(stub.config()), ServeMode.NONE)
        stub.port = unused_tcp_port
        with pytest.raises(NothingProducedError, match="agent_request_failed"):
            await evaluate(request)
    assert ("tried again" in caplog.text) is told_again


def test_servers_in_folders_of_their_own_are_told_where_the_rows_lie(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in.jsonl").write_bytes(lines(adding(1)))
    settings = RolloutCollectionConfig(input_jsonl_fpath="in.jsonl", output_jsonl_fpath="r.jsonl")
    request = EvaluationRequest(settings, OmegaConf.create({"input_jsonl_fpath": "in.jsonl"}))
    assert deployment_for(request).global_config_dict["input_jsonl_fpath"] == str(tmp_path / "in.jsonl")
