"""`gym eval compare` and `gym dev compare`, from the command line to the exit code."""

import json

import pytest

from compare_commands import aggregated, dev, evaluated, policy, report
from compared_run import lines, task, write
from run_folder import rows_of, said


@pytest.fixture
def runs(tmp_path):
    """Return the outputs of a baseline and of a candidate that is worse, its tasks numbered the other way round."""
    ours = write(tmp_path / "a", [task(number, [1.0, 1.0], level=number % 2) for number in range(20)])
    theirs = [task(number, [float(number > 11), float(number > 11)], level=number % 2) for number in range(20)]
    return ours, write(tmp_path / "b", theirs, order=range(19, -1, -1))


def test_the_report_is_beside_the_candidate_and_says_what_was_printed(runs):
    answer = dev(runs)
    assert answer.code == 0
    assert "Verdict    worse" in answer.out
    (rows,) = report(runs[1].parent)["rows"]
    assert (rows["verdict"], rows["difference"]) == ("worse", -0.6)
    markdown = (runs[1].parent / "compare_report.md").read_text()
    assert "Verdict: **worse**" in markdown
    assert "answer 0 1.0" in markdown


def test_a_report_goes_where_it_is_told_in_the_format_that_is_asked_for(runs, tmp_path):
    folder = tmp_path / "reports"
    assert dev(runs, "-o", str(folder), "--report-format", "json").code == 0
    assert [path.name for path in folder.iterdir()] == ["compare_report.json"]
    assert dev(runs, "-o", str(folder), "--report-format", "md").code == 0
    assert sorted(path.name for path in folder.iterdir()) == ["compare_report.json", "compare_report.md"]


def test_in_json_the_document_of_the_report_is_printed_and_nothing_else(runs):
    answer = dev(runs, "--json")
    document = json.loads(answer.out)
    assert document == report(runs[1].parent)
    assert document["schema_version"] == "1"
    assert document["rows"][0]["transitions"] == [{"baseline": "scored", "candidate": "scored", "rollouts": 40}]


def test_nothing_of_a_run_is_changed(runs):
    before = {path: path.read_bytes() for run in runs for path in run.parent.iterdir()}
    dev(runs)
    after = {path: path.read_bytes() for run in runs for path in run.parent.iterdir()}
    assert {path: after[path] for path in before} == before
    assert {path.name for path in after.keys() - before.keys()} == {"compare_report.md", "compare_report.json"}


def test_the_seed_decides_what_is_drawn_for_tests_and_intervals(tmp_path):
    ours = write(tmp_path / "a", [task(number, [0.5]) for number in range(20)])
    theirs = write(tmp_path / "b", [task(number, [0.4 + number / 97]) for number in range(20)])
    found = [
        (rows["interval"], rows["test"])
        for seed in ("1", "1", "2")
        for rows in json.loads(dev((ours, theirs), "--json", "--seed", seed).out)["rows"]
    ]
    assert found[0] == found[1]
    assert found[0][0] != found[2][0]
    assert found[0][1] != found[2][1]


GATES = [
    ("max_drop: 0.7", "PASS", 0),
    ("max_drop: 0.5\nseverity: warn", "WARN", 0),
    ("max_drop: 0.5", "BLOCK", 6),
    ("max_drop: 0.7\nmin_tasks: 21", "INCONCLUSIVE", 7),
    ("tiers:\n  - {name: odd, tags: {level: 1}, max_drop: 0.5}", "BLOCK", 6),
    ("tiers:\n  - {name: odd, tags: {level: 1}, max_drop: 0.6}", "PASS", 0),
    ("tiers:\n  - {name: none, tags: {level: 9}, max_drop: 0.9}", "INCONCLUSIVE", 7),
    ("tiers:\n  - {name: m, metric: mean/reward, max_drop: 0.9}", "INCONCLUSIVE", 7),
    ("tiers:\n  - {name: s, agent: solver, max_drop: 0.1}", "BLOCK", 6),
    ("tiers:\n  - {name: s, agent: nobody, max_drop: 0.9}", "INCONCLUSIVE", 7),
]


