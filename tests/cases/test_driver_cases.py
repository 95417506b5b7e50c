"""A run that a function of the user's drives, from the command line to its scores."""

import json
import sys

import pytest

from cases.played import called
from rollbook.api.unsupported import LATER

pytestmark = pytest.mark.skipif("rollout_collection_driver" in LATER, reason="the option is refused")

DRIVER = """
import json
from pathlib import Path

calls = []

async def every_second(settings, config):
    calls.append(settings.resume_from_cache)
    output = Path(settings.output_jsonl_fpath)
    there = {json.loads(line)["_ng_task_index"] for line in open(output)} if output.exists() else set()
    for line in open(settings.materialized_jsonl_fpath):
        row = json.loads(line)
        task = row["_ng_task_index"]
        if task in there or (task % 2 and not settings.resume_from_cache):
            continue
        agent = row["agent_ref"]["name"]
        assert agent in config
        with output.open("a") as file:
            file.write(json.dumps(row | {"reward": 1.0, "response": {"output": [], "id": "r"}}) + "\\n")

async def fails(settings, config):
    return config["no such server"].port
"""


@pytest.fixture
def drivers(tmp_path, monkeypatch):
    (tmp_path / "my_drivers.py").write_text(DRIVER)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield sys.modules
    sys.modules.pop("my_drivers", None)


def run(tmp_path, function, *flags):
    output = ("-o", str(tmp_path / "out" / "r.jsonl"), "--limit", "4")
    words = ["eval", "run", "--resources-server", "mcqa", "--model-type", "simulated_model", *output, *flags]
    return called([*words, f"+rollout_collection_driver=my_drivers:{function}"])


def status(tmp_path):
    said = called(["eval", "status", "--json", str(tmp_path / "out" / "r.jsonl")])
    return said.code, json.loads(said.out)["runs"][0]


def test_what_a_driver_leaves_out_is_owed_and_its_resume_sends_it(drivers, tmp_path):
    said = run(tmp_path, "every_second")
    assert said.code == 3, said.text
    code, told = status(tmp_path)
    assert (code, told["coverage"]["scored"], told["owed_by"]) == (3, 2, {"untouched": 2})
    assert run(tmp_path, "every_second", "--resume").code == 0
    code, told = status(tmp_path)
    assert (code, told["coverage"]["scored"], told["outstanding"], told["law_holds"]) == (0, 4, 0, True)
    assert drivers["my_drivers"].calls == [False, True]
    assert json.loads((tmp_path / "out" / "r_aggregate_metrics.json").read_bytes())


def test_what_a_driver_raises_is_one_error_that_names_it(drivers, tmp_path):
    said = run(tmp_path, "fails")
    assert said.code == 1
    assert "my_drivers:fails" in said.text
    assert "defect of ours" not in said.text


def test_a_driver_that_is_not_there_ends_the_command_before_anything_is_written(drivers, tmp_path):
    said = run(tmp_path, "every_third")
    assert said.code == 1
    assert "has no function `every_third`" in said.text
    assert not (tmp_path / "out").exists()
