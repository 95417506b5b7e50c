"""How a run is, as text and as JSON."""

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from rollbook.records.headline import Measured
from rollbook.records.run_status import GroupStatus, RunState
from rollbook.records.standing import Coverage
from rollbook.report.status_json import recovery, status_json
from rollbook.report.status_text import status_text
from rollbook.report.status_words import DAMAGE_SHOWN, WIDTH, duration, law_in_words
from rollbook.scoring.headline import headline_of
from statuses import OUTPUT, SIX, damaged, finished, run_of_six

COMMAND = "Go on: gym eval run -i a.jsonl --resume --output out/rollouts.jsonl"


def document(*statuses, require_complete=False):
    return json.loads(json.dumps(status_json(statuses, require_complete=require_complete)))


def test_a_run_is_told_with_its_law_its_agents_its_sessions_and_what_a_resume_would_do():
    assert status_text([run_of_six()]).splitlines() == [
        "Run       out/rollouts.jsonl, run 5f1c",
        "State     not finished: no process works on it, and something is owed",
        "Law       6 planned = 2 scored + 0 masked + 0 unscored + 3 failed (1 retryable,",
        "          1 settled, 1 exhausted, 0 held) + 0 interrupted (0 held) + 0 never",
        "          started + 0 in flight + 1 untouched: holds",
        "Failed    2 agent_run_error, 1 skipped",
        "Attempts  8 reserved, 1 of them never ran; a rollout may fail 3 times",
        "Time      started 2026-09-20T10:00:00Z, 12 min 5 s of work in 2 sessions",
        "Tokens    40 input_tokens, 20 output_tokens",
        "",
        "Agents",
        "  math_agent on math_env: 2 of 6 rollouts scored (3 failed (2 agent_run_error, 1",
        "    skipped), 1 untouched)",
        "",
        "Sessions",
        "  1: 2026-09-20T10:00:00Z to 2026-09-20T10:05:00Z, interrupted: SIGTERM, node7",
        "    pid 41",
        "    gym eval run -i a.jsonl",
        "  2: 2026-09-20T11:00:00Z and its process died, node8 pid 42",
        "    gym eval run -i a.jsonl --resume",
        "",
        "A resume would run 2 rollouts:",
        "  1 retryable (failed, and the cap leaves another attempt)",
        "  1 untouched (nothing was written about them yet)",
        "It would leave 4 rollouts:",
        "  2 scored (a reward counts)",
        "  1 settled (failed for good)",
        "  1 exhausted (failed as often as the cap allows)",
        COMMAND,
        "",
        "Notes",
        "  the sidecar ends in half a row",
    ]


def test_a_law_that_does_not_hold_says_so_with_its_numbers():
    assert law_in_words(SIX).endswith(": holds")
    assert law_in_words(Coverage(planned=1, scored=2)).startswith("1 planned = 2 scored + 0 masked")
    assert law_in_words(Coverage(planned=1, scored=2)).endswith(": VIOLATED")
    assert law_in_words(Coverage(planned=1, scored=1, unplanned=2)).endswith(", and 2 beyond the plan: VIOLATED")


def test_a_finished_run_is_not_told_to_go_on():
    text = status_text([finished()])
    assert "A resume would run nothing." in text
    assert "--resume --output" not in text


def test_a_running_run_is_told_what_is_left_and_not_to_be_resumed():
    text = status_text([run_of_six(state=RunState.RUNNING)])
    assert "Still to run 2 rollouts:" in text
    assert "until now, running" in text
    assert "died" not in text
    assert "--resume --output" not in text


def test_damage_stands_first_with_its_places_and_no_resume_is_offered():
    text = status_text([damaged()])
    assert text.splitlines()[:2] == ["DAMAGED", "  out/rollouts.jsonl:1: is no JSON object"]
    assert "--resume --output" not in text
    assert "Do not resume it" in text


def test_a_run_whose_law_is_violated_is_not_told_to_go_on():
    assert "--resume --output" not in status_text([run_of_six(coverage=Coverage(planned=6, scored=9))])


def test_a_file_that_is_damaged_throughout_does_not_fill_the_screen():
    text = status_text([damaged(places=5000)])
    assert text.count("is no JSON object") == DAMAGE_SHOWN
    assert f"and {5000 - DAMAGE_SHOWN} more places; --json names all" in text
    assert len(document(damaged(places=5000))["runs"][0]["damage"]) == 5000


def test_several_runs_are_listed_and_summed():
    lines = status_text([run_of_six(), finished(output=Path("out/other.jsonl")), damaged()]).splitlines()
    assert lines[0] == "out/rollouts.jsonl"
    assert lines[1].startswith("  not finished; 2 of 6 rollouts scored")
    assert "out/other.jsonl" in lines
    assert "    out/rollouts.jsonl:1: is no JSON object" in lines
    assert lines[-6] == "3 runs"
    assert lines[-5].startswith("Law       15 planned = 7 scored")
    assert lines[-2] == "Owed      2 retryable, 2 untouched"
    assert lines[-1] == "Left      7 scored, 2 settled, 2 exhausted"


