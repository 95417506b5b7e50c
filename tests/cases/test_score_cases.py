"""What is in a score and what is not: failures, missing rollouts, masks, graded timeouts, models that were not used."""

import json

import pytest
from omegaconf import OmegaConf

from rollbook.api.evaluation import evaluate
from rollbook.api.request import EvaluationRequest, ServeMode
from rollbook.config.collection import RolloutCollectionConfig
from run_folder import RunFolder, json_reply, replies, rows_of, status_reply
from stub import AGENT, adding, serving

BUSY = status_reply(503)
GONE = json_reply(_ng_failure_class="agent_gave_up", _ng_failure_terminal=True, _ng_failure_counts_as_zero=True)
USED = {"output": [{"type": "message"}], "usage": {"input_tokens": 3, "output_tokens": 4, "total_tokens": 7}}
UNUSED = {"output": [], "usage": {"input_tokens": 0, "output_tokens": 0, "total_tokens": 0}}
BY_CLASS = "--count-failure-class-as-zero"
REQUEST_FAILED = "agent_request_failed"


@pytest.fixture
def stub():
    with serving() as stub:
        yield stub


def folder_of(path, tasks):
    return RunFolder(path).asks(adding(tasks))


def told(answer):
    return json.loads(answer.out)


def headline(answer):
    (agent,) = told(answer)["agents"]
    return agent["headline"]


def coverage_of(folder):
    return json.loads((folder.folder / "r_coverage.json").read_bytes())


def metrics_of(folder):
    (entry,) = json.loads((folder.folder / "r_aggregate_metrics.json").read_bytes())
    return entry["agent_metrics"]


def law(counts):
    return counts["scored"] + counts["masked"] + counts["unscored"] + sum(counts["failed"].values()) + counts["missing"]


def test_a_run_that_ends_at_its_first_failure_writes_what_became_of_every_rollout(stub, tmp_path):
    folder = folder_of(tmp_path, 4)
    stub.script = replies({(1,): BUSY})
    assert folder.run(stub, "--no-route-failures", "--concurrency", "1", "--retry-for", "0").code == 1
    counts = coverage_of(folder)
    assert (counts["expected"], counts["scored"], law(counts)) == (4, 1, 4)


def test_failed_rollouts_are_in_the_denominator_of_the_text_and_of_the_file(stub, tmp_path):
    folder = folder_of(tmp_path, 4)
    stub.script = replies({(3,): BUSY, (2, 1, 0): BUSY})
    text = " ".join(folder.run(stub, "--num-repeats", "2").text.split())
    assert f"{AGENT}: no headline 5 of 8 rollouts are measured (62.5 %)" in text
    assert "were the others all 0 or all 1, it would be 0.625 to 1.000" in text
    assert "Rollouts missing from the score: 3 of 8 materialized (3 agent_request_failed" in text
    assert f"{AGENT} task 3: mean n/a, 0 of 2 rollouts scored" in text
    document = coverage_of(folder)
    assert (document["expected"], document["scored"], document["failed"]) == (8, 5, {REQUEST_FAILED: 3})
    (group,) = document["groups"]
    assert (group["agent"], group["expected"], group["scored"]) == (AGENT, 8, 5)
    assert [(task["task"], task["scored"], task["expected"]) for task in document["tasks"]] == [(2, 1, 2), (3, 0, 2)]
    assert all(law(counts) == counts["expected"] for counts in (document, group, *document["tasks"]))
    assert document["retries"] == {"attempts": 3, "rollouts_retried": 0, "at_cap": 0, "max_attempts": 3}


