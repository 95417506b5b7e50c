"""How a run ends that did not finish: what its numbers cover, in which order it is told, and what a program reads."""

import contextlib
import io
import json
import sys

import pytest
from aiohttp import web

from cases.played import Played, called, failing
from rollbook.cli.entry import exit_code_of
from stub import adding, serving

TASKS = 10
STOPPING = ("--concurrency", "1", "+stop_after_failures=2")


@pytest.fixture
def played(tmp_path):
    """Ten tasks, of which the fifth and all after it fail."""
    with serving(failing(*range(4, TASKS))) as stub:
        yield Played(tmp_path, stub, adding(TASKS))


def in_one_stream(words):
    """Return what a command prints, in the order in which a terminal gets it."""
    both = io.StringIO()
    with contextlib.redirect_stdout(both), contextlib.redirect_stderr(both):
        exit_code_of(list(words))
    return both.getvalue()


def in_order(text, *parts):
    at = [text.index(part) for part in parts]
    return at == sorted(at)


@pytest.mark.parametrize("recorded", ["true", "false"])
def test_the_score_of_a_stopped_run_covers_the_whole_plan_in_text_json_and_status(recorded, played):
    said = played.run(*STOPPING, f"+record_omitted_rollouts={recorded}")
    assert "4 of 10 4 of 10 no headline" in said.text
    assert "4 of 10 rollouts are measured (40.0 %), and --min-coverage asks for 95 %" in said.text
    assert "task 9" not in said.text
    told = json.loads(played.run(*STOPPING, f"+record_omitted_rollouts={recorded}", "--overwrite", "--json").out)
    _, status = played.status()
    (agent,) = told["agents"]
    assert agent["coverage"] == told["coverage"] == status["agents"][0]["coverage"] == status["coverage"]
    assert (agent["tasks"], agent["coverage"]["planned"], agent["coverage"]["never_started"]) == (10, 10, 4)


def test_a_stopped_run_tells_its_scores_then_what_stopped_it_then_how_to_go_on(played):
    text = in_one_stream(played.words(*STOPPING))
    assert in_order(text, "Coverage:", "Error: ", f"What finished is in {played.output}. Go on with:\n  ")
    assert text.rstrip().endswith("--resume")


def test_a_run_that_produced_nothing_says_how_to_go_on_and_not_that_something_finished(played):
    played.stub.script = failing(*range(TASKS))
    text = in_one_stream(played.words())
    assert in_order(text, "Coverage:", "Error: None of the 10 dispatched rollouts", "Go on with:\n  ")
    assert "What finished is in" not in text


def test_the_json_of_a_run_says_which_run_it_is_why_it_ended_and_with_what(played):
    said = played.run(*STOPPING, "--json")
    told = json.loads(said.out)
    _, status = played.status()
    assert told["run_id"] == status["run_id"]
    assert told["exit_code"] == said.code != 0
    assert "failed" in told["stopped"]
    played.stub.script = lambda _row: None
    said = played.resume("--json")
    told = json.loads(said.out)
    assert (told["stopped"], told["exit_code"], told["run_id"]) == (None, 0, status["run_id"])


@pytest.mark.parametrize("flags", [("--concurrency", "3"), ("+adaptive_concurrency=true",)])
def test_the_limits_are_told_from_the_first_one_on_in_seconds_of_the_session(flags, played):
    played.stub.script = lambda _row: None
    changes = json.loads(played.run(*flags, "--json").out)["dispatch"]["concurrency"]
    assert (changes[0]["why"], changes[0]["at"]) == ("start", 0.0)
    assert changes[0]["limit"] == (3 if "3" in flags else 16)
    assert all(0 <= change["at"] < 60 for change in changes)


def test_metrics_that_could_not_be_computed_are_told_in_words_and_in_the_warnings_of_the_document(played):
    async def breaks():
        raise web.HTTPInternalServerError(text="no metrics today")

    played.stub.script, played.stub.before_metrics = lambda _row: None, breaks
    said = played.run("--json")
    assert "could not be computed" in said.err
    assert "{'" not in said.err
    (warning,) = json.loads(said.out)["warnings"]
    assert "could not be computed: ClientResponseError: no metrics today; those that any server" in warning


DRIVER = """
import json

async def writes_all(settings, config):
    with open(settings.output_jsonl_fpath, "a") as file:
        for line in open(settings.materialized_jsonl_fpath):
            file.write(json.dumps(json.loads(line) | {"reward": 1.0, "response": {"output": [], "id": "r"}}) + "\\n")

async def writes_nothing(settings, config):
    pass

async def takes_one(settings):
    pass
"""


@pytest.fixture
def driven(tmp_path, monkeypatch):
    (tmp_path / "my_other_drivers.py").write_text(DRIVER)
    monkeypatch.syspath_prepend(str(tmp_path))
    output = ("-o", str(tmp_path / "out" / "r.jsonl"), "--limit", "3")
    words = ["eval", "run", "--resources-server", "mcqa", "--model-type", "simulated_model", *output]
    yield lambda name: called([*words, f"+rollout_collection_driver=my_other_drivers:{name}"])
    sys.modules.pop("my_other_drivers", None)


def test_the_last_line_of_a_run_that_a_driver_drove_says_what_it_wrote(driven):
    assert "3/3 finished (100%) · mean reward 1.000 over 3" in driven("writes_all").err


def test_a_driver_that_writes_nothing_is_told_by_its_name(driven):
    said = driven("writes_nothing")
    assert said.code != 0
    assert "None of the 3 rollouts left to my_other_drivers:writes_nothing produced a result" in said.text


def test_a_driver_that_takes_other_arguments_is_refused_with_its_file_and_line(driven, tmp_path):
    said = driven("takes_one")
    line = DRIVER[: DRIVER.index("async def takes_one")].count("\n") + 1
    assert f"({tmp_path / 'my_other_drivers.py'}:{line}) takes (settings)" in said.text
    assert not (tmp_path / "out").exists()
