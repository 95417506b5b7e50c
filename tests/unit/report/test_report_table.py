"""The report of a run, as text and as JSON."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from rollbook.records.identity import RolloutKey
from rollbook.records.outcome import Failed, Scored
from rollbook.records.record import Record
from rollbook.records.standing import Coverage, Standings
from rollbook.report.json_report import json_report
from rollbook.report.plain import plain
from rollbook.report.table import WIDTH, render
from rollbook.report.table import folded as folded_text
from rollbook.report.words import mean_with_error, number, shown
from rollbook.scoring.tally import AgentScore, Tally

FILES = {"rollouts": Path("/runs") / ("long" * 30) / "rollouts.jsonl", "failures": Path("/runs/bad\n.jsonl")}
OUTCOMES = {(task, rollout): Scored(float(rollout == 0 or task == 1)) for task in range(4) for rollout in range(2)}
OUTCOMES |= {(2, 1): Failed("agent_run_error"), (3, 0): Failed("agent_run_error"), (3, 1): Failed("judge_failed")}


def folded(fold, agents=("math",)):
    for (task, rollout), outcome in OUTCOMES.items():
        fold.add(Record(RolloutKey(task, rollout), 0, outcome, agent=agents[task % len(agents)]))
    return fold


def report(agents=("math",)):
    return folded(Tally(), agents).scores(), folded(Standings(), agents).coverage(9), FILES


def test_the_text_says_who_did_how_well_over_what_and_where_to_look():
    text = render(*report())
    assert text.splitlines() == [
        "          Tasks    Rollouts",
        "  Agent   scored   scored     Mean ± SE     pass@k",
        " " + "─" * 67,
        "  math    3 of 4   5 of 8     no headline   @1 0.833 (3 of 4 tasks)",
        "                                            @2 1.000 (2 of 4 tasks)",
        "",
        "math: no headline",
        "  5 of 8 rollouts are measured (62.5 %), and --min-coverage asks for 95 %",
        "  observed all the same: 0.800 ± 0.183",
        "  were the others all 0 or all 1, it would be 0.500 to 0.875",
        "Coverage: 5 of 9 rollouts scored (3 failed (2 agent_run_error, 1 judge_failed),",
        "1 untouched)",
        "",
        "Tasks to look at first",
        "math task 3: mean n/a, 0 of 2 rollouts scored (2 failed (1 agent_run_error, 1",
        "judge_failed))",
        "math task 0: mean 0.500, 2 of 2 rollouts scored",
        "",
        "Files",
        f"rollouts: {FILES['rollouts']}",
        "failures: /runs/bad\\n.jsonl",
    ]


def test_several_agents_each_say_what_their_score_covers():
    text = render(*report(("even", "odd")))
    assert "even: 3 of 4 rollouts scored (1 failed (1 agent_run_error))" in text
    assert "odd: 2 of 4 rollouts scored (2 failed (1 agent_run_error, 1 judge_failed))" in text


SHORT = {"rollouts": FILES["rollouts"]}


@pytest.mark.parametrize("agents", [("math",), ("even", "odd"), ("a", "b", "an-agent-of-24-characters"), ("ünï±",)])
def test_what_fits_is_laid_out_as_the_terminal_library_does(agents):
    tally = Tally()
    for task, agent in enumerate(agents):
        for rollout in range(2 + task % 2):
            tally.add(Record(RolloutKey(task, rollout), 0, Scored(rollout / 3), agent=agent))
    told = (tally.scores(), Coverage(planned=9, scored=9), SHORT)
    assert plain(*told, WIDTH) == folded_text(*told)


def test_no_score_is_laid_out_as_the_terminal_library_does():
    told = (Tally().scores(), Coverage(planned=2, failed=2, settled=2), SHORT)
    assert plain(*told, WIDTH) == folded_text(*told)


@pytest.mark.parametrize("agents", [("n" * 60,), ("数学",), ("a\u0301",)])
def test_what_does_not_fit_is_left_to_the_terminal_library(agents):
    told = report(agents)
    assert plain(*told, WIDTH) is None
    assert render(*told) == folded_text(*told)


@pytest.mark.parametrize(
    "name", ["\x1b[31mred", "nul\x00", "a\rb", "bell\x07", "rtl\u202e", "two\nlines", "tab\t", "\ud800"]
)
def test_a_hostile_name_reaches_the_terminal_escaped(name):
    text = render(*report((name,)))
    assert all(character.isprintable() or character == "\n" for character in text)
    assert shown(name) in text


def test_brackets_in_a_name_are_no_markup():
    assert "[red]x[/red]" in render(*report(("[red]x[/red]",)))


def test_every_line_but_a_path_fits_into_eighty_columns():
    lines = render(*report(("agent_with_a_name_of_40_columns_or_so",))).splitlines()
    assert max(len(line) for line in lines if not line.startswith("rollouts:")) <= 80


def test_no_word_of_a_line_is_broken_however_long_it_is():
    name = "agent_with_a_name_" * 9
    assert f"\n{name}\ntask 3: mean n/a, 0 of 2 rollouts scored" in render(*report((name,)))


def test_without_records_the_text_says_so_instead_of_a_number():
    assert render(Tally().scores(), Coverage(planned=2, untouched=2), {}).splitlines() == [
        "No rollout left a record, so there is no score.",
        "Coverage: 0 of 2 rollouts scored (2 untouched)",
    ]


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "n/a"), (0.0, "0.000"), (0.12345, "0.123"), (-2.0, "-2.000"), (1.5e-5, "1.500e-05"), (3e9, "3.000e+09")],
)
def test_a_number_is_never_shown_as_a_zero_that_it_is_not(value, text):
    assert number(value) == text


@pytest.mark.parametrize(
    ("mean", "error", "text"),
    [
        (0.3, 2.6e-17, "0.300 ± 0.000"),
        (0.3, 1e-4, "0.300 ± 1.000e-04"),
        (0.0, 1e-20, "0.000 ± 1.000e-20"),
        (1e-20, 1e-21, "1.000e-20 ± 1.000e-21"),
        (0.3, None, "0.300 ± n/a"),
        (None, None, "n/a"),
    ],
)
def test_an_error_that_only_adding_up_left_is_shown_as_none(mean, error, text):
    assert mean_with_error(AgentScore("a", 2, 2, mean, error, (), Coverage(planned=2, scored=2)).headline()) == text


def test_the_json_counts_every_rollout_and_lists_the_task_without_a_score():
    values = json_report(*report())
    assert json.loads(json.dumps(values, allow_nan=False)) == values
    assert values["coverage"].items() >= {"planned": 9, "scored": 5, "failed": 3, "untouched": 1}.items()
    assert values["agents"][0].items() >= {"agent": "math", "mean_reward": 0.8, "tasks": 4, "scored_tasks": 3}.items()
    assert values["agents"][0]["pass_at_k"][1] == {"k": 2, "value": 1.0, "tasks": 2, "short_tasks": 2}
    assert [(task["task"], task["mean_reward"]) for task in values["worst_tasks"]] == [(3, None), (0, 0.5)]
    assert values["files"]["failures"] == "/runs/bad\n.jsonl"


def test_the_terminal_library_is_loaded_only_when_a_report_is_made():
    code = "import sys, rollbook.report.table, rollbook.report.json_report; sys.exit('rich' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
