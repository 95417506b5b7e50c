"""The fold from events to exported numbers."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollbook.records.coverage import FAILED_DISPOSITIONS
from rollbook.records.disposition import Rules, is_result
from rollbook.records.event import AttemptEnded, AttemptRefused, AttemptStarted, RunEnded, RunPlanned
from rollbook.records.failure_kinds import Delivery
from rollbook.records.identity import RolloutKey
from rollbook.records.outcome import Evidence, Failed, Interrupted, Masked, NeverStarted, Scored, Unscored
from rollbook.records.record import Record
from rollbook.records.standing import Standings
from rollbook.telemetry.before import Before, before
from rollbook.telemetry.counted import Counted
from rollbook.telemetry.stand import reward_of

BROKEN = Failed("agent_run_error")
LOST = Interrupted("kill_shaped")


class Kept:
    def __init__(self):
        self.told = []

    def log(self, metrics, step):
        self.told.append((dict(metrics), step))

    @property
    def steps(self):
        return [step for _, step in self.told]

    @property
    def last(self):
        return self.told[-1][0]


def started(task, attempt=0, at=0.0):
    return AttemptStarted(RolloutKey(task, 0), attempt, at)


def ended(task, outcome, attempt=0, *, agent="a", server=None, at=60.0):
    return AttemptEnded(Record(RolloutKey(task, 0), attempt, outcome, "r", agent, server), 1.0, at)


def told(*events, planned=10, settled=0, going_on_from=None):
    """Return what a sink was told of a run with these events, its end included."""
    sink = Kept()
    counted = Counted(sink, going_on_from or Before())
    for event in (RunPlanned(planned, planned, settled), *events, RunEnded()):
        counted(event)
    return sink


def of(metrics, prefix):
    return {name.removeprefix(prefix): value for name, value in metrics.items() if name.startswith(prefix)}


def test_a_healthy_run_exports_rewards_coverage_and_nothing_about_losses():
    events = [started(0), ended(0, Scored(1.0)), started(1), ended(1, Scored(0.5)), started(2), ended(2, Scored(0.5))]
    assert told(*events).last == {
        "progress/total/rollouts_per_min": 3.0,
        "progress/a/reward": 66.67,
        "progress/a/reward_lower_bound": 20.0,
        "coverage/expected": 10,
        "coverage/scored": 3,
        "coverage/missing": 7,
        "retries/attempts": 0,
        "retries/rollouts_retried": 0,
        "retries/at_cap": 0,
        "retries/max_attempts": 3,
    }


@pytest.mark.parametrize(
    ("outcomes", "exported"),
    [
        ([Scored(1.0), Scored(0.0)], {"reward": 50.0, "reward_lower_bound": 10.0}),
        (
            [Scored(1.0), Masked(0.0)],
            {
                "reward": 50.0,
                "reward_lower_bound": 10.0,
                "masked_pct": 50.0,
                "reward_unmasked": 100.0,
                "failed": 0,
                "omitted": 0,
            },
        ),
        (
            [Scored(1.0), BROKEN, LOST],
            {
                "reward": 100.0,
                "reward_lower_bound": 12.5,
                "masked_pct": 0.0,
                "reward_unmasked": 100.0,
                "failed": 1,
                "omitted": 1,
            },
        ),
        ([Masked(None), Unscored()], {"masked_pct": 50.0, "failed": 0, "omitted": 0}),
        ([BROKEN], {"failed": 1, "omitted": 0}),
        ([Unscored()], {}),
        ([NeverStarted("budget")], {}),
        ([Evidence("boom")], {"failed": 0, "omitted": 1}),
    ],
)
def test_what_a_name_exports(outcomes, exported):
    events = [ended(task, outcome) for task, outcome in enumerate(outcomes)]
    assert of(told(*events).last, "progress/a/") == exported


def test_a_rollout_is_counted_under_its_environment_server_else_its_agent():
    events = [ended(0, Scored(1.0), server="env"), ended(1, Scored(0.0))]
    last = told(*events).last
    assert (last["progress/env/reward"], last["progress/a/reward"]) == (100.0, 0.0)


def test_what_is_outstanding_of_each_of_several_names_is_known_from_the_plan():
    events = [ended(0, Scored(1.0), agent="a"), ended(1, Scored(1.0), agent="b")]
    known = told(*events, going_on_from=Before({"a": 2, "b": 8})).last
    assert (known["progress/a/reward_lower_bound"], known["progress/b/reward_lower_bound"]) == (50.0, 12.5)
    assert not [name for name in told(*events).last if name.endswith("lower_bound")]


def test_a_result_that_names_a_server_where_its_row_does_not_is_counted_as_the_plan_says():
    last = told(ended(0, Scored(1.0), agent="a", server="env"), going_on_from=Before({"a": 4})).last
    assert last["progress/a/reward_lower_bound"] == 25.0


@pytest.mark.parametrize(
    ("attempts", "classes"),
    [
        ([BROKEN], {"agent_run_error": 1}),
        ([BROKEN, Failed("judge_failed")], {"judge_failed": 1}),
        ([BROKEN, LOST], {}),
        ([BROKEN, LOST, BROKEN], {"agent_run_error": 1}),
        ([BROKEN, Scored(1.0)], {}),
        ([BROKEN, Masked(0.0)], {}),
        ([BROKEN, NeverStarted("budget")], {"agent_run_error": 1}),
        ([BROKEN, Evidence("boom")], {"agent_run_error": 1}),
    ],
)
def test_only_the_class_of_the_latest_execution_is_counted(attempts, classes):
    events = [ended(0, outcome, number) for number, outcome in enumerate(attempts)]
    assert of(told(*events).last, "coverage/failed/") == classes


def test_retries_count_failed_attempts_and_rollouts_that_were_sent_again():
    events = [
        started(0),
        AttemptRefused(RolloutKey(0, 0), 0, "503", 1.0, 1.0),
        started(0, 1),
        started(0, 2),
        ended(0, BROKEN, 2),
        started(1),
        ended(1, LOST),
    ]
    assert of(told(*events).last, "retries/") == {
        "attempts": 1,
        "rollouts_retried": 1,
        "at_cap": 0,
        "max_attempts": 3,
    }


@pytest.mark.parametrize(
    ("attempts", "at_cap"),
    [
        ([BROKEN], 0),
        ([BROKEN, BROKEN], 1),
        ([BROKEN, LOST, BROKEN], 1),
        ([BROKEN, BROKEN, LOST], 1),
        ([BROKEN, Failed("agent_run_error", delivery=Delivery.NOT_SENT)], 0),
        ([BROKEN, BROKEN, Scored(0.0)], 0),
        ([BROKEN, BROKEN, BROKEN], 1),
    ],
)
def test_a_rollout_without_a_row_that_used_its_attempts_is_at_the_cap(attempts, at_cap):
    events = [ended(0, outcome, number) for number, outcome in enumerate(attempts)]
    assert told(*events, going_on_from=Before(cap=2)).last["retries/at_cap"] == at_cap


@pytest.mark.parametrize(
    ("planned", "steps"),
    [
        (1, [100]),
        (2, [50, 100]),
        (3, [33, 66, 100]),
        (1000, [*range(1, 100), 99, 100]),
        (10_000, [*range(1, 100), 99, 100]),
        (199, None),
    ],
)
def test_numbers_leave_when_a_percent_is_passed_and_once_at_the_end(planned, steps):
    sink = told(*(ended(task, Scored(1.0)) for task in range(planned)), planned=planned)
    assert sink.steps[-1] == 100
    assert steps is None or sink.steps == steps
    assert len(sink.steps) <= 101


def test_the_numbers_of_99_and_a_half_percent_leave_at_the_first_rollout_past_it():
    sink = told(*(ended(task, Scored(1.0)) for task in range(10_000)), planned=10_000)
    assert [metrics["coverage/scored"] for metrics, _ in sink.told[-3:]] == [9900, 9950, 10_000]


def test_a_jump_over_many_percents_is_exported_once():
    sink = told(ended(0, Scored(1.0)), planned=3, settled=1)
    assert sink.steps == [66]


def test_a_run_that_ends_between_two_percents_is_exported_at_its_end():
    sink = told(ended(0, Scored(1.0)), ended(1, Scored(1.0)), ended(2, Scored(1.0)), planned=200)
    assert sink.steps == [1, 1]
    assert sink.last["coverage/scored"] == 3


def test_a_run_of_which_nothing_was_planned_is_exported_at_its_end():
    sink = Kept()
    Counted(sink)(RunEnded())
    assert sink.steps == [0]


def test_a_rollout_that_ends_twice_is_finished_once():
    sink = told(ended(0, BROKEN), ended(0, BROKEN, 1), ended(0, Scored(1.0), 2), planned=2)
    assert sink.steps == [50, 50]


def test_a_rate_needs_time_to_have_passed():
    assert "progress/total/rollouts_per_min" not in told(started(0, at=5.0), ended(0, Scored(1.0), at=5.0)).last


def test_failure_kinds_are_labels_when_registered_or_namespaced_and_one_bucket_otherwise():
    kinds = ["agent_timeout", "sandbox:oom", "whatever 1", "whatever 2", None]
    counted = Counted(Kept())
    for task, kind in enumerate(kinds):
        counted(ended(task, Failed("agent_run_error", kind=kind)))
    assert counted.failure_kinds == {"agent_timeout": 1, "sandbox:oom": 1, "other": 2}


def test_classes_that_data_make_up_do_not_grow_without_bound():
    sink = told(*(ended(task, Failed(f"class_{task}")) for task in range(2000)), planned=2000)
    classes = of(sink.last, "coverage/failed/")
    assert len(classes) == 257
    assert sum(classes.values()) == 2000


def earlier_session(*records, planned=4):
    standings = Standings()
    for task in range(planned):
        standings.plan(RolloutKey(task, 0), "a")
    for task, attempt, outcome in records:
        if not isinstance(outcome, NeverStarted):
            standings.reserved(RolloutKey(task, 0), attempt)
        if outcome is not None:
            standings.add(Record(RolloutKey(task, 0), attempt, outcome, "r", "a"))
    return standings


def going_on_from(standings, rules):
    groups, _ = standings.counted(rules)
    return before(standings, groups, rules)


def test_a_resumed_run_is_counted_as_a_whole():
    standings = earlier_session((0, 0, Scored(1.0)), (1, 0, BROKEN), (1, 1, BROKEN), (2, 0, Masked(0.5)))
    events = [started(3), ended(3, Scored(0.0)), started(1, 2), ended(1, Failed("judge_failed"), 2)]
    last = told(*events, planned=4, settled=2, going_on_from=going_on_from(standings, Rules(cap=3))).last
    assert of(last, "coverage/") == {"expected": 4, "scored": 3, "missing": 1, "failed/judge_failed": 1}
    assert of(last, "retries/") == {"attempts": 3, "rollouts_retried": 1, "at_cap": 1}
    assert last["progress/a/reward"] == last["progress/a/reward_lower_bound"] == 50.0


def test_an_attempt_that_an_earlier_session_lost_hides_an_older_failure():
    standings = earlier_session((0, 0, BROKEN), (0, 1, None))
    last = told(planned=4, going_on_from=going_on_from(standings, Rules(live_session=2))).last
    assert of(last, "coverage/failed/") == {}
    assert last["progress/a/omitted"] == 1


def test_a_failure_of_an_earlier_session_is_outstanding_as_long_as_it_is_owed():
    standings = earlier_session((0, 0, BROKEN), (1, 0, Scored(1.0)))
    last = told(planned=4, settled=1, going_on_from=going_on_from(standings, Rules())).last
    assert last["progress/a/reward_lower_bound"] == 25.0


def test_a_score_that_is_run_again_with_its_task_gives_way_to_the_new_one():
    standings = Standings()
    for rollout, outcome in enumerate([Scored(1.0), BROKEN]):
        standings.plan(RolloutKey(0, rollout), "a")
        standings.reserved(RolloutKey(0, rollout), 0)
        standings.add(Record(RolloutKey(0, rollout), 0, outcome, "r", "a"))
    last = told(
        started(0, 1),
        ended(0, Scored(0.0), 1),
        planned=2,
        going_on_from=going_on_from(standings, Rules(group_scored=True)),
    ).last
    assert (last["progress/a/reward"], last["progress/a/reward_lower_bound"]) == (0.0, 0.0)
    assert last["coverage/scored"] == 1


OUTCOMES = [
    Masked(0.5),
    Masked(None),
    Unscored(),
    BROKEN,
    Failed("judge_failed"),
    LOST,
    NeverStarted("x"),
    Evidence("x"),
]
TRIES = st.lists(st.tuples(st.integers(0, 7), st.sampled_from(OUTCOMES)), max_size=30)


@given(TRIES, TRIES, st.lists(st.tuples(st.integers(0, 7), st.sampled_from([0.0, 0.25, 1.0])), max_size=8))
def test_whatever_ended_in_whichever_order_the_totals_are_those_of_the_fold_over_all_records(earlier, tries, scores):
    rules, attempts = Rules(cap=2, live_session=2), Counter()

    def numbered(pairs):
        for task, outcome in pairs:
            yield task, attempts[task], outcome
            attempts[task] += 1

    standings = earlier_session(*numbered(earlier), planned=8)
    coverage = standings.coverage(rules=rules)
    sink = Kept()
    counted = Counted(sink, going_on_from(standings, rules))
    counted(RunPlanned(8, 8, 8 - coverage.owed))
    final = [(task, Scored(reward)) for task, reward in dict(scores).items()]
    for task, attempt, outcome in numbered([*tries, *final]):
        if not isinstance(outcome, NeverStarted):
            standings.reserved(RolloutKey(task, 0), attempt)
            counted(started(task, attempt))
        event = ended(task, outcome, attempt)
        standings.add(event.record)
        counted(event)
    counted(RunEnded())
    expect_the_fold(sink.last, standings, rules)


def expect_the_fold(last, standings, rules):
    stands = list(standings.standings(rules))
    failed = Counter(one.record.outcome.failure_class for one in stands if one.disposition in FAILED_DISPOSITIONS)
    assert of(last, "coverage/failed/") == failed
    coverage = standings.coverage(rules=rules)
    assert last["coverage/scored"] == coverage.settled_with_result
    lost = coverage.failed, coverage.interrupted
    assert (last.get("progress/a/failed", 0), last.get("progress/a/omitted", 0)) == lost
    saved = [reward_of(one.record.outcome) for one in stands if one.record]
    rewards = [reward for reward in saved if reward is not None]
    assert last.get("progress/a/reward") == (round(100 * sum(rewards) / len(rewards), 2) if rewards else None)
    spent = [standings.spent(one.key) >= rules.cap and not is_result(one.record) for one in stands]
    assert last["retries/at_cap"] == sum(spent)