def test_no_line_is_wider_than_a_terminal_but_paths_and_commands():
    wide = run_of_six(groups=(GroupStatus("a" * 40, "s" * 30, SIX, None),), notes=("word " * 60,))
    free = ("Run ", "    gym eval", "Go on:")
    assert [line for line in status_text([wide]).splitlines() if len(line) > WIDTH and not line.startswith(free)] == []


def test_a_path_is_never_broken_and_can_be_typed():
    output = Path("/runs") / ("long " * 30) / "it's.jsonl"
    text = status_text([run_of_six(output=output)])
    assert any(line.startswith("Run ") and str(output) in line for line in text.splitlines())
    assert any(line.startswith("Go on: ") and line.endswith("""/it'"'"'s.jsonl'""") for line in text.splitlines())


def last_command(command):
    first, last = run_of_six().sessions
    return run_of_six(sessions=(first, replace(last, command=command)))


def go_on(status):
    (line,) = [line for line in status_text([status]).splitlines() if line.startswith("Go on")]
    return line


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("gym eval run -o x.jsonl --overwrite --limit 2", "gym eval run --limit 2"),
        ("gym eval run --output=x.jsonl -i 'my rows.jsonl' --resubmit", "gym eval run -i 'my rows.jsonl'"),
        ("gym eval run -ox.jsonl --take-over overwrite=true ++resubmit=true +a=b", "gym eval run +a=b"),
        ("__main__.py eval run --output x.jsonl -i a", "gym eval run -i a"),
    ],
)
def test_what_to_type_is_the_last_command_turned_into_one_that_goes_on(command, told):
    assert go_on(last_command(command)) == f"Go on: {told} --resume --output out/rollouts.jsonl"


def test_an_output_that_an_override_names_stays_where_it_is():
    assert go_on(last_command("gym eval run +output_jsonl_fpath=a")).endswith("+output_jsonl_fpath=a --resume")


def test_a_credential_that_was_masked_is_to_be_put_back():
    told = status_text([last_command("gym eval run --model-api-key '<credential>'")])
    assert "Go on: gym eval run --model-api-key '<credential>' --resume" in told
    assert "Put back what <credential> stands for" in told
    assert "Put back" not in status_text([run_of_six()])


def test_a_run_that_no_command_started_is_told_what_to_add():
    added = "Go on with the command that started it, and --resume --output out/rollouts.jsonl"
    assert go_on(last_command("")) == added
    assert go_on(run_of_six(sessions=())) == added


def test_a_run_that_runs_its_own_plan_is_told_the_whole_command():
    rows = Path("my out/rollouts_materialized_inputs.jsonl")
    told = f"Go on: gym eval run --no-serve --input '{rows}' --resume --output out/rollouts.jsonl"
    assert go_on(replace(last_command(""), input=rows)) == told
    assert "--no-serve" not in go_on(replace(last_command("gym eval run -i a"), input=rows))


def test_a_long_command_is_cut_in_text_and_whole_in_json():
    long = last_command("gym eval run " + "x" * 1000)
    assert not [line for line in status_text([long]).splitlines() if "x" * 501 in line and not line.startswith("Go on")]
    assert "x" * 1000 in document(long)["runs"][0]["sessions"][-1]["command"]


def test_what_decides_about_held_rollouts_is_told():
    text = " ".join(status_text([run_of_six(coverage=replace(SIX, failed=4, planned=7, held=1))]).split())
    assert "gym eval reverify" in text
    assert "--resubmit" in text


def test_text_from_data_cannot_drive_the_terminal():
    text = status_text([run_of_six(groups=(GroupStatus("\x1b[31mred", "\x9b", SIX, None),), run_id="\x07")])
    assert all(line.isprintable() for line in text.splitlines())
    assert "\\x1b[31mred" in text


def test_a_mean_stands_with_its_error_and_is_withheld_below_the_share_that_a_headline_speaks_for():
    headlines = {name: headline_of(Measured(0.5, 0.1, 4, 12, planned)) for name, planned in (("a", 12), ("b", 24))}
    text = " ".join(status_text([run_of_six(headlines=headlines)]).split())
    assert "a: 0.500 ± 0.100 over 4 tasks, 95 % interval 0.182 to 0.818" in text
    assert "b: no headline 12 of 24 rollouts are measured (50.0 %), and --min-coverage asks for 95 %" in text
    assert "observed all the same: 0.500 ± 0.100 were the others all 0 or all 1, it would be 0.250 to 0.750" in text


def test_an_interval_beyond_the_rewards_is_told_to_be_rough():
    headlines = {"a": headline_of(Measured(0.9, 0.1, 4, 12, 12)), "b": headline_of(Measured(0.5, 0.1, 4, 12, 12))}
    text = " ".join(status_text([run_of_six(headlines=headlines)]).split())
    assert text.count("the interval reaches beyond 0 to 1, where every reward lies: it is rough") == 1


