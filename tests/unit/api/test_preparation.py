"""The rows of a split: made ready, served, collected, gone on with; by the command and by the API."""

import asyncio
import hashlib
import json
from pathlib import Path

import pytest

from declared import parsed, question, read_rows, sums, write_rows
from rollbook import E2ERolloutCollectionConfig, RolloutCollectionHelper
from rollbook.api.evaluation import evaluate
from rollbook.api.preparation import end_to_end
from rollbook.api.request import EvaluationRequest
from rollbook.cli.entry import exit_code_of
from rollbook.config import parser
from rollbook.dispatch.stop import Stop
from rollbook.errors import ConfigError, OutputExistsError, RollbookError, RunStoppedError

CONFIG = """
config_paths: [resources_servers/string_match/configs/string_match.yaml]
string_match:
  resources_servers:
    string_match:
      datasets:
      - {name: t, type: train, jsonl_fpath: data/t.jsonl, license: MIT, num_repeats: 2}
"""
PREPARED = Path("out/r/preprocessed_datasets/train.jsonl")
RUN = (
    "eval",
    "run",
    "--config",
    "own.yaml",
    "--model-type",
    "simulated_model",
    "-o",
    "out/r.jsonl",
    "--split",
    "train",
)


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NEMO_GYM_EXTRA_ROOTS", "")
    monkeypatch.setenv("ROLLBOOK_EXTRA_ROOTS", "")
    Path("own.yaml").write_text(CONFIG)
    ask(2)
    return tmp_path


def ask(count):
    rows = [question(f"What is {n} + {n}? Final answer: …", expected_answer=str(2 * n)) for n in range(count)]
    write_rows(Path("data/t.jsonl"), rows)


@pytest.fixture
def gym(capsys):
    def gym(*arguments):
        code = exit_code_of([*RUN, "--retry-for", "0", "--no-health-check", *arguments])
        return code, capsys.readouterr().err

    return gym


def test_a_split_is_made_ready_collected_and_gone_on_with(gym):
    code, err = gym()
    assert (code, "2 tasks, 4 rollouts planned" in err) == (0, True), err
    assert [row["task_source"] for row in read_rows(PREPARED)] == ["string_match"] * 4
    assert len(read_rows("out/r.jsonl")) == 4
    code, err = gym()
    assert (code, "--resume" in err) == (1, True)
    ask(3)
    code, err = gym("--resume", "++reuse_existing_data_preparation=true", "--prompt-config", "p.yaml")
    assert (code, "t.jsonl changed since rows were prepared of it" in err) == (0, True), err
    assert "the rows of t were prepared with another prompt than p.yaml" in err
    code, err = gym("--resume")
    assert (code, "holds other rows than when it was prepared before" in err) == (0, True), err
    made = ["train.jsonl", "train.jsonl.sha256", "train_metrics.json", "train_preparation.json"]
    assert sorted(prepared_files()) == made
    assert len(read_rows("out/r.jsonl")) == 6


def prepared_files():
    return {path.name: path.read_bytes() for path in PREPARED.parent.iterdir()}


def test_a_resume_that_is_refused_leaves_the_rows_of_the_run_as_they_were(gym):
    assert gym()[0] == 0
    before = prepared_files()
    PREPARED.with_name("train_metrics.json").unlink()
    write_rows(Path("data/t.jsonl"), [question("Something else", expected_answer="7")] * 3)
    code, err = gym("--resume", "++overwrite_metrics_conflicts=true")
    assert (code, "the resume is refused" in err) == (1, True), err
    assert prepared_files() == {name: content for name, content in before.items() if "metrics" not in name}


def left_by_a_killed_command(gym):
    """Leave what `--overwrite` leaves that is killed once other rows are in place; return the run's own."""
    assert gym()[0] == 0
    before = prepared_files()
    kept = PREPARED.with_name(".earlier-train-x")
    kept.mkdir()
    for name, content in before.items():
        (kept / name).write_bytes(content)
        PREPARED.with_name(name).write_bytes(b'{"other": "rows"}\n')
    PREPARED.with_name(".train.jsonl.abc.tmp").write_text("half")
    return before


def tree():
    return {str(path): path.read_bytes() for path in Path("out").rglob("*") if path.is_file()}


def test_a_resume_that_uses_rows_again_has_them_back_from_a_command_that_was_killed(gym):
    before = left_by_a_killed_command(gym)
    code, err = gym("--resume", "++reuse_existing_data_preparation=true")
    assert (code, "already complete" in err, "they are put back as they were" in err) == (0, True, True), err
    (replaced,) = PREPARED.parent.glob(".replaced-train-*")
    assert f"what lay there is in {replaced}; if nobody needs it: rm -r {replaced}" in err
    assert {path.name: path.read_text() for path in replaced.iterdir()} == dict.fromkeys(before, '{"other": "rows"}\n')
    assert {path.name for path in PREPARED.parent.iterdir()} == {*before, replaced.name}
    assert {name: PREPARED.with_name(name).read_bytes() for name in before} == before


