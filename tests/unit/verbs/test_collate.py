"""Declared data sets → one file of rows a type, and what they amount to."""

import json
import os
import tracemalloc
from pathlib import Path

import pytest

from declared import ENTRY, parsed, question, read_rows, sums, write_rows
from rollbook.errors import (
    ConfigError,
    ConfigPathNotFoundError,
    InputError,
    OutputExistsError,
    RunStoppedError,
    TaskDataSchemaError,
)
from rollbook.verbs.collate import TYPES_OF_MODE, CollateRequest, collate

TRAIN = {"name": "t", "jsonl_fpath": "data/t.jsonl", **ENTRY}
VALIDATION = {"name": "v", "jsonl_fpath": "data/v.jsonl", **ENTRY, "type": "validation"}


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NEMO_GYM_EXTRA_ROOTS", "")
    monkeypatch.setenv("ROLLBOOK_EXTRA_ROOTS", "")
    (tmp_path / "resources_servers" / "sums").mkdir(parents=True)
    (tmp_path / "resources_servers" / "sums" / "app.py").write_text("")
    write_rows(tmp_path / "data" / "t.jsonl", [question("1+1", answer="2"), question("2+2", answer="4")])
    write_rows(tmp_path / "data" / "v.jsonl", [question("3+3", answer="6")])
    return tmp_path


def collated(*datasets, types=TYPES_OF_MODE["train_preparation"], config=None, **options):
    cfg = parsed({**sums(list(datasets)), **(config or {})})
    return collate(cfg, CollateRequest(types, Path("out"), **options))


def test_every_type_has_a_file_of_its_rows_and_their_metrics():
    made = collated(TRAIN, VALIDATION)
    assert [(one.type, one.rows) for one in made.types] == [("train", 2), ("validation", 1)]
    assert [row["answer"] for row in read_rows("out/train.jsonl")] == ["2", "4"]
    assert json.loads(Path("out/validation_metrics.json").read_bytes())["Number of examples"] == 1


def test_rows_go_by_the_instance_that_declares_them_and_by_no_agent():
    write_rows(Path("data/t.jsonl"), [question("1+1", agent_ref={"name": "somebody"}, task_source="else")])
    collated(TRAIN)
    (row,) = read_rows("out/train.jsonl")
    assert row["task_source"] == "sums"
    assert "agent_ref" not in row


def test_a_pinned_agent_is_named_where_the_source_leads_elsewhere():
    second = sums([])["sums_simple_agent"]
    pinned = [{**TRAIN, "agent": "sums_simple_agent"}, {**VALIDATION, "agent": "second"}]
    collated(*pinned, config={"second": second})
    assert read_rows("out/validation.jsonl")[0]["agent_ref"] == {"type": "responses_api_agents", "name": "second"}


def test_a_row_is_written_as_often_as_its_data_set_is_repeated():
    collated({**TRAIN, "num_repeats": 3})
    assert [row["answer"] for row in read_rows("out/train.jsonl")] == ["2"] * 3 + ["4"] * 3
    saved = json.loads(Path("data/t_metrics.json").read_bytes())
    assert (saved["Number of examples"], saved["answer"]["unique_count"]) == (6, 2)


def test_data_sets_of_one_type_are_joined_and_summed_up_together():
    write_rows(Path("data/u.jsonl"), [question("1+1", answer="2")])
    collated(TRAIN, {**TRAIN, "name": "u", "jsonl_fpath": "data/u.jsonl"})
    metrics = json.loads(Path("out/train_metrics.json").read_bytes())
    assert (metrics["Number of examples"], metrics["answer"]) == (3, {"unique_count": 2, "total_count": 3})


def test_metrics_beside_a_data_set_repeat_its_entry():
    collated({**TRAIN, "source": {"type": "huggingface", "repo_id": "o/d"}})
    saved = json.loads(Path("data/t_metrics.json").read_bytes())
    assert list(saved)[:9] == [
        *("name", "type", "jsonl_fpath", "num_repeats", "source", "gitlab_identifier", "huggingface_identifier"),
        *("license", "Number of examples"),
    ]
    assert (saved["jsonl_fpath"], saved["source"]["repo_id"]) == ("data/t.jsonl", "o/d")


def test_a_prompt_template_is_filled_in_for_its_data_set():
    write_rows(Path("data/t.jsonl"), [{"question": "1+1"}])
    Path("prompt.yaml").write_text("user: What is {question}?\n")
    collated({**TRAIN, "prompt_config": "prompt.yaml"})
    assert read_rows("out/train.jsonl")[0]["responses_create_params"]["input"][0]["content"] == "What is 1+1?"


