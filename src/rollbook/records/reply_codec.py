"""A reply to `/run`, decoded → how the attempt ended.

Rules:
* The reply's own markers decide; what the HTTP exchange looked like is judged elsewhere.
* Keys that only the collector may set are dropped; the producer's evidence is kept.
* A report that came with a reply goes along and decides nothing.
* A reward that is no finite number is a failure of the verifier, stated as one, never a zero and never an exception.

Source: collection.md §3.7, §4.1, §4.2, §4.4, §21.1.
"""

from typing import Final

import msgspec

from rollbook.records import keys
from rollbook.records.ending import Ending
from rollbook.records.failure_kinds import (
    AGENT_RUN_ERROR_FAILURE_CLASS,
    COLLECTION_DISPATCH_FAILED,
    JUDGE_FAILED,
    KILL_SHAPED_FAILURE_CLASS,
    VERIFIER_ERROR,
    Delivery,
    FailureStage,
    delivery_of,
    stage_of,
)
from rollbook.records.failure_report import FailureReport, report_in_row
from rollbook.records.json_values import JsonMapping, JsonObject, json_type
from rollbook.records.outcome import Failed, Interrupted
from rollbook.records.reading import result_outcome, reward_of
from rollbook.records.rejudgment import holds_saved_answer

FIELD_PREFIX: Final = "_ng_"
_PRODUCER_PREFIX: Final = "_ng_failure_"
_PRODUCER_KEYS: Final = frozenset(
    {
        keys.NG_NO_PERSIST_KEY,
        "_ng_model_final",
        "_ng_token_capture",
        "_ng_terminal_model_call_id",
    }
)
RESERVED: Final = frozenset({"ng_model_call_capture", "ng_perf", keys.NG_POLICY_MODEL_SERVER_KEY})
MESSAGE_KEPT: Final = 2000
_STATUSES: Final = range(100, 600)
_MESSAGE_KEYS: Final = (keys.NG_FAILURE_MESSAGE_KEY, keys.FAILURE_REASON_KEY, "error_message", "error")


def ending_of_payload(payload: JsonMapping) -> Ending:
    """Return how an attempt ended whose reply is `payload`."""
    kept = sanitised(payload)
    if keys.NG_FAILURE_EVENTS_KEY in kept:
        return _with_own_report(kept)
    failure_class = kept.get(keys.NG_FAILURE_CLASS_KEY)
    if kept.get(keys.NG_NO_PERSIST_KEY):
        return Ending(_interruption(failure_class, kept), kept)
    if failure_class is not None:
        return Ending(_reported(_class_in(failure_class, AGENT_RUN_ERROR_FAILURE_CLASS), kept), kept)
    reward = kept.get(keys.REWARD_KEY)
    if reward is not None and reward_of(reward) is None:
        return Ending(_no_number(reward), kept)
    return Ending(result_outcome(kept), kept)


def explained(ending: Ending, report: FailureReport) -> Ending:
    """Return `ending` with the report that came with its reply.

    A failed `/run` is a failure of its own, caused by the one that the report tells and named after it; a failure that
    the reply reports keeps the name that it has.
    """
    failed = ending.outcome
    if not isinstance(failed, Failed):
        return msgspec.structs.replace(ending, report=report, payload=ending.fields(), kept=None)
    kind = (report.kind or failed.kind) if ending.run_failed else (failed.kind or report.kind)
    if ending.run_failed:
        report = report.caused("collection", COLLECTION_DISPATCH_FAILED, http_status=_status_in(failed))
    return msgspec.structs.replace(ending, outcome=msgspec.structs.replace(failed, kind=kind), report=report)


def reports_failure(payload: JsonMapping) -> bool:
    """Tell whether a reply says of itself that it is no result; its reasons are then what is told of the failure."""
    return bool(payload.get(keys.NG_NO_PERSIST_KEY)) or payload.get(keys.NG_FAILURE_CLASS_KEY) is not None


