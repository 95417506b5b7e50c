"""What counts as zero, read from the lines of a folder that another collector left; and pass@k of few samples."""

import pytest

from rollbook.records.disposition import DEFAULT_RULES
from rollbook.records.identity import RolloutKey
from rollbook.records.outcome import Scored
from rollbook.records.record import Record
from rollbook.scoring.aggregate import compute_aggregate_metrics
from rollbook.scoring.imputation import NOTHING_COUNTED, Added, Counting, added, added_row
from rollbook.scoring.pass_at_k import compute_pass_majority_metrics
from rollbook.scoring.tally import Tally, scores_of
from rollbook.verbs.status import read_run
from run_folder import built, failed, omitted, scored

JUDGE = failed(0, "judge_failed")
KILLED = omitted(0)
DRAINED = omitted(0, "cancelled", _ng_dispatch_drained=True)
EVIDENCE = omitted(0, "agent_run_error", _ng_unrouted_run_error=True)
NO_PERSIST = failed(0, "judge_failed", _ng_no_persist=True)
JUDGE_CLASS = Counting(frozenset({"judge_failed"}))
MISSING = Counting(missing=True)


def whys(folder, counting):
    standings = read_run(folder.output).history.standings
    return {one.key.task: one.why for one in added(standings, counting, DEFAULT_RULES)}


def mean_of(folder, counting):
    (agent,) = scores_of(read_run(folder.output).history.standings, DEFAULT_RULES, counting).agents
    return agent.mean


@pytest.mark.parametrize(
    ("failures", "by_class", "by_missing"),
    [
        ([JUDGE, KILLED], {}, {0: "missing"}),
        ([JUDGE, DRAINED], {0: "class"}, {}),
        ([JUDGE, EVIDENCE], {0: "class"}, {}),
        ([NO_PERSIST], {0: "class"}, {}),
        ([KILLED] * 5, {}, {0: "missing"}),
    ],
)
def test_v11_the_latest_execution_stands_and_an_interruption_is_missing(tmp_path, failures, by_class, by_missing):
    folder = built(tmp_path, 1, failures=failures)
    assert whys(folder, JUDGE_CLASS) == by_class
    assert whys(folder, MISSING) == by_missing
    assert whys(folder, NOTHING_COUNTED) == {}


def test_v16_a_class_that_is_not_the_latest_one_is_not_counted(tmp_path):
    folder = built(tmp_path, 1, failures=[failed(0, "agent_run_error"), failed(0, "agent_request_failed")])
    assert whys(folder, Counting(frozenset({"agent_run_error"}))) == {}
    assert whys(folder, Counting(frozenset({"agent_request_failed"}))) == {0: "class"}


@pytest.mark.parametrize(
    ("counting", "mean"),
    [(MISSING, 1 / 2), (Counting(frozenset({"agent_run_error"}), missing=True), 1 / 3), (NOTHING_COUNTED, 1.0)],
)
def test_v17_an_excluded_failure_is_neither_counted_nor_imputed(tmp_path, counting, mean):
    folder = built(tmp_path, 3, results=[scored(0)], failures=[failed(1)])
    assert mean_of(folder, counting) == pytest.approx(mean)


def test_a_reward_on_the_line_of_a_failure_that_counts_is_kept(tmp_path):
    folder = built(tmp_path, 2, results=[scored(0)], failures=[failed(1, "judge_failed", reward=0.5, mask_sample=True)])
    assert mean_of(folder, JUDGE_CLASS) == 0.75
    assert mean_of(folder, NOTHING_COUNTED) == 1.0


def test_a_failure_counts_where_its_class_is_the_one_that_its_producer_had_given(tmp_path):
    folder = built(tmp_path, 1, failures=[failed(0, "infrastructure", _ng_failure_legacy_class="judge_failed")])
    assert whys(folder, JUDGE_CLASS) == {0: "class"}


def pass_at_k(*tasks):
    tally = Tally()
    for task, rewards in enumerate(tasks):
        for rollout, reward in enumerate(rewards):
            tally.add(Record(RolloutKey(task, rollout), 0, Scored(reward), agent="a"))
    (agent,) = tally.scores().agents
    return {estimate.k: (estimate.value, estimate.tasks, estimate.short_tasks) for estimate in agent.pass_at_k}


def test_pass_at_k_speaks_for_tasks_with_k_samples_and_names_how_many_have_fewer():
    assert pass_at_k([0.0, 0.0], [1.0, 0.0, 0.0, 0.0], [1.0]) == {
        1: (pytest.approx((0 + 1 / 4 + 1) / 3), 3, 0),
        2: (pytest.approx((0 + 1 / 2) / 2), 2, 1),
        4: (1.0, 1, 2),
    }
    assert pass_at_k([1.0]) == {1: (1.0, 1, 0)}
    metrics = compute_pass_majority_metrics([[{"reward": 0.0}, {"reward": 0.0}]])[0]
    assert "pass@5/accuracy" not in metrics


def test_a_task_without_an_answer_has_no_majority_and_its_pass_all_the_same():
    tasks = [
        [{"reward": 1.0, "answer": None}, {"reward": 1.0, "answer": None}],
        [{"reward": 0.0, "answer": "x"}, {"reward": 1.0, "answer": "y"}],
    ]
    metrics = compute_pass_majority_metrics(tasks, answer_key="answer")[0]
    wanted = {"pass@2/accuracy": 100, "majority@2/accuracy": 25, "pass@1[avg-of-2]/no_answer": 50}
    assert {name: metrics[name] for name in wanted} == pytest.approx(wanted)


def test_a_hook_that_looks_for_answers_takes_rows_that_count_as_zero():
    real = {
        "_ng_task_index": 0,
        "_ng_rollout_index": 0,
        "reward": 1.0,
        "extracted_answer": "x",
        "response": {"output": []},
    }
    missing = added_row(Added(RolloutKey(1, 0), "a", "s", "missing", None), None, {"extracted_answer": "?"}, {*real})
    metrics = compute_aggregate_metrics(
        [real, missing],
        compute_metrics_fn=lambda tasks: compute_pass_majority_metrics(tasks, answer_key="extracted_answer")[0],
    ).agent_metrics
    assert (metrics["mean/reward"], metrics["pass@1/accuracy"], metrics["majority@1/accuracy"]) == (0.5, 50, 50)
