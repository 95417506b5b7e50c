"""Dataset entries: licences, sources, kinds."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from rollbook.config.datasets import dataset_from
from rollbook.config.types import BenchmarkDatasetConfig, DatasetConfig, License, ModelServerRef, ServerInstanceConfig

TRAIN = {"name": "d", "type": "train", "jsonl_fpath": "d.jsonl", "license": "MIT"}
GITLAB = {"dataset_name": "d", "version": "1", "artifact_fpath": "d.jsonl"}
HUB = {"repo_id": "o/d", "artifact_fpath": None}


@pytest.mark.parametrize("name", [str(one) for one in License])
def test_the_licences_of_the_list_are_accepted(name):
    assert dataset_from({**TRAIN, "license": name}).license == name


@pytest.mark.parametrize(
    ("entry", "told"),
    [
        ({**TRAIN, "license": None}, "`license` is required for train data; one of: Apache 2.0"),
        ({**TRAIN, "type": "validation", "license": None}, "`license` is required for validation data"),
        ({**TRAIN, "license": "WTFPL"}, "license"),
        ({**TRAIN, "num_repeats": 0}, "num_repeats"),
        ({**TRAIN, "type": "test"}, "'train', 'validation', 'example'"),
        ({**TRAIN, "source": {"type": "gitlab", **GITLAB}, "gitlab_identifier": GITLAB}, "`source` excludes"),
        ({**TRAIN, "source": {"type": "ftp"}}, "'gitlab', 'huggingface'"),
        ({"name": "b", "type": "benchmark", "jsonl_fpath": "b.jsonl"}, "prepare_script"),
    ],
)
def test_an_entry_that_does_not_fit_is_refused(entry, told):
    with pytest.raises(ValidationError, match=None) as caught:
        dataset_from(entry)
    assert told in str(caught.value)


def test_example_data_need_no_licence():
    entry = dataset_from({"name": "d", "type": "example", "jsonl_fpath": "d.jsonl"})
    assert isinstance(entry, DatasetConfig)
    assert (entry.license, entry.num_repeats, entry.prepare_dependencies) == (None, 1, [])


def test_a_benchmark_may_pin_its_agent():
    entry = dataset_from(
        {"name": "b", "type": "benchmark", "jsonl_fpath": "b.jsonl", "prepare_script": "prepare.py", "agent": "a"}
    )
    assert isinstance(entry, BenchmarkDatasetConfig)
    assert entry.agent == "a"


@pytest.mark.parametrize(
    ("key", "kind", "value"), [("gitlab_identifier", "gitlab", GITLAB), ("huggingface_identifier", "huggingface", HUB)]
)
def test_source_and_identifier_mirror_each_other(key, kind, value):
    by_source = dataset_from({**TRAIN, "source": {"type": kind, **value}})
    assert getattr(by_source, key).model_dump(exclude={"type"}) == value
    with pytest.warns(DeprecationWarning, match="source"):
        by_identifier = dataset_from({**TRAIN, key: value})
    assert by_identifier.source.model_dump() == {**value, "type": kind}


def test_a_reference_has_the_type_of_its_class():
    assert ModelServerRef(type="responses_api_models", name="m").name == "m"
    with pytest.raises(ValidationError):
        ModelServerRef(type="resources_servers", name="m")


def test_an_instance_finds_its_folder_and_data(write, here):
    write("resources_servers/colours/app.py")
    entry = {"name": "d", "type": "example", "jsonl_fpath": "d.jsonl"}
    instance = ServerInstanceConfig("c", "resources_servers", "colours", {"entrypoint": "app.py", "datasets": [entry]})
    assert instance.dir_path == here / "resources_servers/colours"
    assert [data.name for data in instance.datasets] == ["d"]
    assert (instance.host, instance.port, instance.num_workers) == (None, None, 1)


def test_a_folder_without_the_entry_point_is_passed_over(write, here, monkeypatch):
    write("first/resources_servers/colours/README.md")
    write("resources_servers/colours/app.py")
    monkeypatch.setenv("NEMO_GYM_EXTRA_ROOTS", "first")
    instance = ServerInstanceConfig("c", "resources_servers", "colours", {"entrypoint": "app.py"})
    assert instance.dir_path == here / "resources_servers/colours"


def test_an_instance_shows_its_address():
    settings = {"entrypoint": "app.py", "host": "h", "port": 7, "num_workers": 3}
    instance = ServerInstanceConfig("c", "resources_servers", "colours", settings)
    assert (instance.host, instance.port, instance.num_workers, instance.datasets) == ("h", 7, 3, ())


def test_the_script_that_writes_a_data_set_is_a_path_and_told_as_text():
    given = {"name": "d", "type": "example", "jsonl_fpath": "d.jsonl", "prepare_script": "environments/d/prepare.py"}
    read = DatasetConfig.model_validate(given)
    assert read.prepare_script == Path("environments/d/prepare.py")
    assert read.model_dump(mode="json")["prepare_script"] == "environments/d/prepare.py"