def sanitised(payload: JsonMapping) -> JsonObject:
    """Return a reply's own fields without those that only the collector may set."""
    return {key: value for key, value in payload.items() if not _is_collectors(key)}


def _is_collectors(key: str) -> bool:
    if key in RESERVED:
        return True
    if not key.startswith(FIELD_PREFIX) or key in _PRODUCER_KEYS:
        return False
    return not key.startswith(_PRODUCER_PREFIX)


def _status_in(failed: Failed) -> int | None:
    """Return the status of a failed `/run`, if it is one that HTTP knows."""
    return failed.http_status if failed.http_status in _STATUSES else None


def _with_own_report(kept: JsonObject) -> Ending:
    """Return the ending of a reply that holds a report among its fields; one that is none is left out."""
    report = report_in_row(kept)
    rest = {key: value for key, value in kept.items() if key not in keys.NG_FAILURE_REPORT_KEYS}
    ending = ending_of_payload(rest)
    return ending if report is None else explained(ending, report)


def _class_in(value: object, otherwise: str) -> str:
    """Return the failure class that a reply names; whatever it is, it is no result."""
    return text_of(value) if value else otherwise


def _message(payload: JsonMapping) -> str:
    return next((text_of(payload[key]) for key in _MESSAGE_KEYS if payload.get(key)), "")


def _interruption(failure_class: object, payload: JsonMapping) -> Interrupted:
    """Return an attempt that its agent reports as ended without a result, with what the reply says of the cause."""
    said = payload.get(keys.NG_FAILURE_DELIVERY_KEY)
    return Interrupted(
        _class_in(failure_class, KILL_SHAPED_FAILURE_CLASS),
        _message(payload),
        Delivery.POSSIBLY_DELIVERED if said is None else delivery_of(said),
        stage_of(payload.get(keys.NG_FAILURE_STAGE_KEY)),
    )


def _reported(failure_class: str, payload: JsonMapping) -> Failed:
    stage, kind = payload.get(keys.NG_FAILURE_STAGE_KEY), payload.get(keys.STATUS_FAILURE_KIND_KEY)
    return Failed(
        failure_class=failure_class,
        message=_message(payload),
        kind=kind if isinstance(kind, str) else None,
        stage=stage_of(stage),
        terminal=bool(payload.get(keys.NG_TERMINAL_KEY)),
        delivery=Delivery.DELIVERED,
        counts_as_zero=bool(payload.get(keys.NG_FAILURE_COUNTS_AS_ZERO_KEY)),
        saved_answer=_keeps_answer(failure_class, payload),
        reuses_deliverable=bool(payload.get(keys.REUSE_CACHED_DELIVERABLE_KEY)),
    )


def _keeps_answer(failure_class: str, payload: JsonMapping) -> bool:
    """Whether the row of this failure keeps something to judge: a response is kept for a judge alone."""
    kept = payload if failure_class == JUDGE_FAILED else {keys.DELIVERABLES_KEY: payload.get(keys.DELIVERABLES_KEY)}
    return holds_saved_answer(kept)


def _no_number(reward: object) -> Failed:
    return Failed(
        failure_class=AGENT_RUN_ERROR_FAILURE_CLASS,
        message=f"the reply's reward is no finite number: {_shown(reward)}",
        kind=VERIFIER_ERROR,
        stage=FailureStage.VERIFICATION,
    )


def _shown(value: object) -> str:
    return repr(value)[:200] if isinstance(value, str) else text_of(value)[:200]


def text_of(value: object) -> str:
    """Return the beginning of a value as text, whatever value it is."""
    if isinstance(value, str):
        return value[:MESSAGE_KEPT]
    try:
        return str(value)[:MESSAGE_KEPT]
    except (ValueError, RecursionError):
        return f"a number of {value.bit_length()} bits" if isinstance(value, int) else json_type(value)
