"""A reply to `/run`, decoded → how the attempt ended.

Rules:
* The reply's own markers decide; what the HTTP exchange looked like is judged elsewhere.
* Keys that only the collector may set are dropped; the producer's evidence is kept.
* A reward that is no finite number is a failure of the verifier, stated as one, never a zero and never an exception.

Source: collection.md §3.7, §4.1, §4.2, §4.4, §21.1.
"""

from collections.abc import Mapping
from typing import Final

from rollbook.records import keys
from rollbook.records.ending import Ending
from rollbook.records.failure_kinds import (
    AGENT_RUN_ERROR_FAILURE_CLASS,
    ENVIRONMENT_SERVER_FAILURE_CLASS,
    JUDGE_FAILED,
    KILL_SHAPED_FAILURE_CLASS,
    VERIFIER_ERROR,
    Delivery,
    FailureStage,
    delivery_of,
    stage_of,
)
from rollbook.records.json_values import JsonMapping, JsonObject
from rollbook.records.outcome import Failed, Interrupted
from rollbook.records.reading import result_outcome, reward_of
from rollbook.records.rejudgment import holds_saved_answer

_FIELD_PREFIX: Final = "_ng_"
_PRODUCER_PREFIX: Final = "_ng_failure_"
_PRODUCER_KEYS: Final = frozenset(
    {
        keys.NG_NO_PERSIST_KEY,
        "_ng_model_final",
        "_ng_token_capture",
        "_ng_terminal_model_call_id",
    }
)
_RESERVED: Final = frozenset({"ng_model_call_capture", "ng_perf", keys.NG_POLICY_MODEL_SERVER_KEY})
_MESSAGE_KEPT: Final = 2000
_MESSAGE_KEYS: Final = (keys.NG_FAILURE_MESSAGE_KEY, keys.FAILURE_REASON_KEY, "error_message", "error")


def ending_of_payload(payload: JsonMapping) -> Ending:
    """Return how an attempt ended whose reply is `payload`."""
    kept = _sanitised(payload)
    failure_class = kept.get(keys.NG_FAILURE_CLASS_KEY)
    if kept.get(keys.NG_NO_PERSIST_KEY):
        return Ending(_interruption(failure_class, kept), kept)
    if failure_class is not None:
        return Ending(_reported(_class_in(failure_class, AGENT_RUN_ERROR_FAILURE_CLASS), kept), kept)
    reward = kept.get(keys.REWARD_KEY)
    if reward is not None and reward_of(reward) is None:
        return Ending(_no_number(reward), kept)
    return Ending(result_outcome(kept), kept)


def ending_of_episode(payload: JsonMapping, episode_id: JsonMapping, task_id: object) -> Ending:
    """Return how an episode ended whose reply is `payload`.

    `episode_id` and `task_id` are what was asked; a reply for another episode, with neither or both of `result` and
    `failure`, or with keys that belong to the collector is a violation of the protocol, named by key, never by value.
    """
    fault = _episode_fault(payload, episode_id, task_id)
    if fault is not None:
        return Ending(_violation(fault))
    failure, result = payload.get("failure"), payload.get("result")
    if isinstance(failure, Mapping):
        return Ending(_episode_failure(failure), _episode_evidence(failure, payload))
    body: JsonObject = dict(result) if isinstance(result, Mapping) else {}
    ending = ending_of_payload(body)
    return Ending(ending.outcome, dict(ending.payload) | {keys.NG_TASK_ID_KEY: payload.get("task_id")})


def _sanitised(payload: JsonMapping) -> JsonObject:
    return {key: value for key, value in payload.items() if not _is_collectors(key)}


def _is_collectors(key: str) -> bool:
    if key in _RESERVED:
        return True
    if not key.startswith(_FIELD_PREFIX) or key in _PRODUCER_KEYS:
        return False
    return not key.startswith(_PRODUCER_PREFIX)


def _class_in(value: object, otherwise: str) -> str:
    """Return the failure class that a reply names; whatever it is, it is no result."""
    return str(value)[:_MESSAGE_KEPT] if value else otherwise


def _message(payload: JsonMapping) -> str:
    return next((str(payload[key])[:_MESSAGE_KEPT] for key in _MESSAGE_KEYS if payload.get(key)), "")


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
    try:
        return repr(value)[:200]
    except ValueError:
        return f"a number of {value.bit_length()} bits" if isinstance(value, int) else type(value).__name__


def _violation(fault: str) -> Failed:
    return Failed(
        failure_class=ENVIRONMENT_SERVER_FAILURE_CLASS,
        message=f"protocol violation: {fault}",
        kind="collection_dispatch_failed",
    )


def _episode_fault(payload: JsonMapping, episode_id: JsonMapping, task_id: object) -> str | None:
    failure, result = payload.get("failure"), payload.get("result")
    shown = ", ".join(sorted(payload)[:20])
    if not isinstance(payload.get("episode_id"), Mapping) or not isinstance(payload.get("task_id"), Mapping):
        return f"the reply is no episode reply; it has the keys {shown}"
    if (failure is None) == (result is None):
        return f"the reply must have one of `result` and `failure`; it has the keys {shown}"
    body = failure if result is None else result
    if not isinstance(body, Mapping):
        return "`result` or `failure` is no object"
    if payload["episode_id"] != episode_id or payload["task_id"] != task_id:
        return "the reply is for another episode or task"
    if failure is not None:
        return None
    taken = [key for key in body if key.startswith(_FIELD_PREFIX) or key in _RESERVED]
    return f"`result` uses keys of the collector: {', '.join(sorted(taken))}" if taken else None


def _episode_failure(failure: JsonMapping) -> Failed:
    stage, kind = failure.get("stage"), failure.get("failure_kind")
    return Failed(
        failure_class=ENVIRONMENT_SERVER_FAILURE_CLASS,
        message=str(failure.get("failure_reason", ""))[:_MESSAGE_KEPT],
        kind=kind if isinstance(kind, str) else None,
        stage=stage_of(stage),
        terminal=bool(failure.get("terminal")),
    )


def _episode_evidence(failure: JsonMapping, payload: JsonMapping) -> JsonObject:
    evidence: JsonObject = {keys.NG_TASK_ID_KEY: payload.get("task_id")}
    if failure.get("partial_response") is not None:
        evidence[keys.NG_FAILURE_PARTIAL_RESPONSE_KEY] = failure["partial_response"]
    return evidence
