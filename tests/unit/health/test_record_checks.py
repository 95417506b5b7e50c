"""Each check of a record, by what it is to say of which evidence."""

import pytest

from evidence_rows import CALL, ROW, TURN, call, failed, gap, line, row, with_call, with_trajectory, with_turn
from rollbook.config.collection import HEALTH_CHECK_IDS
from rollbook.health.checks import CHECK_IDS, OF_RECORDS, mask_of, names_of
from rollbook.health.examine import examine
from rollbook.health.tally import Tally

FLAGGED, FINE, UNOBSERVED = "flagged", "fine", "unobserved"
NO_TEXT = {"output": [{"type": "function_call", "name": "f"}], "incomplete_details": {"reason": "max_output_tokens"}}
ENDED_BY_ERROR = with_trajectory(
    model_calls=[CALL, failed(model_call_id="c2", started_at=3.0)],
    turns=[TURN | {"model_calls": [{"model_call_id": "c1"}, {"model_call_id": "c2"}]}],
)
TWO_CALLS = [CALL, call(model_call_id="c2", started_at=3.0)]

TABLE = [
    ("record_unreadable", FINE, row()),
    ("record_unreadable", FINE, row(ng_trajectory=None)),
    ("record_unreadable", FLAGGED, row(ng_trajectory="none")),
    ("record_unreadable", FLAGGED, with_trajectory(schema_version="2.0")),
    ("record_unreadable", FLAGGED, with_trajectory(turns=[TURN, TURN])),
    ("record_unreadable", FLAGGED, with_trajectory(model_calls=[CALL, CALL])),
    ("record_unreadable", FLAGGED, with_turn(turn_no=0)),
    ("record_unreadable", FLAGGED, with_turn(rollout_id="9-9")),
    ("record_unreadable", FLAGGED, with_turn(model_calls=[{"response_id": "r1"}])),
    ("record_unreadable", FINE, with_trajectory(something_new=1)),
    ("rollout_missing_agent_turns", FINE, row()),
    ("rollout_missing_agent_turns", FLAGGED, with_trajectory(turns=[])),
    ("rollout_missing_agent_turns", FLAGGED, with_turn(answer=" ", model_calls=[])),
    ("rollout_missing_agent_turns", FINE, with_turn(answer=None)),
    ("rollout_missing_agent_turns", UNOBSERVED, gap("turns_unavailable")),
    ("rollout_missing_agent_turns", UNOBSERVED, gap("trajectory_projection_failed")),
    ("rollout_missing_agent_turns", UNOBSERVED, row(ng_trajectory=None)),
    ("rollout_ended_on_failed_model_call", FINE, row()),
    ("rollout_ended_on_failed_model_call", FLAGGED, with_trajectory(model_calls=[failed(started_at=None)])),
    ("rollout_ended_on_failed_model_call", FLAGGED, ENDED_BY_ERROR),
    ("rollout_ended_on_failed_model_call", FINE, with_trajectory(model_calls=[failed(), TWO_CALLS[1]])),
    (
        "rollout_ended_on_failed_model_call",
        UNOBSERVED,
        with_trajectory(model_calls=[failed(started_at=None, completed_at=None), TWO_CALLS[1]]),
    ),
    ("rollout_ended_on_failed_model_call", UNOBSERVED, with_trajectory(model_calls=[])),
    ("rollout_ended_on_failed_model_call", UNOBSERVED, gap("model_calls_unavailable")),
    ("agent_turn_hollow", FINE, row()),
    ("agent_turn_hollow", FLAGGED, with_turn(answer=None)),
    ("agent_turn_hollow", FLAGGED, with_turn(answer=[{"type": "message", "content": []}])),
    ("agent_turn_hollow", FINE, with_turn(answer=[{"type": "function_call", "name": "f"}])),
    ("agent_turn_hollow", FINE, with_turn(answer={"tool_calls": [{"id": "t"}]})),
    ("agent_turn_hollow", UNOBSERVED, gap("turns_unavailable")),
    ("model_call_zero_completion_tokens", FINE, row()),
    (
        "model_call_zero_completion_tokens",
        FLAGGED,
        with_call(token_stats={"prompt_tokens": 3, "completion_tokens": 0}),
    ),
    (
        "model_call_zero_completion_tokens",
        UNOBSERVED,
        with_turn(model_calls=[{"model_call_id": "other"}])
        | {"ng_trajectory": ROW["ng_trajectory"] | {"invocations": [], "turns": [TURN | {"model_calls": []}]}},
    ),
    ("model_call_zero_completion_tokens", UNOBSERVED, gap("model_call_capture_incomplete")),
    ("model_call_missing_token_counts", FINE, row()),
    ("model_call_missing_token_counts", FLAGGED, with_call(token_stats={"prompt_tokens": 3})),
    ("model_call_missing_token_counts", FLAGGED, with_call(token_stats=None)),
    ("model_call_missing_token_counts", UNOBSERVED, gap("model_call_capture_unreadable")),
    ("trajectory_capture_mismatch", FINE, row()),
    ("trajectory_capture_mismatch", FLAGGED, with_turn(model_calls=[{"model_call_id": "other"}])),
    ("trajectory_capture_mismatch", FLAGGED, with_turn(model_calls=[{"model_call_id": "c1", "response_id": "r9"}])),
    ("trajectory_capture_mismatch", FLAGGED, gap("agent_observation_reference_ambiguous")),
    (
        "trajectory_capture_mismatch",
        FINE,
        with_turn(model_calls=[{"model_ref": {"type": "responses_api_models", "name": "policy"}, "response_id": "r1"}]),
    ),
    (
        "trajectory_capture_mismatch",
        FLAGGED,
        row(ng_model_call_capture={"calls": [{"model_call_id": "c1"}, {"model_call_id": "c1"}]}),
    ),
    ("trajectory_capture_mismatch", UNOBSERVED, with_trajectory(invocations=[], turns=[])),
    ("trajectory_capture_mismatch", UNOBSERVED, gap("model_call_capture_records_unreadable")),
    ("model_call_failed", FINE, row()),
    ("model_call_failed", FLAGGED, with_trajectory(model_calls=[failed()])),
    (
        "model_call_failed",
        FLAGGED,
        row(ng_model_call_capture={"calls": [{"model_call_id": "c1", "error_category": "timeout"}]}),
    ),
    ("model_call_failed", FLAGGED, with_call(response={"status": "cancelled"})),
    ("model_call_failed", UNOBSERVED, gap("model_calls_unavailable")),
    ("rollout_token_count_mismatch", FINE, row()),
    ("rollout_token_count_mismatch", FLAGGED, row(response={"usage": {"input_tokens": 3, "output_tokens": 9}})),
    ("rollout_token_count_mismatch", FINE, row(response={"usage": {"prompt_tokens": 3, "completion_tokens": 2}})),
    ("rollout_token_count_mismatch", UNOBSERVED, row(response={})),
    ("rollout_token_count_mismatch", UNOBSERVED, with_call(token_stats=None)),
    ("rollout_token_count_mismatch", UNOBSERVED, with_turn(model_calls=[{"model_call_id": "other"}])),
    ("rollout_token_count_mismatch", UNOBSERVED, gap("turn_model_call_scope_incomplete")),
    ("model_call_runaway_generation", FINE, row()),
    ("model_call_runaway_generation", FLAGGED, with_call(response=NO_TEXT)),
    (
        "model_call_runaway_generation",
        FINE,
        with_call(response=CALL["response"] | {"incomplete_details": {"reason": "max_output_tokens"}}),
    ),
    (
        "model_call_runaway_generation",
        FLAGGED,
        with_call(response={"choices": [{"finish_reason": "length", "message": {"reasoning_content": "hm"}}]}),
    ),
    (
        "model_call_runaway_generation",
        UNOBSERVED,
        with_call(response=None, response_metadata={"finish_reason": "length"}),
    ),
    ("model_call_runaway_generation", UNOBSERVED, with_trajectory(invocations=[], turns=[])),
]


