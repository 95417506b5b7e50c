"""What holds for scores of any run."""

import itertools
import json
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rollbook.records.identity import RolloutKey
from rollbook.records.outcome import Evidence, Failed, Interrupted, Masked, NeverStarted, Scored, Unscored
from rollbook.records.record import Record
from rollbook.scoring.aggregate import compute_aggregate_metrics
from rollbook.scoring.pass_at_k import compute_pass_majority_metrics, pass_at_k
from rollbook.scoring.series import majority_series, pass_series
from rollbook.scoring.tally import Tally

KEYS = st.tuples(st.integers(0, 5), st.integers(0, 4))
REWARDS = st.floats(-10, 10) | st.sampled_from([0.0, 1.0])
FIELDS = st.fixed_dictionaries(
    {"reward": REWARDS},
    optional={
        "mask_sample": st.booleans(),
        "turns": st.integers(0, 9),
        "answer": st.sampled_from(["x", "y", None]),
        "response": st.fixed_dictionaries({"usage": st.fixed_dictionaries({"input_tokens": st.integers(0, 999)})}),
        "ng_perf": st.fixed_dictionaries({"num_turns": st.integers(0, 4), "completion_tokens": st.integers(0, 50)}),
    },
)
OUTCOMES = st.one_of(
    st.builds(Scored, REWARDS),
    st.builds(Masked, REWARDS),
    st.just(Unscored()),
    st.builds(Failed, st.sampled_from(["judge_failed", "agent_run_error"])),
    st.just(Interrupted("kill_shaped")),
    st.builds(NeverStarted, st.just("drained")),
    st.just(Evidence("note")),
)


def aggregated(rows):
    metrics = compute_aggregate_metrics(
        rows, lambda tasks: compute_pass_majority_metrics(tasks, answer_key="answer")[0]
    )
    return json.dumps(metrics.model_dump(), allow_nan=False)


@settings(deadline=None)
@given(rows=st.dictionaries(KEYS, FIELDS), data=st.data())
def test_the_order_of_rows_changes_no_byte_of_the_metrics(rows, data):
    given_rows = [
        {"_ng_task_index": task, "_ng_rollout_index": rollout, **row} for (task, rollout), row in rows.items()
    ]
    assert aggregated(given_rows) == aggregated(data.draw(st.permutations(given_rows)))


@settings(deadline=None)
@given(outcomes=st.dictionaries(KEYS, OUTCOMES), data=st.data())
def test_the_order_of_records_changes_no_digit_of_the_scores(outcomes, data):
    records = [Record(RolloutKey(*key), 0, outcome, agent="ab"[key[0] % 2]) for key, outcome in outcomes.items()]
    scores = []
    for ordered in (records, data.draw(st.permutations(records))):
        tally = Tally()
        for record in ordered:
            tally.add(record)
        scores.append(tally.scores())
    assert scores[0] == scores[1]


@settings(deadline=None)
@given(outcomes=st.dictionaries(KEYS, OUTCOMES))
def test_the_parts_of_a_coverage_sum_to_what_was_planned(outcomes):
    tally = Tally()
    for key, outcome in outcomes.items():
        tally.add(Record(RolloutKey(*key), 0, outcome))
    scores = tally.scores()
    assert all(score.coverage.law_holds for score in (*scores.agents, *scores.worst))
    assert sum(score.coverage.planned for score in scores.agents) == len(outcomes)


@given(right=st.lists(st.booleans(), min_size=1, max_size=8), data=st.data())
def test_pass_at_k_is_the_share_of_the_choices_of_k_that_hold_a_right_one(right, data):
    k = data.draw(st.integers(1, len(right)))
    choices = list(itertools.combinations(right, k))
    share = sum(map(any, choices)) / len(choices)
    assert pass_at_k(len(right), sum(right), k) == pytest.approx(share, abs=1e-12)


@given(right=st.lists(st.integers(0, 1), min_size=1, max_size=40))
def test_the_series_of_pass_at_k_is_the_estimator_for_every_k(right):
    expected = [pass_at_k(len(right), sum(right), k) for k in range(1, len(right) + 1)]
    assert pass_series(right) == pytest.approx(expected, abs=1e-12)


VOTES = st.lists(st.tuples(st.sampled_from(["x", "y", "z", None]), st.sampled_from([0, 0.5, 1, None])), max_size=12)


@given(votes=VOTES)
def test_the_majority_of_k_is_that_of_an_election_held_anew_for_every_k(votes):
    for k, elected in enumerate(majority_series(votes), start=1):
        counts = Counter(vote for vote in votes[:k] if None not in vote)
        tied = [score for (_, score), count in counts.items() if count == max(counts.values())]
        assert elected == pytest.approx(sum(tied) / len(tied) if tied else 0)


@given(right=st.lists(st.booleans(), min_size=1, max_size=8))
def test_pass_at_k_never_falls_as_k_grows(right):
    values = [pass_at_k(len(right), sum(right), k) for k in range(1, len(right) + 1)]
    assert values == sorted(values)