@pytest.mark.parametrize(
    ("flags", "mean", "imputed"),
    [
        ((), 1.0, {}),
        (("--count-missing-as-zero",), 1 / 2, {"missing": 1}),
        (("--count-missing-as-zero", BY_CLASS, REQUEST_FAILED), 1 / 3, {"class": 1, "missing": 1}),
        (("--count-missing-as-zero", BY_CLASS, "other"), 1 / 2, {"missing": 1}),
        ((f"+count_failure_classes_as_zero=[{REQUEST_FAILED}]",), 1 / 2, {"class": 1}),
    ],
)
def test_missing_counts_as_zero_and_a_failure_that_was_not_chosen_stays_out(stub, tmp_path, flags, mean, imputed):
    folder = folder_of(tmp_path, 3)
    stub.script = replies({(1,): BUSY, (2,): json_reply(_ng_no_persist=True)})
    answer = folder.run(stub, "--json", *flags)
    document = coverage_of(folder)
    assert headline(answer)["observed_mean"] == pytest.approx(mean)
    assert metrics_of(folder)["mean/reward"] == pytest.approx(mean)
    assert document["imputed_by"] == imputed
    assert (document["scored"], sum(document["failed"].values()), document["missing"]) == (1, 1, 1)
    exported = told(answer)["exported"]
    assert exported.items() >= {"coverage/expected": 3, "coverage/scored": 1}.items()
    assert exported.get("coverage/imputed", 0) == sum(imputed.values())
    assert len(rows_of(folder.output)) == 1


def test_the_same_run_gone_on_with_under_another_choice_has_other_metrics_and_sends_nothing(stub, tmp_path):
    folder = folder_of(tmp_path, 2)
    stub.script = replies({(1,): json_reply(_ng_failure_class="x", _ng_failure_terminal=True)})
    folder.run(stub)
    assert metrics_of(folder)["mean/reward"] == 1.0
    folder.resume(stub, BY_CLASS, "x")
    assert folder.sent == []
    assert metrics_of(folder)["mean/reward"] == 0.5
    before = (folder.folder / "r_aggregate_metrics.json").stat().st_mtime_ns
    folder.resume(stub, BY_CLASS, "x")
    assert (folder.folder / "r_aggregate_metrics.json").stat().st_mtime_ns == before


def test_rows_that_count_as_zero_are_the_same_at_the_end_of_the_run_and_when_it_is_gone_on_with(stub, tmp_path):
    folder = RunFolder(tmp_path).asks([row | {"level": 3} for row in adding(3)])
    failure = json_reply(_ng_failure_class="x", _ng_failure_terminal=True, cost=5.0)
    stub.script = replies({(1,): failure, (2,): json_reply(_ng_no_persist=True)})
    chosen = (BY_CLASS, "x", "--count-missing-as-zero")
    folder.run(stub, *chosen)
    (folder.folder / "r_aggregate_metrics.json").unlink()
    folder.resume(stub, *chosen)
    first, again = stub.aggregated
    assert first == again
    _, counted, missing = first["verify_responses"]
    assert (counted["reward"], counted["cost"], counted["level"]) == (0.0, 5.0, 3)
    assert not [key for key in counted if key.startswith(("_ng_failure_", "failure_"))]
    assert {"reward": 0.0, "level": 3}.items() <= missing.items()
    assert "cost" not in missing


def test_the_latest_failure_is_chosen_before_classes_are_asked(stub, tmp_path):
    folder = folder_of(tmp_path, 2)
    first, second = json_reply(_ng_failure_class="a"), json_reply(_ng_failure_class="b")
    stub.script = replies({(1, 0, 0): first, (1, 0, 1): second})
    folder.run(stub, BY_CLASS, "a", "--json")
    assert metrics_of(folder)["mean/reward"] == 0.5
    assert headline(folder.resume(stub, BY_CLASS, "a", "--json"))["observed_mean"] == 1.0
    assert metrics_of(folder)["mean/reward"] == 1.0


def test_a_failure_that_its_producer_marks_is_a_zero_that_completes_its_rollout(stub, tmp_path):
    folder = folder_of(tmp_path, 2)
    stub.script = replies({(1,): GONE})
    answer = folder.run(stub, "--json", "--require-complete")
    assert answer.code == 0
    assert (headline(answer)["value"], headline(answer)["imputed"]) == (0.5, 1)
    assert metrics_of(folder)["mean/reward"] == 0.5
    assert (coverage_of(folder)["final_zeros"], coverage_of(folder)["imputed_by"]) == (1, {"mark": 1})
    assert "mean reward 0.500 over 2" in answer.err
    assert folder.status()["agents"][0]["mean_reward"] == 0.5
    assert folder.resume(stub).code == 0
    assert folder.sent == []