def test_a_prompt_template_that_is_asked_for_takes_the_place_of_the_data_sets_own():
    write_rows(Path("data/t.jsonl"), [{"question": "1+1"}])
    Path("prompt.yaml").write_text("user: What is {question}?\n")
    Path("other.yaml").write_text("user: Work out {question}.\n")
    collated({**TRAIN, "prompt_config": "prompt.yaml"}, prompt_config="other.yaml")
    assert read_rows("out/train.jsonl")[0]["responses_create_params"]["input"][0]["content"] == "Work out 1+1."


def test_rows_with_another_prompt_than_their_own_contradict_no_metrics():
    write_rows(Path("data/t.jsonl"), [{"question": "1+1"}])
    Path("prompt.yaml").write_text("user: What is {question}?\n")
    Path("other.yaml").write_text("user: Say, please, what {question} is.\n")
    collated({**TRAIN, "prompt_config": "prompt.yaml"})
    collated({**TRAIN, "prompt_config": "prompt.yaml"}, prompt_config="other.yaml", beside=False)
    with pytest.raises(ConfigError, match="t_metrics"):
        collated({**TRAIN, "prompt_config": "other.yaml"})


def test_rows_of_a_task_set_become_episode_tasks():
    write_rows(Path("data/t.jsonl"), [question("1+1", answer="2"), {"task_id": "b"}])
    collated({**TRAIN, "taskset": "adding"})
    rows = read_rows("out/train.jsonl")
    assert [row["task_id"] for row in rows] == [
        {"taskset": "adding", "task_id": "0"},
        {"taskset": "adding", "task_id": "b"},
    ]
    assert rows[0]["task_input"]["answer"] == "2"


def test_rows_at_fault_are_told_together_with_file_and_line_and_nothing_is_written():
    wrong = {"responses_create_params": {"input": "x", "temprature": 1}}
    write_rows(Path("data/t.jsonl"), [question("1+1"), {"answer": "2"}])
    write_rows(Path("data/v.jsonl"), [wrong])
    with pytest.raises(InputError) as caught:
        collated(TRAIN, VALIDATION)
    assert "data/t.jsonl:2: no `responses_create_params` object" in str(caught.value)
    assert "data/v.jsonl:1: responses_create_params.temprature" in str(caught.value)
    assert list(Path("out").iterdir()) == []
    assert not Path("data/t_metrics.json").exists()


def test_of_many_rows_at_fault_the_first_are_told_and_the_rest_counted():
    write_rows(Path("data/t.jsonl"), [{"answer": "2"}] * 30)
    with pytest.raises(InputError, match=r"t\.jsonl:20: no .*\nand 10 more$"):
        collated(TRAIN)


SCHEMA = """
from pydantic import BaseModel, Field
class TaskData(BaseModel):
    answer: str
    level: int = Field(default=0, json_schema_extra={"legacy_location": "verifier_metadata"})
"""


@pytest.mark.parametrize(
    ("validation", "row", "noted"),
    [
        ("off", {"answer": 4}, False),
        ("warn", {"answer": 4}, True),
        ("auto", {"answer": "4", "level": 1}, True),
        ("error", {"answer": "4"}, False),
    ],
)
def test_fields_that_do_not_fit_their_servers_schema_are_noted_where_that_is_enough(validation, row, noted):
    Path("resources_servers/sums/task_data.py").write_text(SCHEMA)
    write_rows(Path("data/t.jsonl"), [question("2+2", **row)])
    assert bool(collated(TRAIN, validation=validation).notes) == noted


@pytest.mark.parametrize(
    ("validation", "row"),
    [("error", {"answer": 4}), ("auto", {"answer": 4}), ("error", {"answer": "4", "level": 1})],
)
def test_fields_that_do_not_fit_are_refused_as_strictly_as_is_said(validation, row):
    Path("resources_servers/sums/task_data.py").write_text(SCHEMA)
    write_rows(Path("data/t.jsonl"), [question("2+2", **row)])
    with pytest.raises(InputError, match=r"\(sums\): 1 rows"):
        collated(TRAIN, validation=validation)


def test_a_row_with_a_key_twice_is_taken_with_the_last_and_told():
    row = json.dumps(question("1+1", answer="1"))
    Path("data/t.jsonl").write_text(f'{row}\n{row[:-1]}, "answer": "2"}}\n')
    assert collated(TRAIN).notes == (
        f"{Path('data/t.jsonl').absolute()}:2: `answer` stands there twice; the last one counts",
    )
    assert [row["answer"] for row in read_rows("out/train.jsonl")] == ["1", "2"]