def test_a_headline_of_nothing_says_that_nothing_is_scored():
    nothing = {"a": headline_of(Measured(None, None, 0, 0, 6))}
    assert "a: no headline nothing is scored" in " ".join(status_text([run_of_six(headlines=nothing)]).split())


@pytest.mark.parametrize(
    ("seconds", "told"),
    [(None, "n/a"), (0.25, "0.2 s"), (59.0, "59.0 s"), (61, "1 min 1 s"), (3599.6, "1 h 0 min"), (7260, "2 h 1 min")],
)
def test_a_duration_is_told_for_people(seconds, told):
    assert duration(seconds) == told


def test_json_counts_what_is_left_as_a_resume_counts_it():
    told = document(run_of_six())
    keys = ("inputs", "succeeded", "terminal", "at_cap", "outstanding")
    assert [told[key] for key in keys] == [6, 2, 1, 1, 2]
    assert [told["runs"][0][key] for key in keys] == [6, 2, 1, 1, 2]
    assert told["expected"] == 6


EVERYTHING = Coverage(
    planned=21, scored=1, masked=2, unscored=1, failed=10, interrupted=3, never_started=1, in_flight=1, untouched=2
)
SPLIT = replace(EVERYTHING, retryable=1, settled=2, exhausted=3, held=4, approved=1, held_interrupted=2)


@pytest.mark.parametrize("status", [run_of_six(), finished(), damaged(), run_of_six(coverage=SPLIT)])
def test_the_counts_add_up_to_the_plan(status):
    told = document(status)
    parts = ("succeeded", "terminal", "at_cap", "held", "in_flight", "outstanding")
    assert sum(told[key] for key in parts) == told["inputs"]
    assert sum(told["recovery"].values()) == told["inputs"]


def test_the_keys_are_the_same_whatever_the_run():
    bare = run_of_six(sessions=(), groups=(), tokens=None, run_id=None, started_at=None, elapsed_s=None, notes=())
    assert document(bare).keys() == document(finished(), damaged()).keys()
    assert document(bare)["runs"][0].keys() == document(damaged())["runs"][0].keys()


def test_the_exit_code_in_json_is_the_one_of_the_command():
    assert document(run_of_six())["exit_code"] == 3
    assert document(run_of_six(), require_complete=True)["exit_code"] == 4
    assert document(finished(), damaged())["exit_code"] == 5
    assert [run["exit_code"] for run in document(finished(), damaged())["runs"]] == [0, 5]


@pytest.mark.parametrize(
    ("statuses", "told"),
    [
        ([finished()], "finished"),
        ([finished(), run_of_six()], "interrupted"),
        ([run_of_six(), finished(state=RunState.RUNNING)], "running"),
        ([damaged(), finished(state=RunState.RUNNING)], "damaged"),
    ],
)
def test_several_runs_are_in_the_gravest_state_of_any(statuses, told):
    assert document(*statuses)["state"] == told


def test_the_fields_recovery_words_count_each_rollout_once():
    coverage = Coverage(
        planned=36,
        scored=1,
        masked=2,
        unscored=3,
        failed=15,
        interrupted=4,
        never_started=3,
        in_flight=2,
        untouched=6,
        retryable=3,
        settled=5,
        exhausted=4,
        held=3,
    )
    counted = recovery(coverage, final_zeros=2)
    assert counted == {
        "scored": 1,
        "masked": 2,
        "unscored": 3,
        "model_final": 2,
        "terminal": 3,
        "exhausted": 4,
        "judge_recoverable": 3,
        "retryable": 3,
        "omitted": 7,
        "missing": 8,
    }
    assert sum(counted.values()) == coverage.planned


def test_agents_and_sessions_are_in_the_json():
    (run,) = document(run_of_six())["runs"]
    assert run["output"] == str(OUTPUT)
    assert run["agents"][0]["mean_reward"] == 0.5
    assert run["agents"][0]["failure_kinds"] == {"agent_timeout": 3}
    assert [session["how"] for session in run["sessions"]] == ["interrupted: SIGTERM", None]
    assert run["tokens"] == {"input_tokens": 40, "output_tokens": 20}


@pytest.mark.parametrize("limit", ["--limit 5", "--limit=5", "+limit=5"])
def test_a_limit_of_judgings_is_not_gone_on_with_and_one_of_a_run_is(limit):
    commands = {name: f"gym eval {name} {limit} -o out/rollouts.jsonl" for name in ("reverify", "run")}
    session = run_of_six().sessions[-1]
    told = {
        name: status_text([run_of_six(sessions=(replace(session, command=command),))])
        for name, command in commands.items()
    }
    assert "Go on: gym eval reverify --resume --output out/rollouts.jsonl" in told["reverify"]
    assert f"Go on: gym eval run {limit} --resume --output out/rollouts.jsonl" in told["run"]
