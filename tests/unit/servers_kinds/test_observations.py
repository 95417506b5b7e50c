"""What an agent saw: the shapes of a bundle and of a trajectory, and how captured calls are joined to it."""

import msgspec
import pytest
from pydantic import ValidationError

from rollbook.health.trajectory import InvalidTrajectoryError, read_trajectory
from rollbook.servers.kinds.observation_joining import join_model_call_observations
from rollbook.servers.kinds.observations import (
    AgentObservation,
    AgentObservationBundle,
    ModelCallRef,
    SandboxObservation,
)
from rollbook.servers.kinds.trajectory import TrajectoryRecord

POLICY = {"type": "responses_api_models", "name": "policy_model"}
INVOCATION = {"kind": "agent_invocation", "invocation_id": "root", "status": "completed"}
TOOL = {"kind": "tool_call", "invocation_id": "root", "tool_call_id": "call_1", "duration_ms": 12.5}
COMPACTION = {"kind": "context_compaction", "invocation_id": "root", "tokens_before": 900, "tokens_after": 90}
SANDBOX = {"kind": "sandbox", "role": "verifier", "provider": "local", "outcome": "timeout", "exit_code": 124}
TURN = {"invocation_id": "root", "task_id": "7", "rollout_id": "7-0", "turn_no": 1}
CALL = {"model_call_id": "c1", "model_ref": POLICY, "response_id": "resp_1", "client_session_id": None}


def bundle(*references, session="root"):
    return AgentObservationBundle.model_validate(
        {
            "source": "colours",
            "records": [{**INVOCATION, "invocation_id": session, "model_calls": list(references)}],
        }
    )


@pytest.mark.parametrize("record", [INVOCATION, TOOL, COMPACTION, SANDBOX])
def test_a_record_becomes_the_class_of_its_kind_and_goes_out_as_it_came(record):
    [read] = AgentObservationBundle.model_validate({"source": "a", "records": [record]}).records
    assert type(read) is not AgentObservation
    assert read.model_dump(exclude_unset=True) == record


def test_a_record_of_another_kind_keeps_its_fields():
    [read] = AgentObservationBundle.model_validate({"source": "a", "records": [{"kind": "mood", "tone": 3}]}).records
    assert read.model_dump() == {"kind": "mood", "tone": 3}


def test_a_bundle_survives_the_wire():
    sent = AgentObservationBundle.model_validate(
        {"source": "a", "records": [INVOCATION, TOOL, COMPACTION, SANDBOX], "gaps": [{"code": "tool_timing"}]}
    )
    assert AgentObservationBundle.model_validate_json(sent.model_dump_json()) == sent


@pytest.mark.parametrize("reference", [{}, {"model_ref": POLICY}, {"response_id": "resp_1"}])
def test_a_reference_that_names_no_call_is_refused(reference):
    with pytest.raises(ValidationError, match="a reference needs model_call_id, or model_ref together with"):
        ModelCallRef.model_validate(reference)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"mood": 1}, "Extra inputs"),
        ({"schema_version": "2.0"}, "Input should be '1.0'"),
        ({"invocations": [INVOCATION, INVOCATION]}, "the same invocation_id is there twice: root"),
        ({"model_calls": [{"model_call_id": "c1"}, {"model_call_id": "c1"}]}, "the same model_call_id"),
        ({"turns": [TURN, TURN]}, "the same turn is there twice"),
        ({"turns": [{**TURN, "turn_no": 0}]}, "greater than or equal to 1"),
        ({"turns": [{**TURN, "rollout_id": "7-1"}]}, "turn 1 is of task '7', rollout '7-1'"),
    ],
)
def test_a_trajectory_that_contradicts_itself_is_refused(changes, why):
    with pytest.raises(ValidationError, match=why):
        TrajectoryRecord.model_validate({"task_id": "7", "rollout_id": "7-0"} | changes)


def test_health_reads_every_trajectory_that_this_shape_lets_through():
    record = TrajectoryRecord.model_validate(
        {
            "task_id": "7",
            "rollout_id": "7-0",
            "invocations": [{**INVOCATION, "model_calls": [{"model_call_id": "c1"}]}],
            "turns": [{**TURN, "answer": [{"type": "message", "content": "teal"}], "timestamp": 1.5}],
            "model_calls": [{"model_call_id": "c1", "token_stats": {"prompt_tokens": 3}}],
            "tool_calls": [{**TOOL, "output": "teal"}],
            "gaps": [{"code": "conversation_unavailable"}],
        }
    )
    read = read_trajectory(msgspec.Raw(record.model_dump_json().encode()))
    assert (read.turns[0].turn_no, read.model_calls[0].model_call_id) == (1, "c1")
    with pytest.raises(InvalidTrajectoryError):
        read_trajectory(msgspec.Raw(b'{"turns": 3}'))


def test_a_response_of_a_model_is_completed_to_its_call():
    joined = join_model_call_observations(bundle({"model_ref": POLICY, "response_id": "resp_1"}), [CALL])
    assert joined.records[0].model_calls[0].model_call_id == "c1"
    assert joined.gaps == []


def test_a_call_that_nobody_names_belongs_to_the_invocation_that_was_its_session():
    joined = join_model_call_observations(bundle(), [{**CALL, "client_session_id": "root"}])
    assert [reference.model_call_id for reference in joined.records[0].model_calls] == ["c1"]
    assert joined.gaps == []


@pytest.mark.parametrize(
    ("references", "calls", "gaps"),
    [
        ([{"model_call_id": "c9"}], [], [("model_call_reference_unmatched", "root", "c9")]),
        (
            [{"model_ref": POLICY, "response_id": "resp_1"}],
            [CALL, {**CALL, "model_call_id": "c2"}],
            [
                ("model_call_reference_ambiguous", "root", "resp_1"),
                ("model_call_ownership_unavailable", None, "c1"),
                ("model_call_ownership_unavailable", None, "c2"),
            ],
        ),
        (
            [{"model_call_id": "c1", "model_ref": {**POLICY, "name": "judge"}}],
            [CALL],
            [("model_call_reference_conflict", "root", "c1")],
        ),
        ([], [CALL], [("model_call_ownership_unavailable", None, "c1")]),
    ],
)
def test_what_does_not_come_out_even_is_a_gap_and_never_a_guess(references, calls, gaps):
    joined = join_model_call_observations(bundle(*references), calls)
    assert [(gap.code, gap.invocation_id, gap.detail) for gap in joined.gaps] == gaps
    assert [reference.model_dump(exclude_unset=True) for reference in joined.records[0].model_calls] == references


def test_the_call_before_which_a_context_was_compacted_is_completed_too():
    seen = AgentObservationBundle.model_validate(
        {
            "source": "a",
            "records": [{**COMPACTION, "before_model_call": {"model_ref": POLICY, "response_id": "resp_1"}}],
        }
    )
    joined = join_model_call_observations(seen, [CALL])
    assert joined.records[0].before_model_call.model_call_id == "c1"


def test_what_a_sandbox_used_is_null_where_nobody_measured_it():
    told = SandboxObservation(role="verifier", outcome="completed", wall_time_s=1.5).model_dump(mode="json")
    assert told == {
        "kind": "sandbox",
        "role": "verifier",
        "provider": None,
        "sandbox_id": None,
        "outcome": "completed",
        "exit_code": None,
        "error_type": None,
        "wall_time_s": 1.5,
        "cpu_time_s": None,
        "peak_memory_mib": None,
        "resource_usage_source": None,
    }