def test_a_component_computes_metrics_of_its_own_tasks():
    hook = "def compute_task_metrics(task):\n    return {'digits': len(task['answer'])}\n"
    Path("resources_servers/sums/dataset_metrics.py").write_text(hook)
    collated(TRAIN)
    assert json.loads(Path("data/t_metrics.json").read_bytes())["digits"]["Average"] == 1.0
    write_rows(Path("data/t.jsonl"), [question("1+1")])
    with pytest.raises(InputError, match=r"t\.jsonl:1: .*dataset_metrics\.py: .*KeyError"):
        collated(TRAIN)
    for wrong in ("raise RuntimeError", "raise SystemExit(0)", "assert False"):
        Path("resources_servers/sums/dataset_metrics.py").write_text(f"def compute_task_metrics(task):\n    {wrong}\n")
        with pytest.raises(InputError, match=r"t\.jsonl:1: .*dataset_metrics\.py: compute_task_metrics raised [RSA]"):
            collated(TRAIN)
    Path("resources_servers/sums/dataset_metrics.py").write_text("x = 1\n")
    with pytest.raises(TaskDataSchemaError, match="compute_task_metrics"):
        collated(TRAIN)


def test_metrics_that_say_otherwise_stay_and_what_was_found_goes_beside_them():
    collated(TRAIN)
    before = Path("data/t_metrics.json").read_bytes()
    write_rows(Path("data/t.jsonl"), [question("1+1", answer="3")])
    with pytest.raises(ConfigError, match=r"is not what .*t_metrics\.json says of it, in: Number of examples"):
        collated(TRAIN)
    assert Path("data/t_metrics.json").read_bytes() == before
    assert json.loads(Path("data/t_metrics_conflict.json").read_bytes())["Number of examples"] == 1
    assert len(read_rows("out/train.jsonl")) == 2


def test_metrics_of_numbers_beyond_a_float_are_json_and_agree_with_themselves():
    write_rows(Path("data/t.jsonl"), [question("1+1", scale=scale) for scale in (1e200, 0.5, 1e200)])
    collated(TRAIN)
    collated(TRAIN)
    assert b"Infinity" not in Path("data/t_metrics.json").read_bytes()


def test_metrics_that_say_otherwise_are_replaced_where_that_is_asked_for():
    collated(TRAIN)
    write_rows(Path("data/t.jsonl"), [question("1+1", answer="3")])
    with pytest.raises(ConfigError, match="overwrite_metrics_conflicts"):
        collated(TRAIN)
    collated(TRAIN, overwrite_conflicts=True)
    assert json.loads(Path("data/t_metrics.json").read_bytes())["Number of examples"] == 1
    assert not Path("data/t_metrics_conflict.json").exists()


def test_a_file_of_metrics_that_tells_of_no_rows_contradicts_nothing():
    Path("data/t_metrics.json").write_text('{"Number of examples": 0}')
    collated(TRAIN)
    Path("data/t_metrics.json").write_text("{")
    with pytest.raises(ConfigError, match="holds no metrics"):
        collated(TRAIN)


def test_data_that_are_not_there_are_told_all_at_once_with_how_they_come_to_be_there():
    hub = {"type": "huggingface", "repo_id": "o/d"}
    gitlab = {"type": "gitlab", "dataset_name": "d", "version": "0.1", "artifact_fpath": "a.jsonl"}
    absent = [
        {**TRAIN, "name": "a", "jsonl_fpath": "data/a.jsonl", "source": hub},
        {**TRAIN, "name": "b", "jsonl_fpath": "data/b.jsonl", "source": gitlab},
        {**TRAIN, "name": "c", "jsonl_fpath": "data/c.jsonl"},
        {"name": "d", "type": "benchmark", "jsonl_fpath": "data/d.jsonl", "prepare_script": "prepare.py"},
    ]
    with pytest.raises(ConfigPathNotFoundError) as caught:
        collated(*absent)
    told = str(caught.value).splitlines()
    assert [len(told), "--download" in told[0], "GitLab" in told[1], "`source`" in told[2]] == [4, True, True, True]
    assert "gym eval prepare" in told[3]


def test_what_is_missing_is_fetched_where_that_is_asked_for():
    asked = []

    def fetch(source, kind, path):
        asked.append((source.repo_id, kind))
        write_rows(path, [question("1+1")])

    collated({**TRAIN, "jsonl_fpath": "new/a.jsonl", "source": {"type": "huggingface", "repo_id": "o/d"}}, fetch=fetch)
    assert asked == [("o/d", "train")]
    assert len(read_rows("out/train.jsonl")) == 1


def test_a_type_that_nobody_declares_is_told_with_those_that_are():
    with pytest.raises(ConfigError, match=r"no data set of type benchmark is declared; declared: t \(train, of sums\)"):
        collated(TRAIN, types=("benchmark",))


