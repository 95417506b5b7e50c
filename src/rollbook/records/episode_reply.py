"""An episode reply, decoded → how the episode ended.

Rules:
* It is an object with the `episode_id` and the `task_id` that were asked, and with one of `result` and `failure`.
* What breaks the protocol is named by JSON type and by top-level keys, never by value.
* A reply that carries another attempt of the same rollout is stale and no violation: a request that was sent twice may
  bring it.
* A `result` holds no key that is the collector's.

Source: collection.md §1.3, §3.7, §4.1, §4.4, §21.1 (7).
"""

from collections.abc import Mapping
from typing import Final

import msgspec

from rollbook.records import keys
from rollbook.records.ending import Ending
from rollbook.records.failure_kinds import (
    AGENT_REQUEST_FAILED_FAILURE_CLASS,
    COLLECTION_DISPATCH_FAILED,
    ENVIRONMENT_SERVER_FAILURE_CLASS,
    Delivery,
    stage_of,
)
from rollbook.records.failure_report import report_in_object
from rollbook.records.json_values import JsonMapping, JsonObject, json_type
from rollbook.records.outcome import Failed
from rollbook.records.reply_codec import FIELD_PREFIX, MESSAGE_KEPT, RESERVED, ending_of_payload, explained

REPORT_FIELD: Final = "failure_report"
"""Where an episode reply may carry a failure report, beside its outcome: the object that the header would hold."""
_KEYS_SHOWN: Final = 20
_KEY_SHOWN: Final = 60
_FAILURE_FIELDS: Final[Mapping[str, tuple[type, str]]] = {
    "failure_reason": (str, "a string"),
    "terminal": (bool, "a boolean"),
    "failure_kind": (str, "a string"),
    "stage": (str, "a string"),
    "partial_response": (dict, "an object"),
}


def ending_of_episode(reply: object, episode_id: JsonMapping, task_id: object) -> Ending:
    """Return how an episode ended whose decoded reply is `reply`; `episode_id` and `task_id` are what was asked."""
    if not isinstance(reply, Mapping):
        return _violation(f"the reply is {json_type(reply)}, no episode reply")
    fault = _fault_of_shape(reply)
    if fault is not None:
        return _violation(fault)
    asked, answered = _identity(episode_id), _identity(reply["episode_id"])
    if answered[0] != asked[0] or answered[1] is None or reply["task_id"] != task_id:
        return _violation("the reply is for another episode or task")
    ending = _stale(asked[1], answered[1]) if answered != asked else _ending_of_outcome(reply)
    report = report_in_object(reply[REPORT_FIELD]) if REPORT_FIELD in reply else None
    return ending if report is None else explained(ending, report)


def _ending_of_outcome(reply: JsonMapping) -> Ending:
    failure, result = reply.get("failure"), reply.get("result")
    if isinstance(failure, Mapping):
        fault = _fault_of_failure(failure)
        return _violation(fault) if fault else Ending(_failed(failure), _evidence(failure, reply))
    body: JsonObject = dict(result) if isinstance(result, Mapping) else {}
    taken = [key for key in body if key.startswith(FIELD_PREFIX) or key in RESERVED]
    if taken:
        return _violation(f"`result` uses keys of the collector: {_names(taken)}")
    ending = ending_of_payload(body)
    return msgspec.structs.replace(ending, payload=dict(ending.payload) | {keys.NG_TASK_ID_KEY: reply.get("task_id")})


def _fault_of_shape(reply: JsonMapping) -> str | None:
    failure, result, shown = reply.get("failure"), reply.get("result"), _names(reply)
    named = isinstance(reply.get("episode_id"), Mapping) and isinstance(reply.get("task_id"), Mapping)
    if not named or not {"result", "failure"} & reply.keys():
        return f"the reply is an object, but no episode reply; it has the keys {shown}"
    if (failure is None) == (result is None):
        return f"the reply must have one of `result` and `failure`; it has the keys {shown}"
    name, body = ("failure", failure) if result is None else ("result", result)
    return None if isinstance(body, Mapping) else f"`{name}` is {json_type(body)}, no object"


def _fault_of_failure(failure: JsonMapping) -> str | None:
    for name, (expected, called) in _FAILURE_FIELDS.items():
        value = failure.get(name)
        if value is not None and type(value) is not expected:
            return f"`failure.{name}` is {json_type(value)}, not {called}"
    return None


def _identity(episode_id: object) -> tuple[object, object]:
    """Return rollout and attempt that an `episode_id` names; an attempt that is none is no attempt of ours."""
    named: JsonMapping = episode_id if isinstance(episode_id, Mapping) else {}
    attempt = named.get("attempt", 0)
    return named.get("rollout_id"), attempt if type(attempt) is int else None


def _names(named: Mapping[str, object] | list[str]) -> str:
    shown = [ascii(key[:_KEY_SHOWN])[1:-1] for key in sorted(named)[:_KEYS_SHOWN]]
    more = len(named) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "") if shown else "(none)"


def _violation(fault: str) -> Ending:
    failed = Failed(
        failure_class=ENVIRONMENT_SERVER_FAILURE_CLASS,
        message=f"protocol violation: {fault}",
        kind=COLLECTION_DISPATCH_FAILED,
        exception_type="InvalidRolloutResult",
    )
    return Ending(failed, unusable=True)


def _stale(asked: object, answered: object) -> Ending:
    failed = Failed(
        failure_class=AGENT_REQUEST_FAILED_FAILURE_CLASS,
        message=f"the reply is one of attempt {answered} of this rollout; attempt {asked} was asked for",
        kind=AGENT_REQUEST_FAILED_FAILURE_CLASS,
        delivery=Delivery.POSSIBLY_DELIVERED,
        exception_type="StaleRolloutResult",
    )
    return Ending(failed, run_failed=True)


def _failed(failure: JsonMapping) -> Failed:
    stage, kind = failure.get("stage"), failure.get("failure_kind")
    return Failed(
        failure_class=ENVIRONMENT_SERVER_FAILURE_CLASS,
        message=str(failure.get("failure_reason") or "")[:MESSAGE_KEPT],
        kind=kind if isinstance(kind, str) else None,
        stage=stage_of(stage),
        terminal=failure.get("terminal") is True,
    )


def _evidence(failure: JsonMapping, reply: JsonMapping) -> JsonObject:
    evidence: JsonObject = {keys.NG_TASK_ID_KEY: reply.get("task_id")}
    if failure.get("partial_response") is not None:
        evidence[keys.NG_FAILURE_PARTIAL_RESPONSE_KEY] = failure["partial_response"]
    return evidence