def test_a_run_of_which_everything_counts_as_zero_is_no_run_that_produced_nothing(stub, tmp_path):
    folder = folder_of(tmp_path, 2)
    stub.script = GONE
    answer = folder.run(stub, "--json")
    assert (answer.code, headline(answer)["value"]) == (0, 0.0)
    assert metrics_of(folder)["mean/reward"] == 0.0


def test_a_strict_run_that_is_not_complete_publishes_no_score(stub, tmp_path):
    folder = folder_of(tmp_path, 2)
    stub.script = replies({(1,): BUSY})
    answer = folder.run(stub, "--require-complete", BY_CLASS, REQUEST_FAILED)
    assert answer.code == 4
    assert "EVAL FAILED: 1/2 samples completed" in answer.text
    assert stub.aggregated == []
    assert not (folder.folder / "r_aggregate_metrics.json").exists()
    assert coverage_of(folder)["scored"] == 1


@pytest.mark.parametrize(
    ("limit", "code"),
    [("max_failed_fraction=0.5", 0), ("max_failed_fraction=0.4", 4), ("max_missing_fraction=0", 0)],
)
def test_more_failures_than_the_limit_allows_reject_the_run_by_name(stub, tmp_path, limit, code):
    folder = folder_of(tmp_path, 2)
    stub.script = replies({(1,): json_reply(_ng_failure_class="x", _ng_failure_terminal=True)})
    answer = folder.run(stub, f"+{limit}")
    assert answer.code == code
    assert ("1 of 2 rollouts failed, and max_failed_fraction is 0.4" in " ".join(answer.text.split())) is (code == 4)
    assert (folder.folder / "r_aggregate_metrics.json").exists() is (code == 0)


def test_missing_rollouts_are_held_against_their_limit_even_where_they_count_as_zero(stub, tmp_path):
    folder = folder_of(tmp_path, 2)
    stub.script = replies({(1,): json_reply(_ng_no_persist=True)})
    answer = folder.run(stub, "+max_missing_fraction=0.4", "--count-missing-as-zero")
    assert answer.code == 4
    assert "1 of 2 rollouts left nothing, and max_missing_fraction is 0.4" in " ".join(answer.text.split())


@pytest.mark.parametrize(
    ("reply", "warned"),
    [
        ({"reward": 0.0, "response": UNUSED}, True),
        ({"reward": 1.0, "response": UNUSED}, True),
        ({"reward": 0.0, "response": {"output": []}}, True),
        ({"reward": 0.0, "response": USED}, False),
        ({"reward": 0.0, "response": {"output": [{"type": "message"}]}}, False),
        ({"reward": 1.0, "response": {"output": []}}, False),
        ({"reward": 0.0}, False),
    ],
)
def test_a_run_in_which_no_rollout_used_the_model_says_so_and_a_model_that_is_wrong_does_not(
    stub, tmp_path, reply, warned
):
    folder = folder_of(tmp_path, 2)
    stub.script = lambda row: json_reply(**reply)({"_ng_task_index": row["_ng_task_index"]})
    assert ("WARNING: no rollout used the model" in folder.run(stub).text) is warned
    assert bool(told(folder.resume(stub, "--json"))["warnings"]) is warned


def test_one_rollout_that_used_the_model_is_enough(stub, tmp_path):
    folder = folder_of(tmp_path, 3)
    stub.script = replies({(0,): json_reply(reward=0.0, response=UNUSED), (2,): json_reply(reward=0.0, response=USED)})
    assert "no rollout used the model" not in folder.run(stub).text


def test_a_graded_timeout_counts_and_an_absent_reward_is_unscored_and_never_zero(stub, tmp_path):
    folder = folder_of(tmp_path, 4)
    response = {"response": USED}
    stub.script = replies(
        {
            (0,): json_reply(reward=1.0, failure_kind="agent_timeout", failure_reason="late", **response),
            (1,): json_reply(failure_kind="verifier_error", **response),
            (2,): json_reply(reward=None, **response),
        }
    )
    answer = folder.run(stub, "--json")
    assert headline(answer)["observed_mean"] == 1.0
    assert headline(answer)["withheld"].startswith("2 of 4 rollouts are measured")
    assert (coverage_of(folder)["scored"], coverage_of(folder)["unscored"]) == (2, 2)
    folder.resume(stub)
    assert folder.sent == []