@pytest.mark.parametrize(("text", "ruling", "code"), GATES)
def test_the_gate_is_the_exit_code(runs, tmp_path, text, ruling, code):
    answer = dev(runs, *policy(tmp_path, text))
    assert answer.code == code
    assert f"Gate: {ruling} (" in answer.out
    document = report(runs[1].parent)
    assert (document["exit_code"], document["gate"]["ruling"]) == (code, ruling)
    assert f"**Gate: {ruling}**" in (runs[1].parent / "compare_report.md").read_text()


MISSPELT = [
    ("tiers:\n  - {name: t, tags: {level: 9}, max_drop: 0.9}", "no task has the tags level: 9; none has that level"),
    ("tiers:\n  - {name: t, tags: {levle: 1}, max_drop: 0.9}", "none has a levle; did you mean level?"),
    ("tiers:\n  - {name: t, agent: sovler, max_drop: 0.9}", "of the agent sovler; did you mean solver?"),
    ("tiers:\n  - {name: t, metric: mean/rewrad, max_drop: 0.9}", "not on both sides; did you mean mean/reward?"),
]


@pytest.mark.parametrize(("text", "said"), MISSPELT)
def test_what_a_tier_names_and_is_nowhere_is_told_once_with_the_nearest_name(runs, tmp_path, text, said):
    for run in runs:
        aggregated(run)
    answer = evaluated(runs, *policy(tmp_path, text))
    assert answer.code == 7
    assert " ".join(answer.out.split()).count(said) == 1


def test_a_rise_is_no_drop_below_zero_and_the_gate_of_one_candidate_is_told_once(runs, tmp_path):
    answer = dev(runs[::-1], *policy(tmp_path, "max_drop: 0"))
    assert "max_drop: better by 0.600, limit 0: within the limit" in answer.out
    assert answer.out.count("Gate: PASS") == 1


def test_metrics_say_over_what_either_side_computed_them(runs, tmp_path):
    aggregated(runs[0])
    path = aggregated(runs[1])
    (entry,) = json.loads(path.read_bytes())
    del entry["group_level_metrics"][5:]
    entry["agent_metrics"]["pass@1/accuracy"] = 60.0
    path.write_text(json.dumps([entry]))
    answer = evaluated(runs)
    told = " ".join(answer.out.split())
    assert "Each side over what it scored itself, not over tasks that both scored" in told
    assert "baseline 100.0 %, candidate 25.0 %" in told
    assert "pass@1/accuracy (%)" in answer.out


def test_the_table_of_metrics_fits_80_columns_whatever_metrics_are_called(runs):
    name = "share_of_the_unit_tests_that_pass_after_the_patch_was_applied"
    for run in runs:
        path = aggregated(run)
        path.write_text(path.read_text().replace("/reward", f"/{name}"))
    table = evaluated(runs).out.partition("Metrics of")[2].splitlines()
    assert max(map(len, table)) <= 80
    assert any(line.startswith("  mean/") and "…" in line for line in table)
    assert f"mean/{name}" in (runs[1].parent / "compare_report.json").read_text()
    assert f"mean/{name}".replace("_", "\\_") in (runs[1].parent / "compare_report.md").read_text()


def test_runs_that_share_no_task_are_told_what_pairs_them_by_number(tmp_path):
    ours = write(tmp_path / "a", [task(0, [1.0])])
    theirs = write(tmp_path / "b", [task(0, [1.0], params={"input": "other"})])
    assert "--pair-by number pairs tasks of one number" in " ".join(dev((ours, theirs)).out.split())


def test_every_rule_is_told_in_text_markdown_and_json(runs, tmp_path):
    answer = dev(runs, *policy(tmp_path, "max_drop: 0.5\nmax_relative_drop: 0.5"))
    rules = [rule["rule"] for rule in report(runs[1].parent)["gate"]["candidates"][0]["rules"]]
    assert {"min_tasks", "min_coverage", "min_paired", "max_drop", "max_relative_drop"} == set(rules)
    markdown = (runs[1].parent / "compare_report.md").read_text()
    for rule in rules:
        assert rule in answer.out
        assert rule.replace("_", "\\_") in markdown
    assert "BLOCK: all (reward) max_drop: 0.600, limit 0.500" in answer.out


