"""Recorded calls: what lies on disk, how it is named, and that a resume runs what the shard lacks."""

import asyncio
import copy
import json
import shlex

import pytest
from aiohttp import web
from omegaconf import OmegaConf

from rollbook.api.direct_errors import DirectCallError
from rollbook.api.rollout_collection import RolloutCollectionHelper
from rollbook.api.rollout_records import RolloutRecords
from rollbook.api.rollout_store import RolloutStore
from rollbook.config import parser
from rollbook.config.collection import RolloutCollectionConfig
from rollbook.config.types import BaseServerConfig
from rollbook.errors import InputError
from rollbook.ledger.manifest_store import read_manifest
from rollbook.ledger.shard import RESERVED_ENDINGS
from rollbook.records.rollout_failure import RolloutFailure
from run_folder import identities, identity, rows_of, said
from stub import ENVIRONMENT, Stub, adding, serving
from unit.api.shard_calls import ShardFolder, planned


@pytest.fixture
def shard(tmp_path):
    return ShardFolder(tmp_path / "run")


def breaking_first(row):
    """Fail the first attempt of task 1."""
    broken = row["_ng_task_index"] == 1 and not row.get("_ng_attempt_index")
    return web.Response(status=500, text="broke") if broken else None


async def partly(shard, stub, examples, count, **options):
    """Fetch `count` results one by one, then close."""
    results = shard.call(stub, examples, max_resident_tasks=1, **options)
    fetched = [await next(results) for _ in range(count)]
    await results.aclose()
    return fetched


async def test_a_shard_is_the_whole_file_set_of_a_run(shard):
    with serving(breaking_first) as stub:
        await shard.collected(stub, planned(3))
    paths = shard.paths
    assert {path for path in paths.every_file if path.exists()} == {*paths.every_file} - {
        paths.aggregate_metrics,
        paths.coverage,
    }
    assert sorted(identities(paths.output)) == [(0, 0, 0), (2, 0, 0)]
    assert identities(paths.failures) == [(1, 0, 0)]
    assert identities(paths.materialized_inputs) == [(0, 0, 0), (1, 0, 0), (2, 0, 0)]
    assert {row["_ng_run_id"] for path in (paths.output, paths.failures) for row in rows_of(path)} == {
        shard.manifest()["run_id"]
    }


async def test_rows_come_back_as_copies_that_name_the_run_and_the_rollout_in_it(shard):
    examples = planned(2)
    before = copy.deepcopy(examples)
    with serving() as stub:
        fetched = await shard.collected(stub, examples)
    run_id = shard.manifest()["run_id"]
    assert sorted(row["_ng_rollout_id"] for row, _ in fetched) == [f"{run_id}-0-0", f"{run_id}-1-0"]
    for row, result in fetched:
        assert result["_ng_rollout_id"] == row["_ng_rollout_id"]
        assert (row["_ng_run_id"], result["_ng_run_id"]) == (run_id, run_id)
    assert examples == before
    assert sorted(row["_ng_rollout_id"] for row in stub.requests) == [f"{run_id}-0-0", f"{run_id}-1-0"]
    assert rows_of(shard.paths.materialized_inputs) == sorted((row for row, _ in fetched), key=identity)


async def test_results_carry_the_identity_of_their_row_whatever_the_reply_says(shard):
    with serving(lambda _row: web.json_response({"reward": 1.0})) as stub:
        ((row, result),) = await shard.collected(stub, planned(1))
    assert result.pop("ng_perf").keys() == {"total_latency_ms"}
    named = {key: row[key] for key in ("_ng_rollout_id", "_ng_task_index", "_ng_rollout_index", "_ng_run_id")}
    assert result == {"reward": 1.0} | named


@pytest.mark.parametrize("sent", ['{"reward":1}', '{ "reward": 1, "ng_perf": {"num_turns": 3} }'])
async def test_a_result_s_line_and_its_value_tell_the_same_wall_time(shard, sent):
    with serving(lambda _row: web.Response(text=sent, content_type="application/json")) as stub:
        ((_, result),) = await shard.collected(stub, planned(1))
    (saved,) = rows_of(shard.paths.output)
    assert saved["ng_perf"] == result["ng_perf"]
    assert list(saved["ng_perf"]) == ["total_latency_ms"]
    assert saved["ng_perf"]["total_latency_ms"] > 0