def test_masked_results_are_no_measurement_and_are_counted_as_masked(stub, tmp_path):
    folder = folder_of(tmp_path, 2)
    stub.script = replies({(1,): json_reply(reward=0.0, mask_sample=True, response=USED)})
    answer = folder.run(stub, "--json", "--min-coverage", "0.5", "--count-missing-as-zero")
    assert (headline(answer)["value"], headline(answer)["bounds"]) == (1.0, {"low": 0.5, "high": 1.0})
    assert (coverage_of(folder)["masked"], coverage_of(folder)["imputed"]) == (1, 0)


def test_rollouts_that_were_tried_again_are_compared_with_those_that_were_not(stub, tmp_path):
    folder = folder_of(tmp_path, 6)
    stub.script = replies({(task, 0, 0): BUSY for task in range(3)})
    folder.run(stub)
    stub.script = json_reply(reward=0.0, response=USED)
    answer = folder.resume(stub, "--json")
    (bias,) = told(answer)["retries"]
    assert (bias["later"], bias["first"], bias["difference"]) == (3, 3, -1.0)
    assert coverage_of(folder)["retries"]["rollouts_retried"] == 3
    text = " ".join(folder.resume(stub).text.split())
    assert "retried 0.000 of 3, first attempt 1.000 of 3: difference -1.000" in text


class BrokenTracker:
    """What takes a run's numbers, and fails from its `good`th call on."""

    def __init__(self, good):
        self.left = good

    def log(self, _metrics, _step):
        self.left -= 1
        if self.left < 0:
            raise RuntimeError("500 from the tracker")


@pytest.mark.parametrize("good", [0, 1])
async def test_a_tracker_that_fails_costs_neither_metrics_nor_scores(stub, tmp_path, good):
    folder = folder_of(tmp_path, 3)
    settings = RolloutCollectionConfig(input_jsonl_fpath=str(folder.input), output_jsonl_fpath=str(folder.output))
    request = EvaluationRequest(settings, OmegaConf.create(stub.config()), ServeMode.NONE, sink=BrokenTracker(good))
    result = await evaluate(request)
    assert [agent.mean for agent in result.scores.agents] == [1.0]
    assert metrics_of(folder)["mean/reward"] == 1.0
    assert coverage_of(folder)["scored"] == 3


def test_a_rejected_run_publishes_no_headline_and_says_why_there_is_none(stub, tmp_path):
    folder = folder_of(tmp_path, 4)
    stub.script = replies({(0,): BUSY})
    flags = ("--require-complete", "--min-coverage", "0.3")
    answer = folder.run(stub, *flags, "--json")
    assert answer.code == 4
    assert (headline(answer)["value"], headline(answer)["observed_mean"]) == (None, 1.0)
    assert headline(answer)["withheld"] == "the run is rejected: 3/4 samples completed"
    text = folder.run(stub, *flags, "--resume").out
    assert f"{AGENT}: no headline\n  the run is rejected: 3/4 samples completed" in text


@pytest.mark.parametrize("counted", ["agent_rnu", "agent_request_faild"])
def test_a_class_that_no_rollout_failed_with_is_told_with_those_that_there_are(stub, tmp_path, counted):
    folder = folder_of(tmp_path, 4)
    stub.script = replies({(0,): BUSY})
    answer = folder.run(stub, BY_CLASS, counted, "--json")
    told_of = f"no rollout failed with class {counted}; there are: agent_request_failed (1)"
    assert told_of in " ".join(answer.err.split())
    assert any(told_of in note for note in told(answer)["notes"])


def test_a_class_that_no_rollout_failed_with_is_no_news_where_none_failed(stub, tmp_path):
    answer = folder_of(tmp_path, 2).run(stub, BY_CLASS, REQUEST_FAILED)
    assert "failed with class" not in answer.text
