"""A run that one side began and the other goes on with, and a folder of one side in the hands of the other."""

import signal

import pytest

from interop.rows import companion, json_lines, keys, plan_keys, rewards, unlike_metrics
from interop.sides import READY_SECONDS, end, wait_for

CROSSED = [("ours", "theirs"), ("theirs", "ours")]
KILL_AFTER, LANES = 8, 4
FIRST_TASKS = frozenset({"Which planet of the solar system", "360"})  # of mcqa, and of math_with_judge
BROKEN = {"agent_run_error": FIRST_TASKS, "judge_failed": frozenset({"[[A=B]]"})}


@pytest.fixture
def asked(field):
    """Return what the endpoint is asked during the test."""
    field.endpoint.asked.clear()
    return field.endpoint.asked


@pytest.fixture
def slow(field):
    """Have the endpoint take its time until the value is set to 0."""
    field.endpoint.seconds = 0.3
    yield field.endpoint
    field.endpoint.seconds = 0.0


def begun_and_killed(field, side, output):
    """Kill a side's collector, by its id, once some rollouts are written and others are in flight."""
    log = field.sides[side].folder / f"killed-{output.parent.name}.log"
    process = field.sides[side].start(*field.collect(side, side, output), log=log)
    try:
        wait_for(lambda: len(json_lines(output)) >= KILL_AFTER, process, READY_SECONDS, log.with_suffix(".err"))
    finally:
        end(process, signal.SIGKILL)
    return keys(output)


def went_on(field, side, output, *words):
    """Have a side go on with the run at an output."""
    said = field.sides[side].run(*field.collect(side, side, output, "--resume", *words))
    assert said.code == 0, said.text[-3000:]
    return said


@pytest.fixture(params=CROSSED, ids="-then-".join)
def resumed(request, field, asked, slow, tmp_path):
    """Return the output of a run that one side was killed at, in the middle of a line, and the other ended."""
    first, second = request.param
    output = tmp_path / "rollouts.jsonl"
    before = begun_and_killed(field, first, output)
    with output.open("ab") as torn:
        torn.write(b'{"reward": 1.0, "resp')
    slow.seconds = 0.0
    went_on(field, second, output)
    return output, before, asked


def test_a_run_that_the_other_side_goes_on_with_has_no_rollout_lost_or_twice(field, resumed):
    output, before, asked = resumed
    assert KILL_AFTER <= len(before) < field.planned
    assert len(plan_keys(output)) == field.planned
    assert rewards(output).keys() == plan_keys(output).keys()
    assert len(asked) == field.planned
    assert asked.total() <= field.planned + LANES


@pytest.mark.parametrize("kind", BROKEN)
@pytest.mark.parametrize(("first", "second"), CROSSED)
def test_what_failed_with_one_side_is_run_again_by_the_other(field, tmp_path, first, second, kind):
    output = tmp_path / "rollouts.jsonl"
    field.endpoint.broken = BROKEN[kind]
    try:
        field.sides[first].run(*field.collect(first, first, output))
    finally:
        field.endpoint.broken = frozenset()
    failures = json_lines(companion(output, "_failures.jsonl"))
    assert {row["_ng_failure_class"] for row in failures} == {kind}
    failed = keys(companion(output, "_failures.jsonl"))
    assert len(failed) >= 8
    assert rewards(output).keys() == plan_keys(output).keys() - failed.keys()
    went_on(field, second, output)
    assert rewards(output).keys() == plan_keys(output).keys()
    again = [row for row in json_lines(output) if row.get("_ng_attempt_index")]
    assert {row["_ng_attempt_index"] for row in again} == {1}
    assert len(again) == len(failed)


def test_a_run_that_changed_hands_twice_is_whole_and_our_status_says_so(field, asked, slow, tmp_path):
    output = tmp_path / "rollouts.jsonl"
    begun_and_killed(field, "ours", output)
    log = field.sides["theirs"].folder / "killed-again.log"
    there = len(json_lines(output))
    process = field.sides["theirs"].start(*field.collect("theirs", "theirs", output, "--resume"), log=log)
    try:
        wait_for(lambda: len(json_lines(output)) >= there + KILL_AFTER, process, READY_SECONDS, log.with_suffix(".err"))
    finally:
        end(process, signal.SIGKILL)
    between = field.sides["ours"].run("eval", "status", output, "--json")
    assert between.code == 3, between.text
    assert between.json["law_holds"]
    assert between.json["succeeded"] == len(keys(output))
    slow.seconds = 0.0
    went_on(field, "ours", output)
    assert rewards(output).keys() == plan_keys(output).keys()
    assert asked.total() <= field.planned + 2 * LANES
    after = field.sides["ours"].run("eval", "status", output, "--json")
    assert (after.code, after.json["succeeded"]) == (0, field.planned), after.text


@pytest.fixture(scope="session")
def whole(field, tmp_path_factory):
    """Return the output of a whole run of each side."""
    outputs = {side: tmp_path_factory.mktemp(f"whole-{side}") / "rollouts.jsonl" for side in field.sides}
    for side, output in outputs.items():
        said = field.sides[side].run(*field.collect(side, side, output))
        assert said.code == 0, said.text[-3000:]
    return outputs


@pytest.mark.parametrize(("reader", "writer"), CROSSED)
def test_a_side_aggregates_the_other_sides_folder_to_the_metrics_of_its_own(field, whole, tmp_path, reader, writer):
    merged = tmp_path / "merged.jsonl"
    words = ["eval", "aggregate", "-i", whole[writer], "-o", merged, *field.heads[reader].overrides]
    said = field.sides[reader].run(*words)
    assert said.code == 0, said.text[-3000:]
    assert rewards(merged) == rewards(whole[writer])
    assert unlike_metrics(merged, whole[reader]) == []


@pytest.mark.parametrize(("reader", "writer"), CROSSED)
def test_a_side_checks_the_health_of_the_other_sides_records_as_of_its_own(field, whole, reader, writer):
    verdicts = [health(field.sides[reader], whole[of]) for of in (writer, reader)]
    assert verdicts[0] == verdicts[1]
    assert len(verdicts[0]) == field.planned


@pytest.mark.parametrize(("reader", "writer"), CROSSED)
def test_a_side_profiles_the_other_sides_run_as_its_own(field, whole, reader, writer):
    told = [profile(field.sides[reader], whole[of]) for of in (writer, reader)]
    assert told[0] == told[1]
    assert len(told[0]) == len({task for task, _ in plan_keys(whole[writer])})


def test_our_status_of_their_run_says_that_every_rollout_is_scored(field, whole):
    said = field.sides["ours"].run("eval", "status", whole["theirs"], "--json")
    assert said.code == 0, said.text
    assert said.json["succeeded"] == said.json["coverage"]["scored"] == field.planned


def health(side, output):
    """Return the verdict of every rollout."""
    said = side.run("eval", "health-check", output.parent, "--workers", 1)
    assert said.code == 0, said.text[-3000:]
    rows = json_lines(output.with_name("rollout_verdicts.jsonl"))
    return {(row["_ng_task_index"], row["_ng_rollout_index"]): row["verdict"] for row in rows}


def profile(side, output):
    """Return how often each task was solved."""
    inputs = companion(output, "_materialized_inputs.jsonl")
    said = side.run("eval", "profile", "--inputs", inputs, "--rollouts", output)
    assert said.code == 0, said.text[-3000:]
    rows = json_lines(companion(output, "_reward_profiling.jsonl"))
    return {row["_ng_task_index"]: row["mean/reward"] for row in rows}