async def test_a_row_of_an_earlier_shard_loses_that_shard_s_name(shard, tmp_path):
    again = ShardFolder(tmp_path / "run", "s2")
    own = [row | {"_ng_rollout_id": "mine.1"} for row in planned(1)]
    with serving() as stub:
        ((first, _),) = await shard.collected(stub, own)
        ((second, _),) = await again.collected(stub, [first])
    assert first["_ng_rollout_id"] == f"{shard.manifest()['run_id']}-mine.1"
    assert second["_ng_rollout_id"] == f"{again.manifest()['run_id']}-mine.1"
    assert shard.manifest()["run_id"] != again.manifest()["run_id"]


def test_a_row_with_an_id_alone_is_recorded_as_a_task_of_its_place(shard):
    with serving() as stub:
        asyncio.run(shard.collected(stub, [row | {"_ng_rollout_id": f"r{n}"} for n, row in enumerate(adding(2))]))
        assert identities(shard.paths.materialized_inputs) == [(0, 0, 0), (1, 0, 0)]
        assert sorted(identities(shard.paths.output)) == [(0, 0, 0), (1, 0, 0)]
        assert "already complete" in shard.resumed(stub, "+disable_aggregation=true").text


@pytest.mark.parametrize(
    ("examples", "said"),
    [
        (adding(1), "names no rollout"),
        (planned(1) + planned(2), "row 1: the rollout 0-0 is that of row 0"),
        ([row | {"_ng_attempt_index": 2_000_000} for row in planned(1)], "too large"),
        ([row | {"_ng_rollout_index": 2**32} for row in planned(1)], "too large"),
        ([row | {"_ng_rollout_id": "a-a3"} for row in planned(1)], "names an attempt"),
        ([row | {"_ng_rollout_id": "a"} for row in planned(2)], "row 1: the rollout id 'a' is that of row 0"),
        ([planned(2)[0], planned(2)[1] | {"_ng_rollout_id": "0-0"}], "row 1: the rollout id '0-0' is that of row 0"),
    ],
)
async def test_rows_that_cannot_be_told_apart_are_refused_before_an_earlier_shard_is_touched(shard, examples, said):
    with serving() as stub:
        await shard.collected(stub, planned(2))
        before = {path: path.read_bytes() for path in shard.paths.every_file if path.exists()}
        with pytest.raises(InputError, match=said):
            shard.call(stub, examples)
    assert {path: path.read_bytes() for path in before} == before


@pytest.mark.parametrize(
    "label", ["", ".x", "-x", "a/b", "a b", "ä", "..", "x\n", *(f"x{end}" for end in RESERVED_ENDINGS)]
)
def test_a_label_names_files_of_its_folder_that_are_nobody_else_s(tmp_path, label):
    with pytest.raises(DirectCallError, match="label"):
        RolloutCollectionHelper().run_examples([], record_output_dir=tmp_path, record_shard=label)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("label", ["0", "step-3.worker_7", "a_attempts.b", "X"])
async def test_a_label_stands_in_the_names_of_the_files(tmp_path, label):
    shard = ShardFolder(tmp_path, label)
    with serving() as stub:
        await shard.collected(stub, planned(1))
    assert len(rows_of(tmp_path / f"rollouts-{label}.jsonl")) == 1


async def test_what_an_earlier_call_wrote_under_the_label_is_replaced(shard):
    with serving(breaking_first) as stub:
        await shard.collected(stub, planned(3))
        earlier = shard.manifest()["run_id"]
        await shard.collected(stub, planned(1))
    assert identities(shard.paths.output) == [(0, 0, 0)]
    assert rows_of(shard.paths.failures) == []
    assert shard.manifest()["run_id"] != earlier
    assert shard.status()["coverage"]["planned"] == 1


async def test_a_failure_is_saved_as_a_run_saves_it(shard):
    with serving(breaking_first) as stub:
        fetched = await shard.collected(stub, planned(2))
    (typed,) = [result for _, result in fetched if isinstance(result, RolloutFailure)]
    (row,) = rows_of(shard.paths.failures)
    assert row["rollout_failure"] == typed.model_dump(mode="json")
    assert (row["_ng_failure_class"], row["_ng_failure_max_attempts"]) == ("agent_run_error", 3)
    assert row["elapsed_seconds"] >= 0
    assert "reward" not in row


async def test_a_failure_that_is_not_routed_is_evidence_and_its_own_awaitable_s_error(shard):
    with serving(breaking_first) as stub:
        results = shard.call(stub, planned(2), route_failures_to_sidecar=False, max_resident_tasks=1)
        await next(results)
        with pytest.raises(Exception, match="500"):
            await next(results)
    (row,) = rows_of(shard.paths.failures)
    assert row["_ng_unrouted_run_error"]