def test_rows_that_lie_there_instead_and_are_as_a_collation_wrote_them_are_not_kept(gym):
    before = left_by_a_killed_command(gym)
    PREPARED.write_bytes(b'{"other": "rows"}\n')
    told = f"{hashlib.sha256(PREPARED.read_bytes()).hexdigest()}  {PREPARED.name}\n"
    PREPARED.with_name(f"{PREPARED.name}.sha256").write_text(told)
    code, err = gym("--resume", "++reuse_existing_data_preparation=true")
    assert (code, "they are put back as they were" in err) == (0, True), err
    assert prepared_files() == before


@pytest.mark.parametrize("asked", [(), ("--split", "validation", "--resume"), ("--split", "validation")])
def test_a_refused_command_and_one_of_another_split_leave_what_a_killed_one_kept_as_it_is(gym, asked):
    left_by_a_killed_command(gym)
    before = tree()
    code, err = gym(*asked)
    assert (code, "put back" in err) == (1, False), err
    assert tree() == before


def test_rows_that_are_not_the_runs_are_not_put_back_and_it_is_said_where_they_lie(gym):
    before = left_by_a_killed_command(gym)
    kept = PREPARED.with_name(".earlier-train-x")
    (kept / "train.jsonl").write_text("{}\n")
    code, err = gym("--resume")
    assert (code, f"mv -i {kept}/* {PREPARED.parent}" in err) == (0, True), err
    assert ((kept / "train.jsonl").read_text(), PREPARED.read_bytes()) == ("{}\n", before["train.jsonl"])


async def test_servers_that_do_not_start_leave_the_rows_of_an_earlier_run_as_they_were(here):
    write_rows(Path("out/r.jsonl"), [{"reward": 1.0}])
    write_rows(PREPARED, [{"kept": True}])
    with pytest.raises(RollbookError):
        await Asked().prepared(overwrite=True)
    assert (list(prepared_files()), read_rows(PREPARED)) == (["train.jsonl"], [{"kept": True}])


def test_rows_that_cannot_be_prepared_start_nothing(gym):
    write_rows(Path("data/t.jsonl"), [{"expected_answer": "2"}])
    code, err = gym()
    assert (code, "data/t.jsonl:1" in err) == (1, True), err
    assert not PREPARED.exists()
    assert not Path("out/r.jsonl").exists()


def test_a_split_that_nobody_declares_is_told_with_those_that_are(gym):
    code, err = gym("--split", "validation")
    assert (code, "declared: t (train, of string_match)" in err) == (1, True), err


class Asked:
    """A configuration of this process, and what is asked of it."""

    def __init__(self, **more):
        data_set = {"name": "t", "type": "train", "jsonl_fpath": "data/t.jsonl", "license": "MIT"}
        self.cfg = parsed({**sums([data_set]), "output_jsonl_fpath": "out/r.jsonl", "split": "train", **more})

    async def prepared(self, stop=None, **more):
        settings, preparation = end_to_end(self.cfg)
        request = EvaluationRequest(settings.model_copy(update=more), self.cfg, preparation=preparation)
        return await evaluate(request, stop=stop)


async def test_an_earlier_run_keeps_its_rows(here):
    write_rows(Path("out/r.jsonl"), [{"reward": 1.0}])
    write_rows(PREPARED, [{"kept": True}])
    with pytest.raises(OutputExistsError):
        await Asked().prepared()
    assert read_rows(PREPARED) == [{"kept": True}]


async def test_who_asks_to_stop_is_heard_before_rows_are_in_place(here):
    ask(1001)
    stop = Stop()
    stop.request("enough")
    with pytest.raises(RunStoppedError, match="enough"):
        await Asked().prepared(stop)
    assert list(PREPARED.parent.iterdir()) == []


def test_settings_of_a_split_are_those_of_the_configuration_with_its_rows():
    settings, preparation = end_to_end(Asked(num_repeats=3, task_data_validation="warn").cfg)
    assert (settings.num_repeats, settings.input_jsonl_fpath) == (3, str(PREPARED))
    assert (preparation.config.task_data_validation, preparation.reuse) == ("warn", False)
    with pytest.raises(ConfigError, match="not supported when serving end-to-end"):
        end_to_end(Asked(input_jsonl_fpath="x").cfg)


def test_a_prompt_is_filled_in_while_a_splits_rows_are_made_ready():
    settings, preparation = end_to_end(Asked(prompt_config="prompt.yaml").cfg)
    assert (settings.prompt_config, preparation.prompt_config) == (None, "prompt.yaml")


def test_the_api_makes_a_split_ready_serves_and_collects(here):
    cfg = parser.GlobalConfigDictParser().parse(
        parser.GlobalConfigDictParserConfig(
            initial_global_config_dict={
                "config_paths": ["own.yaml", "responses_api_models/simulated_model/configs/simulated_model.yaml"],
                "disable_health_check": True,
            },
            skip_load_from_cli=True,
            private_head=True,
        )
    )
    parser.set_global_config_dict(cfg)
    try:
        config = E2ERolloutCollectionConfig(output_jsonl_fpath="out/r.jsonl", split="train")
        results = asyncio.run(RolloutCollectionHelper().run_from_config(config))
    finally:
        parser.forget_global_config_dict()
    assert [(row["_ng_task_index"], row["_ng_rollout_index"]) for row in results] == [(0, 0), (0, 1), (1, 0), (1, 1)]
    record = json.loads(PREPARED.with_name("train_preparation.json").read_bytes())
    assert (record["rows"], record["datasets"][0]["num_repeats"]) == (4, 2)
