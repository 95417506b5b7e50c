"""Rows on disk ↔ records: the one place that knows which keys mean which ending.

Rules:
* Reading decodes only the keys that decide; the rest of a row is never built.
* Writing keeps every field that the producer sent, minus the ones that only the collector may set, plus our stamps.
* A failure row carries no reward, and keeps a response only when a judge still has to see it.
* A line is strict JSON, one object, no line break.

Source: collection.md §1.3, §1.6, §1.7, §4.1 to §4.3, §4.12, §21.1.
"""

import math
from collections.abc import Mapping
from enum import Enum
from typing import Annotated, Any, Final, assert_never

import msgspec

from rollbook.records import keys
from rollbook.records.ending import Ending
from rollbook.records.failure_kinds import (
    CANCELLED_FAILURE_CLASS,
    JUDGE_FAILED,
    KILL_SHAPED_FAILURE_CLASS,
    delivery_of,
    stage_of,
)
from rollbook.records.identity import (
    ATTEMPT_INDEX_KEY_NAME,
    ROLLOUT_ID_KEY_NAME,
    ROLLOUT_INDEX_KEY_NAME,
    RUN_ID_KEY,
    TASK_INDEX_KEY_NAME,
    RolloutKey,
)
from rollbook.records.json_values import JsonMapping, JsonObject
from rollbook.records.nesting import not_too_deep
from rollbook.records.outcome import (
    Evidence,
    Failed,
    Interrupted,
    Masked,
    NeverStarted,
    Outcome,
    Scored,
    Unscored,
)
from rollbook.records.record import Record


class File(Enum):
    """Which of a run's files a line belongs to."""

    RESULTS = "results"
    FAILURES = "failures"


_Index = Annotated[int, msgspec.Meta(ge=0)]


class _Head(msgspec.Struct):
    """The keys of a saved row that say who it is and how it ended.

    Identity is strict; what a producer may have written as anything is read as what it is, and believed where it fits.
    """

    task: _Index = msgspec.field(name=TASK_INDEX_KEY_NAME)
    rollout: _Index = msgspec.field(name=ROLLOUT_INDEX_KEY_NAME)
    attempt: _Index | None = msgspec.field(name=ATTEMPT_INDEX_KEY_NAME, default=None)
    run_id: Any = msgspec.field(name=RUN_ID_KEY, default=None)
    agent_ref: Any = None
    server: Any = msgspec.field(name=keys.NG_ENVIRONMENT_SERVER_KEY, default=None)
    reward: Any = None
    mask_sample: Any = None
    failure_class: Any = msgspec.field(name=keys.NG_FAILURE_CLASS_KEY, default=None)
    message: Any = msgspec.field(name=keys.NG_FAILURE_MESSAGE_KEY, default=None)
    terminal: Any = msgspec.field(name=keys.NG_TERMINAL_KEY, default=None)
    stage: Any = msgspec.field(name=keys.NG_FAILURE_STAGE_KEY, default=None)
    delivery: Any = msgspec.field(name=keys.NG_FAILURE_DELIVERY_KEY, default=None)
    exception_type: Any = msgspec.field(name=keys.NG_FAILURE_TYPE_KEY, default=None)
    http_status: Any = msgspec.field(name=keys.NG_FAILURE_HTTP_STATUS_KEY, default=None)
    kind: Any = msgspec.field(name=keys.STATUS_FAILURE_KIND_KEY, default=None)
    omitted: Any = msgspec.field(name=keys.NG_OMITTED_ROLLOUT_KEY, default=None)
    drained: Any = msgspec.field(name=keys.NG_DISPATCH_DRAINED_KEY, default=None)
    unrouted: Any = msgspec.field(name=keys.NG_UNROUTED_RUN_ERROR_KEY, default=None)


_HEAD: Final = msgspec.json.Decoder(_Head)
_COLLECTOR_ONLY: Final = frozenset({keys.NG_OMITTED_ROLLOUT_KEY, keys.NG_UNROUTED_RUN_ERROR_KEY, RUN_ID_KEY})


def encode(row: JsonMapping) -> bytes:
    """Return `row` as one compact line without its newline.

    Raises:
        TypeError, ValueError, UnicodeEncodeError, RecursionError: the row is not JSON.

    """
    return msgspec.json.encode(row)


def read_row(line: bytes, file: File) -> Record:
    """Decode what decides about one saved row.

    Raises:
        msgspec.DecodeError: the line is no JSON object, or names no rollout.

    """
    head = _HEAD.decode(not_too_deep(line))
    agent = head.agent_ref.get("name") if isinstance(head.agent_ref, dict) else None
    return Record(
        key=RolloutKey(head.task, head.rollout),
        attempt=head.attempt or 0,
        outcome=_result(head.reward, head.mask_sample) if file is File.RESULTS else _failure(head),
        run_id=_text(head.run_id),
        agent=_text(agent),
        server=_text(head.server),
    )


def reward_of(value: object) -> float | None:
    """Return a reward as a number (true is 1, false is 0), or None when it is no finite number."""
    if not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def result_outcome(payload: JsonMapping) -> Scored | Masked | Unscored:
    """Return the ending of a reply that reports no failure."""
    return _result(payload.get(keys.REWARD_KEY), payload.get(keys.MASK_SAMPLE_KEY))


def _result(reward: object, mask_sample: object) -> Scored | Masked | Unscored:
    number = reward_of(reward)
    if mask_sample:
        return Masked(number)
    return Unscored() if number is None else Scored(number)


def _failure(head: _Head) -> Outcome:
    message = _text(head.message) or ""
    if head.unrouted:
        return Evidence(message)
    if head.omitted and head.drained:
        return NeverStarted(message)
    failure_class = _text(head.failure_class) or KILL_SHAPED_FAILURE_CLASS
    if head.omitted:
        return Interrupted(failure_class, message)
    return Failed(
        failure_class=failure_class,
        message=message,
        kind=_text(head.kind),
        stage=stage_of(head.stage),
        terminal=bool(head.terminal),
        delivery=delivery_of(head.delivery),
        exception_type=_text(head.exception_type),
        http_status=head.http_status if isinstance(head.http_status, int) else None,
    )


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def saved_row(ending: Ending, stamps: JsonMapping) -> tuple[File, JsonObject]:
    """Return the row that an ending leaves, and the file that it belongs to."""
    match ending.outcome:
        case Scored() | Masked() | Unscored():
            return File.RESULTS, _without(ending.payload, _COLLECTOR_ONLY) | dict(stamps)
        case Failed() as failed:
            row = _failure_payload(ending.payload, failed) | failure_fields(failed) | dict(stamps)
            return File.FAILURES, row
        case Interrupted() | NeverStarted() | Evidence():
            return File.FAILURES, _omitted_payload(ending) | dict(stamps)
    assert_never(ending.outcome)


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
    task_input = row.get("task_input")
    task_data = task_input.get("task_data") if isinstance(task_input, Mapping) else None
    if isinstance(task_data, Mapping):
        stamps.update({key: task_data[key] for key in keys.PROVENANCE_KEYS if key in task_data})
    return stamps


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