BY_STEPS = "tiers:\n  - {name: steps, field: steps, max_drop: 1.5"


@pytest.mark.parametrize(
    ("text", "ruling", "found"),
    [
        (BY_STEPS + "}", "PASS", -2.0),
        (BY_STEPS + ", lower_is_better: true}", "BLOCK", 2.0),
        (BY_STEPS + ", lower_is_better: true, tags: {level: 1}}", "BLOCK", 2.0),
        ("tiers:\n  - {name: steps, field: steps, max_relative_drop: 0.5, lower_is_better: true}", "PASS", 0.5),
    ],
)
def test_a_tier_may_be_about_another_number_of_the_rows(runs, tmp_path, text, ruling, found):
    for run, steps in zip(runs, (4, 6), strict=True):
        lines(run, [one | {"steps": steps} for one in rows_of(run)])
    dev(runs, *policy(tmp_path, text))
    (candidate,) = report(runs[1].parent)["gate"]["candidates"]
    (rule,) = (rule for rule in candidate["rules"] if rule["rule"].endswith("drop"))
    assert (candidate["ruling"], rule["metric"], rule["found"]) == (ruling, "steps", found)


def test_a_row_without_the_number_is_missing_and_a_number_that_is_nowhere_is_told(runs, tmp_path):
    for run in runs:
        lines(run, [one | ({"steps": 4} if at % 4 else {}) for at, one in enumerate(rows_of(run))])
    assert dev(runs, *policy(tmp_path, BY_STEPS + "}")).code == 7
    rules = report(runs[1].parent)["gate"]["candidates"][0]["rules"]
    assert [rule["found"] for rule in rules if rule["rule"] == "min_coverage"] == [0.75, 0.75]
    answer = dev(runs, *policy(tmp_path, BY_STEPS.replace("field: steps", "field: step") + "}"))
    assert "no scored rollout of a side has a number in step; did you mean steps?" in " ".join(answer.out.split())


def test_a_policy_that_is_wrong_is_an_error_that_names_its_line(runs, tmp_path):
    answer = dev(runs, *policy(tmp_path, "max_drop: 0.1\nmax_dorp: 1"))
    assert answer.code == 1
    assert "policy.yaml:2: max_dorp" in answer.err


def test_missing_data_never_passes(runs, tmp_path):
    gate = policy(tmp_path, "max_drop: 0.5")
    kept = runs[0].read_text().splitlines(keepends=True)
    runs[1].write_text("".join(kept[:30]))
    assert dev(runs, *gate).code == 7
    runs[1].write_text("")
    assert dev(runs, *gate).code == 7


def test_metrics_and_rows_are_both_compared_where_both_are_there(runs):
    for run in runs:
        aggregated(run)
    answer = evaluated(runs)
    assert answer.code == 0
    document = report(runs[1].parent)
    (comparison,) = document["comparisons"]
    (row,) = [metric for metric in comparison["metrics"] if metric["metric"] == "mean/reward"]
    assert (row["baseline"], row["candidate"]) == pytest.approx((1.0, 0.4))
    assert document["rows"][0]["verdict"] == "worse"
    assert "Metrics of solver" in answer.out


def test_a_tier_may_speak_of_an_aggregate_metric(runs, tmp_path):
    for run in runs:
        aggregated(run)
    gate = policy(tmp_path, "tiers:\n  - {name: m, metric: mean/reward, max_drop: 0.5}")
    assert evaluated(runs, *gate).code == 6


