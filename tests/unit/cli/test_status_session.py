"""`gym eval status` and `gym eval explain` over runs that a function tells."""

import json
import sys
from types import SimpleNamespace

import click
import pytest
from msgspec.structs import replace

from rollbook.cli.entry import exit_code_of
from rollbook.cli.explain_session import show_not_scored, show_story
from rollbook.cli.status_session import WATCH_S, Asked, show_status
from rollbook.clock import SystemClock
from rollbook.records.identity import RolloutKey
from rollbook.records.run_status import RunState
from rollbook.records.standing import Coverage
from rollbook.records.story import AllNotScored, Chapter, NotScored, Story
from statuses import damaged, finished, run_of_six


class PassingClock(SystemClock):
    """Nobody waits: every sleep is over at once, and counted."""

    def __init__(self):
        self.slept = []

    async def sleep(self, seconds):
        self.slept.append(seconds)


SETTLED = finished(coverage=Coverage(planned=3, scored=2, failed=1, settled=1))


@pytest.fixture
def output(tmp_path):
    path = tmp_path / "r.jsonl"
    path.touch()
    return path


def told(*statuses):
    """Tell one status after the other, the last one for good."""
    left = list(statuses)
    return lambda output: replace(left.pop(0) if len(left) > 1 else left[0], output=output)


@pytest.mark.parametrize(
    ("status", "require_complete", "code"),
    [
        (finished(), False, 0),
        (run_of_six(), False, 3),
        (run_of_six(), True, 4),
        (SETTLED, False, 0),
        (SETTLED, True, 4),
        (damaged(), True, 5),
    ],
)
def test_the_exit_code_says_whether_a_resume_would_help(status, require_complete, code, output, capsys):
    asked = Asked((str(output),), require_complete=require_complete)
    assert show_status(asked, told(status)) == code
    assert str(output) in capsys.readouterr().out


def test_several_runs_end_with_the_gravest_code_and_are_summed(tmp_path, capsys):
    outputs = [tmp_path / "a.jsonl", tmp_path / "b.jsonl"]
    for path in outputs:
        path.touch()
    assert show_status(Asked(tuple(map(str, outputs)), as_json=True), told(finished(), run_of_six())) == 3
    document = json.loads(capsys.readouterr().out)
    assert (document["inputs"], document["outstanding"]) == (9, 2)
    assert [run["output"] for run in document["runs"]] == list(map(str, outputs))


def test_watching_goes_on_until_no_process_works_on_the_run(output, capsys):
    running, clock = run_of_six(state=RunState.RUNNING), PassingClock()
    more = replace(running, attempts=9)
    assert show_status(Asked((str(output),), watch=True), told(running, more, finished()), clock) == 0
    assert clock.slept == [WATCH_S, WATCH_S]
    said = capsys.readouterr().out
    assert said.count("State ") == 3
    assert "8 reserved" in said
    assert "9 reserved" in said


def test_a_file_that_is_watched_into_gets_no_text_twice(output, capsys):
    running = run_of_six(state=RunState.RUNNING)
    show_status(Asked((str(output),), watch=True), told(running, running, running, finished()), PassingClock())
    assert capsys.readouterr().out.count("State ") == 2


def test_watching_a_run_that_nobody_works_on_shows_it_once(output, capsys):
    clock = PassingClock()
    assert show_status(Asked((str(output),), watch=True), told(run_of_six()), clock) == 3
    assert clock.slept == []
    assert capsys.readouterr().out.count("State ") == 1


def test_watching_in_json_prints_one_document_at_the_end(output, capsys):
    running = run_of_six(state=RunState.RUNNING)
    show_status(Asked((str(output),), as_json=True, watch=True), told(running, finished()), PassingClock())
    assert json.loads(capsys.readouterr().out)["state"] == "finished"