def said(check, record):
    examined = examine(line(record), 0, Tally())
    if check in names_of(examined.flagged):
        return FLAGGED
    return UNOBSERVED if check in names_of(examined.unobserved) else FINE


@pytest.mark.parametrize(("check", "what", "record"), TABLE)
def test_a_check_says_of_this_record(check, what, record):
    assert said(check, record) == what


def test_every_check_that_looks_at_a_record_is_in_the_table_with_each_answer_it_can_give():
    looking = {check.id for check in OF_RECORDS if check.looks is not None}
    assert {(check, what) for check, what, _ in TABLE if check in looking} == {
        (check, what) for check in looking for what in (FLAGGED, FINE, UNOBSERVED)
    }


def test_the_checks_are_those_that_settings_may_name():
    assert set(CHECK_IDS) == HEALTH_CHECK_IDS


def test_a_sound_record_has_no_finding_and_nothing_unobserved():
    examined = examine(line(row()), 0, Tally())
    assert (examined.findings, examined.unobserved) == ((), 0)


def test_a_failed_call_is_terminal_when_it_is_the_last_and_every_reference_is_bound():
    found = {
        finding.locator["model_call_id"]: finding.detail["terminal"]
        for finding in examine(line(ENDED_BY_ERROR), 0, Tally()).findings
        if finding.check == "model_call_failed"
    }
    assert found == {"c2": True}


def test_an_ignored_check_neither_finds_nor_misses_anything():
    ignored = mask_of(["agent_turn_hollow"])
    examined = examine(line(with_turn(answer=None)), ignored, Tally())
    assert "agent_turn_hollow" not in names_of(examined.flagged | examined.unobserved)


@pytest.mark.parametrize("text", [b"", b"7", b"[]", b'{"a":', b"\xff{}", b'{"a":"\xff"}', b'{"a":' + b"[" * 100_000])
def test_a_line_that_is_no_json_object_is_unreadable_and_nothing_else_is_said_of_it(text):
    examined = examine(text, 0, Tally())
    assert names_of(examined.flagged) == ["record_unreadable"]
    assert not examined.is_line_readable


def test_without_evidence_each_check_of_a_record_is_unobserved_as_it_would_be_if_it_ran():
    bare = examine(line(row(ng_trajectory=None)), 0, Tally())
    with_empty_capture = examine(line(row(ng_trajectory=None, ng_model_call_capture={"calls": []})), 0, Tally())
    assert bare.unobserved == with_empty_capture.unobserved == mask_of(c.id for c in OF_RECORDS if c.looks)