def test_metrics_are_enough_without_runs(runs, tmp_path):
    files = []
    for run in runs:
        files.append(aggregated(run))
        for path in run.parent.glob("*.jsonl"):
            path.unlink()
    flags = ["--baseline-agg-metrics", str(files[0]), "--candidates-agg-metrics", str(files[1])]
    alone = said(["eval", "compare", *flags])
    assert (alone.code, report(runs[1].parent)["rows"]) == (0, [])
    named = evaluated(runs)
    assert (named.code, "no rows are there" in named.out) == (0, True)
    given = said(["eval", "compare", "--baseline", str(files[0]), "--candidates", str(files[1])])
    assert given.code == 0
    gated = said(["eval", "compare", *flags, *policy(tmp_path, "max_drop: 0.9")])
    assert gated.code == 7
    assert "name runs that have theirs, without --no-rows" in " ".join(gated.out.split())


def test_rows_are_left_out_where_that_is_asked(runs):
    for run in runs:
        aggregated(run)
    evaluated(runs, "--no-rows")
    assert report(runs[1].parent)["rows"] == []


def test_metrics_that_are_not_there_are_told_and_rows_are_enough(runs):
    answer = evaluated(runs)
    assert answer.code == 0
    assert "metrics are not compared" in answer.out
    assert evaluated(runs, "--no-rows").code == 1


def test_several_candidates_are_listed_with_commas_or_one_by_one(runs, tmp_path):
    other = write(tmp_path / "c", [task(number, [1.0]) for number in range(20)])
    first = said(["dev", "compare", "--baseline", str(runs[0]), "--candidates", f"{runs[1]},{other}", "--json"])
    second = dev(runs, "--candidates", str(other), "--json")
    assert json.loads(first.out) == json.loads(second.out)
    assert [row["verdict"] for row in json.loads(first.out)["rows"]] == ["worse", "no difference shown"]


def test_agents_of_other_names_are_compared_where_they_are_named(runs, tmp_path):
    other = write(tmp_path / "c", [task(number, [1.0], agent="new") for number in range(20)])
    refused = dev((runs[0], other))
    assert (refused.code, "no agent is in every run" in refused.err) == (1, True)
    assert dev((runs[0], other), "--baseline-agent", "solver", "--candidate-agents", "new").code == 0


def test_an_agent_that_the_candidate_lacks_does_not_pass_unless_agents_are_named(tmp_path):
    both = [task(0, [1.0]), task(1, [1.0], agent="second")]
    runs = write(tmp_path / "a", both), write(tmp_path / "b", both[:1])
    gate = policy(tmp_path, "max_drop: 0.1")
    answer = dev(runs, *gate)
    assert (answer.code, "a candidate lacks second" in answer.out) == (7, True)
    assert dev(runs, *gate, "--agent", "solver").code == 0
    assert dev(runs[::-1], *gate).code == 0


def test_a_folder_and_a_companion_name_their_run(runs):
    assert dev((runs[0].parent, runs[1].parent)).code == 0
    plan = runs[0].with_name("rollouts_materialized_inputs.jsonl")
    assert dev((plan, runs[1])).code == 0


def test_text_of_answers_is_bounded_and_drives_no_terminal(runs):
    long = "\x1b[31m" + "x" * 10_000 + " | <b>end</b>"
    rows = [
        row | {"response": {"output": [{"type": "message", "content": [{"type": "output_text", "text": long}]}]}}
        for row in rows_of(runs[1])
    ]
    lines(runs[1], rows)
    answer = dev(runs)
    assert "\x1b[31m" not in answer.out
    assert len(answer.out) < 20_000
    markdown = (runs[1].parent / "compare_report.md").read_text()
    assert "<b>" not in markdown
    assert len(max(markdown.splitlines(), key=len)) < 3_000


def test_damage_is_told_and_what_can_be_read_is_compared(runs):
    with runs[1].open("a") as file:
        file.write("{broken\n")
    answer = dev(runs)
    assert answer.code == 0
    assert "damaged" in answer.out


@pytest.mark.parametrize(
    "command",
    [
        ["dev", "compare"],
        ["dev", "compare", "--baseline", "nowhere", "--candidates", "nowhere"],
        ["eval", "compare", "--baseline-agg-metrics", "x.json"],
        ["dev", "compare", "--report-format", "html"],
    ],
)
def test_a_command_that_names_nothing_is_a_usage_error(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert said(command).code == 2
