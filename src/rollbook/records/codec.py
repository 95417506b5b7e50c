"""An ending → the row that is saved of it; its reverse is `reading`.

Rules:
* Writing keeps every field that the producer sent, minus the ones that only the collector may set, plus our stamps.
* A failure row carries no reward, and keeps a response only when a judge still has to see it.
* A line is strict JSON, one object, no line break.

Source: collection.md §1.3, §1.6, §1.7, §4.1 to §4.3, §4.12, §21.1.
"""

from collections.abc import Mapping
from typing import Final, assert_never

import msgspec

from rollbook.records import keys
from rollbook.records.ending import Ending
from rollbook.records.failure_kinds import (
    CANCELLED_FAILURE_CLASS,
    JUDGE_FAILED,
    KILL_SHAPED_FAILURE_CLASS,
)
from rollbook.records.failure_report import report_fields
from rollbook.records.identity import (
    ATTEMPT_INDEX_KEY_NAME,
    ROLLOUT_ID_KEY_NAME,
    ROLLOUT_INDEX_KEY_NAME,
    RUN_ID_KEY,
    TASK_INDEX_KEY_NAME,
    capture_key,
    logical_rollout_id,
)
from rollbook.records.json_values import JsonMapping, JsonObject
from rollbook.records.outcome import (
    Evidence,
    Failed,
    Interrupted,
    Masked,
    NeverStarted,
    Scored,
    Unscored,
)
from rollbook.records.place import File

__all__ = ["File", "encode", "saved_row"]


class RunStamp(msgspec.Struct, frozen=True):
    """What every record of a managed run carries: its name; and each failure: the cap that was in force."""

    run_id: str
    cap: int

    @property
    def stamped(self) -> bytes:
        """The run's name as it follows the other keys of a result's line."""
        return b"," + encode({RUN_ID_KEY: self.run_id})[1:-1]


_COLLECTOR_ONLY: Final = frozenset({keys.NG_OMITTED_ROLLOUT_KEY, keys.NG_UNROUTED_RUN_ERROR_KEY, RUN_ID_KEY})


def encode(row: JsonMapping) -> bytes:
    """Return `row` as one compact line without its newline.

    Raises:
        TypeError, ValueError, UnicodeEncodeError, RecursionError: the row is not JSON.

    """
    return msgspec.json.encode(row)


def saved_row(ending: Ending, stamps: JsonMapping, run: RunStamp | None = None) -> tuple[File, JsonObject]:
    """Return the row that an ending leaves, and the file that it belongs to."""
    named = dict(stamps) | ({RUN_ID_KEY: run.run_id} if run else {})
    match ending.outcome:
        case Scored() | Masked() | Unscored():
            return File.RESULTS, _without(ending.fields(), _COLLECTOR_ONLY) | _explained(ending) | named
        case Failed() as failed:
            row = _failure_payload(ending.payload, failed) | failure_fields(failed)
            return File.FAILURES, row | _explained(ending) | _of_run(failed, ending, run, named) | named
        case Interrupted() as interrupted if run is not None:
            row = _interruption_payload(ending.payload, interrupted)
            added = _explained(ending) | _of_run(_as_failure(interrupted), ending, run, named)
            return File.FAILURES, row | added | named
        case Interrupted() | NeverStarted() | Evidence():
            return File.FAILURES, _omitted_payload(ending) | _explained(ending) | named
    assert_never(ending.outcome)


def _explained(ending: Ending) -> JsonObject:
    return {} if ending.report is None else report_fields(ending.report)


def _of_run(failed: Failed, ending: Ending, run: RunStamp | None, named: JsonMapping) -> JsonObject:
    """Return what a managed run adds to a failure: the cap in force, the failure as one typed record, and its id.

    A failure has an id when an answer is held under it, or when a report explains it; the report then has it too.
    """
    rollout_id = logical_rollout_id(named)
    if run is None or rollout_id is None:
        return {}
    attempt = named.get(ATTEMPT_INDEX_KEY_NAME)
    number = attempt if isinstance(attempt, int) else 0
    from rollbook.records.rollout_failure import typed_failure  # noqa: PLC0415  slow to import; who reads writes none

    typed = typed_failure(failed, run_id=run.run_id, rollout_id=rollout_id, attempt=number)
    added: JsonObject = {keys.NG_FAILURE_MAX_ATTEMPTS_KEY: run.cap}
    failure_id = f"{run.run_id}-{capture_key(rollout_id, number)}"
    if failed.saved_answer:
        added[keys.NG_FAILURE_ID_KEY] = failure_id
    if ending.report is not None:
        added |= report_fields(ending.report.named(failure_id))
    if typed is not None:
        added[keys.ROLLOUT_FAILURE_KEY] = typed.model_dump(mode="json")
    return added


def _as_failure(interrupted: Interrupted) -> Failed:
    return Failed(
        failure_class=KILL_SHAPED_FAILURE_CLASS,
        message=interrupted.message or f"{interrupted.failure_class}: the rollout produced no result",
        kind=KILL_SHAPED_FAILURE_CLASS,
        stage=interrupted.stage,
        delivery=interrupted.delivery,
    )


def _interruption_payload(payload: JsonMapping, interrupted: Interrupted) -> JsonObject:
    """Return what a managed run writes of an attempt that left no result: an ending of its history, with no reward."""
    told = interrupted.failure_class
    kept = _without(payload, _COLLECTOR_ONLY | {keys.REWARD_KEY, keys.RESPONSE_KEY, keys.NG_TERMINAL_KEY})
    row = kept | failure_fields(_as_failure(interrupted)) | {keys.NG_NO_PERSIST_KEY: True}
    if told != KILL_SHAPED_FAILURE_CLASS:
        row[keys.NG_FAILURE_LEGACY_CLASS_KEY] = told
    return row