@pytest.mark.parametrize("record", [True, False])
async def test_a_try_that_its_agent_gave_up_is_an_omitted_row_or_nothing(shard, record):
    given_up = {"_ng_no_persist": True, "_ng_failure_class": "kill_shaped", "error_message": "sandbox gone"}
    with serving(lambda _row: web.json_response(given_up)) as stub:
        await shard.collected(stub, planned(1), record_omitted_rollouts=record)
        rows = rows_of(shard.paths.failures)
        assert [row["_ng_omitted_rollout"] for row in rows] == [True] * record
        assert [row["_ng_run_id"] for row in rows] == [shard.manifest()["run_id"]] * record
        assert shard.status()["coverage"]["interrupted"] == 1


@pytest.mark.parametrize("record", [True, False])
def test_rollouts_without_time_left_are_never_started(shard, record):
    with serving() as stub:
        asyncio.run(shard.collected(stub, planned(2), dispatch_budget_s=0.0, record_omitted_rollouts=record))
        assert stub.requests == []
        rows = rows_of(shard.paths.failures)
        assert [(row["_ng_omitted_rollout"], row["_ng_dispatch_drained"]) for row in rows] == [
            (True, True)
        ] * 2 * record
        assert shard.resumed(stub).code == 0
        assert sorted(map(identity, stub.requests)) == [(0, 0, 1), (1, 0, 1)]


def test_a_resume_runs_what_the_shard_lacks_and_nothing_else(shard):
    with serving(breaking_first) as stub:
        asyncio.run(partly(shard, stub, planned(3, num_repeats=2), 3))
        before = len(stub.requests)
        answer = shard.resumed(stub)
        assert answer.code == 0, answer.text
        sent = sorted(map(identity, stub.requests[before:]))
    assert sent == [(1, 0, 1), (1, 1, 1), (2, 0, 1), (2, 1, 1)]
    assert sorted(identities(shard.paths.output)) == [(0, 0, 0), (0, 1, 0), *sent]
    found = shard.status()
    assert (found["state"], found["coverage"]["scored"], found["runs"][0]["damage"]) == ("finished", 6, [])


def test_what_a_status_says_to_type_goes_on_with_the_shard_and_notes_no_setting(shard):
    with serving() as stub:
        asyncio.run(partly(shard, stub, planned(2), 1))
        lines = said(["eval", "status", str(shard.paths.output)]).out.splitlines()
        (told,) = [line.removeprefix("Go on: gym ") for line in lines if line.startswith("Go on")]
        answer = said([*shlex.split(told), *stub.overrides])
    assert answer.code == 0, answer.text
    assert "changed since the run began" not in answer.text
    assert sorted(identities(shard.paths.output)) == [(0, 0, 0), (1, 0, 1)]


async def test_a_resume_by_the_same_settings_differs_in_nothing(shard):
    with serving() as stub:
        await partly(shard, stub, planned(2), 1)
        parser.set_global_config_dict(OmegaConf.create(stub.config()))
        settings = RolloutCollectionConfig(
            input_jsonl_fpath=str(shard.paths.materialized_inputs),
            output_jsonl_fpath=str(shard.paths.output),
            resume_from_cache=True,
        )
        results = await RolloutCollectionHelper().run_from_config(settings)
    assert [identity(row) for row in results] == [(0, 0, 0), (1, 0, 1)]
    assert shard.manifest()["sessions"][1]["drift"] == []


def test_a_resume_that_would_ask_another_environment_is_refused(shard):
    with serving() as stub:
        asyncio.run(partly(shard, stub, planned(2), 1))
        stub.config = lambda: (
            Stub.config(stub)
            | {
                "adder": {
                    "responses_api_agents": {
                        "simple_agent": {"entrypoint": "app.py", "host": "127.0.0.1", "port": stub.port, "max_steps": 9}
                    }
                }
            }
        )
        answer = shard.resumed(stub)
    assert answer.code == 1
    assert "adder.responses_api_agents.simple_agent.max_steps" in answer.text


def test_rows_numbered_otherwise_are_recorded_and_a_resume_refuses_them(shard):
    examples = [row | {"_ng_rollout_index": 1 - row["_ng_rollout_index"]} for row in planned(1, num_repeats=2)]
    with serving() as stub:
        asyncio.run(partly(shard, stub, examples, 1))
        assert identities(shard.paths.output) == [(0, 1, 0)]
        answer = shard.resumed(stub)
        assert (answer.code, len(stub.requests)) == (1, 1)
        assert "not numbered 0, 1" in answer.text
        assert shard.resumed(stub, "+allow_unsafe_resume=true").code == 0
    assert sorted(identities(shard.paths.output)) == [(0, 0, 1), (0, 1, 0)]


