"""`RewardProfiler`: profiles of what a program holds, as the command line makes them of files."""

import json

import pytest

from rollbook import RewardProfiler
from rollbook.ledger.paths import agent_metrics_path_for, reward_profiling_path_for
from rollbook.verbs.profile import profile
from rollbook.verbs.profile_run import run_at
from unit.verbs.profiled import lines_of, planned, row, write_run

KEYS = [(0, 0), (0, 1), (1, 0), (1, 1)]
PLAN = [planned(*key) for key in KEYS]
RESULTS = [row(*key, float(number % 2)) for number, key in enumerate(KEYS)]


def test_what_a_program_holds_is_profiled_as_a_run_is(tmp_path):
    output = write_run(tmp_path / "r.jsonl", PLAN, RESULTS)
    profile([run_at(output)], output)

    held = RewardProfiler().profile(PLAN, RESULTS)
    assert held.group_level_metrics == lines_of(reward_profiling_path_for(output))
    assert held.agent_level_metrics == json.loads(agent_metrics_path_for(output).read_text())
    assert [entry["_ng_rollout_index"] for entry in held.repeat_level_metrics] == [0, 1]


@pytest.mark.parametrize(
    ("rows", "results", "said"),
    [
        (PLAN, RESULTS[:3], "no result"),
        (PLAN[:3], RESULTS, "not among the inputs"),
        (PLAN, [*RESULTS, RESULTS[0]], "twice"),
    ],
)
def test_rows_and_results_that_do_not_belong_together_are_a_value_error(rows, results, said):
    with pytest.raises(ValueError, match=said):
        RewardProfiler().profile(rows, results)


def test_partial_rollouts_are_profiled_when_it_is_allowed():
    held = RewardProfiler().profile(PLAN, RESULTS[:3], allow_partial_rollouts=True)

    assert [entry["missing_num_rollouts"] for entry in held.group_level_metrics] == [0, 1]


def test_the_numbers_of_a_result_leave_out_what_is_ours_and_the_masking():
    result = {
        **row(2, 1, 0.5, correct=True, mask_sample=True, _ng_group_attempt=3, note="n"),
        "response": {"usage": {"input_tokens": 7, "details": {"cached": 1}}},
    }
    assert RewardProfiler().rollout_info_from_result(result) == {
        "rollout_id": "2:1",
        "_ng_task_index": 2,
        "_ng_rollout_index": 1,
        "input_tokens": 7,
        "reward": 0.5,
        "correct": 1,
    }