def failure_fields(failed: Failed) -> JsonObject:
    """Return a failure as the field's own `_ng_failure_*` keys."""
    fields: JsonObject = {
        keys.NG_FAILURE_CLASS_KEY: failed.failure_class,
        keys.NG_FAILURE_MESSAGE_KEY: failed.message,
        keys.NG_FAILURE_DELIVERY_KEY: failed.delivery.value,
    }
    optional: JsonObject = {
        keys.NG_FAILURE_TYPE_KEY: failed.exception_type,
        keys.NG_FAILURE_STAGE_KEY: failed.stage.value if failed.stage else None,
        keys.STATUS_FAILURE_KIND_KEY: failed.kind,
        keys.NG_TERMINAL_KEY: True if failed.terminal else None,
    }
    fields.update({key: value for key, value in optional.items() if value is not None})
    if failed.exception_type is not None:
        fields[keys.NG_FAILURE_HTTP_STATUS_KEY] = failed.http_status
        fields[keys.NG_FAILURE_RESPONSE_BODY_KEY] = failed.response_body
    return fields


def omitted_rollout_record(result: JsonMapping) -> JsonObject:
    """Return the failures row for a result that says that no result exists.

    The row is a copy: identity, agent and diagnostics stay. Source: collection.md §4.12.
    """
    drained = bool(result.get(keys.NG_DISPATCH_DRAINED_KEY))
    failure_class = result.get(keys.NG_FAILURE_CLASS_KEY) or (
        CANCELLED_FAILURE_CLASS if drained else KILL_SHAPED_FAILURE_CLASS
    )
    reasons = (result.get(key) for key in (keys.NG_FAILURE_MESSAGE_KEY, "error_message", "error"))
    message = next((reason for reason in reasons if reason), f"{failure_class}: the rollout produced no result")
    return dict(result) | {
        keys.NG_NO_PERSIST_KEY: True,
        keys.NG_OMITTED_ROLLOUT_KEY: True,
        keys.NG_FAILURE_CLASS_KEY: failure_class,
        keys.NG_FAILURE_MESSAGE_KEY: message,
    }


def is_omitted_rollout_row(row: JsonMapping) -> bool:
    """Whether `row` records a rollout that produced no result."""
    return bool(row.get(keys.NG_OMITTED_ROLLOUT_KEY))


def is_unstarted_rollout_row(row: JsonMapping) -> bool:
    """Whether `row` records a rollout that was never sent."""
    return is_omitted_rollout_row(row) and bool(row.get(keys.NG_DISPATCH_DRAINED_KEY))


def is_non_superseding_rollout_row(row: JsonMapping) -> bool:
    """Whether `row` leaves the standing of its rollout as it is."""
    return is_unstarted_rollout_row(row) or bool(row.get(keys.NG_UNROUTED_RUN_ERROR_KEY))


def stamps_of(row: JsonMapping) -> JsonObject:
    """Return what every record of a materialized row carries, in the order in which it is stamped."""
    stamped = (
        TASK_INDEX_KEY_NAME,
        ROLLOUT_INDEX_KEY_NAME,
        keys.AGENT_REF_KEY,
        keys.TASK_SOURCE_KEY,
        keys.SKILLS_REF_KEY,
        ATTEMPT_INDEX_KEY_NAME,
        ROLLOUT_ID_KEY_NAME,
        keys.NG_ENVIRONMENT_SERVER_KEY,
    )
    stamps: JsonObject = {key: row[key] for key in stamped if key in row}
    return stamps | provenance_of(row.get("task_input"))


def provenance_of(task_input: object) -> JsonObject:
    """Return where the task of a materialized row came from, as far as the row says."""
    task_data = task_input.get("task_data") if isinstance(task_input, Mapping) else None
    held = task_data if isinstance(task_data, Mapping) else {}
    return {key: held[key] for key in keys.PROVENANCE_KEYS if key in held}


def _without(payload: JsonMapping, dropped: frozenset[str]) -> JsonObject:
    return {key: value for key, value in payload.items() if key not in dropped}


def _failure_payload(payload: JsonMapping, failed: Failed) -> JsonObject:
    dropped = {keys.REWARD_KEY} if failed.failure_class == JUDGE_FAILED else {keys.REWARD_KEY, keys.RESPONSE_KEY}
    return _without(payload, _COLLECTOR_ONLY | dropped)


def _omitted_payload(ending: Ending) -> JsonObject:
    payload = _without(ending.payload, _COLLECTOR_ONLY)
    match ending.outcome:
        case NeverStarted(reason):
            payload |= {keys.NG_DISPATCH_DRAINED_KEY: True, "error_message": reason}
        case Evidence(message):
            payload |= {keys.NG_UNROUTED_RUN_ERROR_KEY: True, keys.NG_FAILURE_MESSAGE_KEY: message}
        case Interrupted(failure_class, message):
            payload |= {keys.NG_FAILURE_CLASS_KEY: failure_class}
            payload |= {keys.NG_FAILURE_MESSAGE_KEY: message} if message else {}
        case _:
            raise AssertionError(f"no row without a result is written for {ending.outcome!r}")
    return omitted_rollout_record(payload)
