import subprocess
import sys

import pytest
from pydantic import ValidationError

from rollbook.errors import RollbookError
from rollbook.records.failure_kinds import (
    AGENT_REQUEST_FAILED_FAILURE_CLASS,
    ENVIRONMENT_SERVER_FAILURE_CLASS,
    Delivery,
    FailureStage,
)
from rollbook.records.outcome import Failed
from rollbook.records.rollout_failure import (
    ROLLOUT_FAILURE_KEY,
    RolloutFailure,
    RolloutFailureRecord,
    rollout_failure_of,
    typed_failure,
)

RECORD = {
    "schema_version": 1,
    "episode_id": {"rollout_id": "4-0", "attempt": 2},
    "run_id": "r1",
    "source": "collector",
    "delivery": "possibly_delivered",
    "failure": {"failure_reason": "timed out", "terminal": False},
}


def failed(**changes):
    return Failed(**({"failure_class": "agent_run_error", "message": "boom"} | changes))


def typed(failure, *, run_id="r1", rollout_id="4-0", attempt=2):
    return typed_failure(failure, run_id=run_id, rollout_id=rollout_id, attempt=attempt)


def row(**changes):
    return {"_ng_task_index": 4, "_ng_rollout_index": 0, "_ng_attempt_index": 2, ROLLOUT_FAILURE_KEY: RECORD | changes}


def test_both_names_of_the_record_are_one_class():
    assert RolloutFailureRecord is RolloutFailure


def test_a_record_is_written_as_it_was_read():
    assert RolloutFailure.model_validate(RECORD).model_dump(mode="json") == RECORD


def test_fields_that_say_nothing_are_left_out_of_json():
    assert "null" not in RolloutFailure.model_validate(RECORD).model_dump_json()


def test_fields_that_say_something_stay():
    said = RECORD | {
        "http_status": 500,
        "exception_type": "TimeoutError",
        "failure": RECORD["failure"] | {"failure_kind": "agent_timeout", "stage": "agent"},
    }
    assert RolloutFailure.model_validate(said).model_dump(mode="json") == said


def test_a_record_without_a_version_is_of_version_one():
    unversioned = {key: value for key, value in RECORD.items() if key != "schema_version"}
    assert RolloutFailure.model_validate(unversioned).schema_version == 1


def test_a_record_cannot_be_changed():
    with pytest.raises(ValidationError):
        RolloutFailure.model_validate(RECORD).run_id = "other"


@pytest.mark.parametrize(
    "changes",
    [
        {"run_id": ""},
        {"source": "agent"},
        {"delivery": "lost"},
        {"http_status": 99},
        {"http_status": 600},
        {"exception_type": "x" * 2001},
        {"failure": {"failure_reason": "x" * 2001, "terminal": False}},
        {"failure": {"failure_reason": "x"}},
        {"episode_id": {"rollout_id": "4-0-a1", "attempt": 0}},
        {"episode_id": {"rollout_id": "4-0", "attempt": -1}},
        {"schema_version": 2},
        {"schema_version": None},
        {"reward": 1.0},
    ],
)
def test_what_the_contract_does_not_allow_is_no_record(changes):
    with pytest.raises(ValidationError):
        RolloutFailure.model_validate(RECORD | changes)


@pytest.mark.parametrize("delivery", ["not_sent", "possibly_delivered"])
def test_an_environment_cannot_report_what_was_not_delivered(delivery):
    with pytest.raises(ValidationError, match="requires delivery 'delivered'"):
        RolloutFailure.model_validate(RECORD | {"source": "environment", "delivery": delivery})


def test_a_failure_keeps_what_is_known_about_it():
    record = typed(
        failed(
            kind="agent_timeout",
            stage=FailureStage.AGENT,
            terminal=True,
            delivery=Delivery.POSSIBLY_DELIVERED,
            exception_type="TimeoutError",
            http_status=504,
        )
    )
    assert record is not None
    assert record.model_dump(mode="json") == RECORD | {
        "failure": {
            "failure_reason": "boom",
            "terminal": True,
            "failure_kind": "agent_timeout",
            "stage": "agent",
        },
        "http_status": 504,
        "exception_type": "TimeoutError",
    }


@pytest.mark.parametrize(
    ("failure_class", "delivery", "source"),
    [
        (ENVIRONMENT_SERVER_FAILURE_CLASS, Delivery.DELIVERED, "environment"),
        (ENVIRONMENT_SERVER_FAILURE_CLASS, Delivery.POSSIBLY_DELIVERED, "collector"),
        (AGENT_REQUEST_FAILED_FAILURE_CLASS, Delivery.DELIVERED, "collector"),
        (AGENT_REQUEST_FAILED_FAILURE_CLASS, Delivery.NOT_SENT, "collector"),
    ],
)
def test_only_a_delivered_failure_of_an_environment_server_is_reported_by_the_environment(
    failure_class, delivery, source
):
    assert typed(failed(failure_class=failure_class, delivery=delivery)).source == source


def test_texts_are_cut_to_two_thousand_characters():
    record = typed(failed(message="é" * 2001, exception_type="E" * 2001))
    assert (len(record.failure.failure_reason), len(record.exception_type)) == (2000, 2000)


def test_a_lone_surrogate_in_a_message_costs_no_record():
    assert typed(failed(message="a\ud800b")).failure.failure_reason == "a?b"


@pytest.mark.parametrize(("status", "kept"), [(99, None), (600, None), (0, None), (100, 100), (599, 599), (None, None)])
def test_a_status_that_is_none_is_left_out(status, kept):
    assert typed(failed(http_status=status)).http_status == kept


@pytest.mark.parametrize("names", [{"run_id": None}, {"run_id": ""}, {"rollout_id": "4-0-a1"}, {"rollout_id": "a b"}])
def test_an_attempt_without_a_name_has_no_record(names):
    assert typed(failed(), **names) is None


@pytest.mark.parametrize("saved", [{}, {ROLLOUT_FAILURE_KEY: None}])
def test_a_row_without_a_record_has_none(saved):
    assert rollout_failure_of(saved) is None


def test_a_saved_record_is_read_back():
    assert rollout_failure_of(row()) == RolloutFailure.model_validate(RECORD)


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"schema_version": 2, "lane": 7}, "schema_version 2 is not known"),
        ({"schema_version": True}, "schema_version True is not known"),
        ({"schema_version": None}, "schema_version None is not known"),
        ({"lane": 7}, "unknown field 'lane'"),
        ({"failure": RECORD["failure"] | {"score": 1}}, "unknown field 'failure.score'"),
        ({"episode_id": {"rollout_id": "4-0", "run": 1}}, "unknown field 'episode_id.run'"),
        ({"source": "environment"}, "the record: Value error, source 'environment' requires"),
    ],
)
def test_a_record_of_another_version_is_refused_and_named(changes, named):
    with pytest.raises(RollbookError, match=rf"rollout 4-0, attempt 2: .*{named}"):
        rollout_failure_of(row(**changes))


def test_a_value_that_is_no_object_is_refused():
    with pytest.raises(RollbookError, match="no object but str"):
        rollout_failure_of({ROLLOUT_FAILURE_KEY: "broken"})


def test_a_refusal_shows_no_values():
    with pytest.raises(RollbookError) as raised:
        rollout_failure_of(row(token="hunter2"))
    assert "hunter2" not in str(raised.value)


def test_importing_the_package_does_not_load_the_record():
    code = "import sys, rollbook; sys.exit('rollbook.records.rollout_failure' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