def test_a_data_set_is_never_written_to():
    write_rows(Path("out/train.jsonl"), [question("1+1")])
    for overwrite in (False, True):
        with pytest.raises(InputError, match="into another folder"):
            collated({**TRAIN, "jsonl_fpath": "out/train.jsonl"}, overwrite=overwrite)


@pytest.mark.parametrize("name", ["train.jsonl", "train.jsonl.sha256", "train_metrics.json"])
@pytest.mark.parametrize(
    "beside",
    [None, {"Number of examples": 1, "jsonl_fpath": "out/train.jsonl"}, {"Number of examples": 1, "my notes": "kept"}],
)
def test_a_file_that_no_collation_wrote_stays_unless_it_is_to_be_replaced(name, beside):
    Path("out").mkdir()
    if beside is not None:
        Path("out/train_metrics.json").write_text(json.dumps(beside))
    Path("out", name).write_text("mine\n")
    with pytest.raises(OutputExistsError, match=r"out/train\S+ is there already\. Replace it with --overwrite"):
        collated(TRAIN)
    assert Path("out", name).read_text() == "mine\n"
    collated(TRAIN, overwrite=True)
    assert len(read_rows("out/train.jsonl")) == 2


def test_what_a_collation_wrote_is_written_anew():
    collated(TRAIN)
    write_rows(Path("data/t.jsonl"), [question("1+1")] * 3)
    Path("data/t_metrics.json").unlink()
    collated(TRAIN)
    assert len(read_rows("out/train.jsonl")) == 3


def test_rows_that_lie_where_a_collation_wrote_others_stay():
    collated(TRAIN)
    told = Path("out/train_metrics.json").read_bytes()
    write_rows(Path("out/train.jsonl"), [question("mine"), question("mine too")])
    with pytest.raises(OutputExistsError, match=r"out/train\.jsonl is there already\. Replace it with --overwrite"):
        collated(TRAIN)
    assert (len(read_rows("out/train.jsonl")), Path("out/train_metrics.json").read_bytes()) == (2, told)


def test_metrics_without_their_rows_are_written_anew():
    collated(TRAIN)
    Path("out/train.jsonl").unlink()
    collated(TRAIN)
    assert len(read_rows("out/train.jsonl")) == 2


def test_rows_that_were_collated_are_a_data_set_that_its_metrics_do_not_contradict():
    collated({**TRAIN, "num_repeats": 2})
    cfg = parsed(sums([{**TRAIN, "jsonl_fpath": "out/train.jsonl"}]))
    made = collate(cfg, CollateRequest(("train",), Path("again")))
    assert made.types[0].rows == 4


def test_a_collation_that_is_stopped_leaves_what_was_there():
    def go_on():
        raise RunStoppedError("enough")

    collated(TRAIN)
    before = Path("out/train.jsonl").read_bytes()
    write_rows(Path("data/t.jsonl"), [question("1+1")] * 1000)
    with pytest.raises(RunStoppedError):
        collated(TRAIN, go_on=go_on)
    assert Path("out/train.jsonl").read_bytes() == before
    written = ["train.jsonl", "train.jsonl.sha256", "train_metrics.json"]
    assert sorted(path.name for path in Path("out").iterdir()) == written


@pytest.mark.parametrize("taken", ["out/train_metrics.json", "out/validation.jsonl", "data/t_metrics_conflict.json"])
def test_a_place_that_no_file_may_take_keeps_every_file_as_it_was(taken):
    write_rows(Path("out/train.jsonl"), [{"from": "yesterday"}])
    Path(taken).mkdir()
    with pytest.raises(InputError, match=f"{taken} is a folder"):
        collated(TRAIN, VALIDATION, overwrite=True)
    assert read_rows("out/train.jsonl") == [{"from": "yesterday"}]
    assert not Path("data/t_metrics.json").exists()
    assert [path.name for path in Path().rglob("*.tmp")] == []


def test_metrics_that_cannot_be_written_beside_a_data_set_keep_every_file_as_it_was():
    os.mkfifo("data/v_metrics_conflict.json")
    with pytest.raises(InputError, match=r"v_metrics_conflict\.json is no file"):
        collated(TRAIN, VALIDATION)
    assert not list(Path("out").iterdir())


def test_memory_does_not_follow_the_number_of_rows():
    def most_of(count):
        write_rows(Path("data/t.jsonl"), (question("1+1", answer="4", uuid="same") for _ in range(count)))
        tracemalloc.start()
        collated(TRAIN, overwrite_conflicts=True)
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most

    most_of(10)
    assert most_of(600) < most_of(100) + 100_000