def test_a_configuration_without_an_identity_leaves_a_shard_that_a_resume_refuses_with_the_reason(shard):
    config = Stub().config() | {"open": "${nowhere}"}
    recording, _ = shard.opened(planned(1), config=OmegaConf.create(config))
    asyncio.run(recording.close())
    manifest = shard.manifest()
    assert [*manifest["configuration_keys"]] == ["inputs.input_jsonl_fpath"]
    assert manifest["configuration_keys"]["inputs.input_jsonl_fpath"] == manifest["plan"]["sha256"]
    with serving() as stub:
        answer = shard.resumed(stub)
        assert stub.requests == []
    assert answer.code == 1
    assert "no identity could be taken" in answer.text
    assert "nowhere" in answer.text


def test_a_row_s_own_attempt_is_what_is_reserved_and_a_resume_counts_on(shard):
    with serving(lambda row: web.Response(status=500) if row["_ng_attempt_index"] == 2 else None) as stub:
        asyncio.run(shard.collected(stub, [row | {"_ng_attempt_index": 2} for row in planned(1)]))
        assert shard.resumed(stub).code == 0
    assert [identity(row) for row in stub.requests] == [(0, 0, 2), (0, 0, 3)]


async def test_the_store_and_the_records_read_a_shard(shard):
    with serving(breaking_first) as stub:
        await shard.collected(stub, planned(3))
    records = RolloutRecords.load(shard.paths.output, read_manifest(shard.paths.manifest))
    run_id = records.manifest.run_id
    assert records.coverage()["scored"] == 2
    assert sorted(records.expected) == [f"{run_id}-{task}-0" for task in range(3)]
    with RolloutStore(shard.paths.output) as store:
        assert store.manifest == records.manifest
        assert store.records.disposition(f"{run_id}-0-0") == "completed"


async def test_the_status_file_tells_of_every_rollout_as_soon_as_it_is_handed_over(shard):
    told = []
    with serving(breaking_first) as stub:
        for awaitable in shard.call(stub, planned(3), max_resident_tasks=1):
            await awaitable
            (member,) = shard.told()["members"]
            told.append((shard.told()["state"], member["completed"], member["failed"], member["remaining"]))
    assert told == [("running", 1, 0, 2), ("running", 1, 1, 1), ("incomplete", 2, 1, 0)]
    assert shard.told()["members"][0]["_ng_environment_server"] in {None, ENVIRONMENT}


async def test_the_status_of_a_call_that_was_closed_says_that_it_was_stopped(shard):
    with serving() as stub:
        await partly(shard, stub, planned(3), 1)
    told = shard.told()
    assert (told["state"], told["reason"]) == ("incomplete", "stopped")
    found = shard.status()
    assert (found["state"], found["coverage"]["never_started"]) == ("interrupted", 2)


def test_a_shard_whose_call_goes_on_is_not_resumed_beside_it(shard):
    recording, _ = shard.opened(planned(2))
    with serving() as stub:
        assert shard.status()["state"] == "running"
        answer = shard.resumed(stub)
        assert (answer.code, len(stub.requests)) == (1, 0)
        assert "is writing this run" in answer.text
        asyncio.run(recording.close())
        assert shard.resumed(stub).code == 0
        assert len(stub.requests) == 2


async def test_a_server_that_stops_its_call_is_asked_once_whatever_is_recorded(shard):
    with serving() as stub:
        assert len(await shard.collected(stub, planned(20, num_repeats=2))) == 40
    assert len(stub.requests) == 40
    assert json.loads(shard.paths.manifest_log.read_bytes().splitlines()[-1])["how"] == "finished"
    assert shard.status()["state"] == "finished"


def test_a_call_that_was_never_fetched_from_leaves_the_shard_with_every_attempt_reserved(shard):
    with serving() as stub:
        head = BaseServerConfig(host="127.0.0.1", port=stub.port)
        RolloutCollectionHelper().run_examples(
            planned(2), head, record_output_dir=shard.folder, record_shard=shard.label
        )
        assert stub.requests == []
    assert json.loads(shard.paths.manifest_log.read_bytes().splitlines()[1])["a"] == [0, 0, 0, 1, 0, 0]
    assert (shard.paths.output.read_bytes(), shard.paths.failures.read_bytes()) == (b"", b"")