def test_a_run_that_is_not_there_is_a_mistake_in_the_command(tmp_path):
    with pytest.raises(click.UsageError, match="no run is there"):
        show_status(Asked((str(tmp_path / "r.jsonl"),)), told(finished()))


@pytest.mark.parametrize("arguments", [["eval", "status"], ["eval", "explain"]])
def test_a_command_without_an_output_is_refused(arguments, capsys):
    assert exit_code_of(arguments) == 2
    assert "OUTPUT" in capsys.readouterr().err


def story_of(output, key):
    chapters = (Chapter(0, 1, "scored reward=1.0", f"{output.name}:1"),) if key == RolloutKey(3, 1) else ()
    return Story(key, bool(chapters), chapters, "scored", "leave it: a result stands")


@pytest.mark.parametrize("words", [("3", "1"), ("3-1",)])
def test_a_rollout_is_named_by_two_numbers_or_as_one_word(words, output, capsys):
    show_story(str(output), words, story_of, as_json=False)
    assert "attempt 0, session 1: scored reward=1.0" in capsys.readouterr().out


def test_a_story_in_json_is_one_document(output, capsys):
    show_story(str(output), ("3-1",), story_of, as_json=True)
    assert json.loads(capsys.readouterr().out)["stands"] == "scored"


@pytest.mark.parametrize("words", [("3",), ("3", "x"), ("3", "1", "2"), ("-1", "0"), ("3-1", "2")])
def test_words_that_are_no_rollout_are_refused(words, output):
    with pytest.raises(click.UsageError, match="two numbers, for example 3 0"):
        show_story(str(output), words, story_of, as_json=False)


def test_a_rollout_that_the_run_does_not_know_is_refused(output):
    with pytest.raises(click.UsageError, match="no rollout 7-7 is planned"):
        show_story(str(output), ("7", "7"), story_of, as_json=False)


def test_without_a_rollout_those_that_are_not_scored_are_listed(output, capsys):
    groups = AllNotScored((NotScored("untouched", owed=True, count=2, first=(RolloutKey(0, 0), RolloutKey(0, 1))),))
    show_not_scored(str(output), lambda _: groups, as_json=False)
    assert "A resume would run 2 untouched" in capsys.readouterr().out
    show_not_scored(str(output), lambda _: groups, as_json=True)
    assert json.loads(capsys.readouterr().out)["not_scored"] == 2


@pytest.fixture
def reading(monkeypatch):
    """Stand in for the verbs that read a run's files."""

    def not_scored(output):
        return AllNotScored((NotScored("untouched", owed=True, count=1, first=(RolloutKey(0, 0),)),))

    verbs = SimpleNamespace(status_with_headlines=told(run_of_six()), story_of=story_of, not_scored=not_scored)
    monkeypatch.setitem(sys.modules, "rollbook.verbs.status", verbs)


@pytest.mark.parametrize(("flags", "code"), [([], 3), (["--require-complete"], 4), (["--watch"], 3)])
def test_the_exit_code_of_the_session_is_that_of_the_program(flags, code, output, reading, capsys):
    assert exit_code_of(["eval", "status", str(output), *flags]) == code
    assert "A resume would run 2 rollouts:" in capsys.readouterr().out


def test_json_is_asked_for_before_and_after_the_verb(output, reading, capsys):
    assert exit_code_of(["--json", "eval", "status", str(output)]) == 3
    before = json.loads(capsys.readouterr().out)
    exit_code_of(["eval", "status", str(output), "--json"])
    assert json.loads(capsys.readouterr().out) == before


@pytest.mark.parametrize(
    ("rollout", "said"), [([], "1 rollout not scored"), (["3", "1"], "Rollout 3-1"), (["3-1"], "Rollout 3-1")]
)
def test_explaining_is_no_failure_whatever_the_story(rollout, said, output, reading, capsys):
    assert exit_code_of(["eval", "explain", str(output), *rollout]) == 0
    assert said in capsys.readouterr().out
