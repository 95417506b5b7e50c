"""One exchange with an environment server → how the attempt ended.

Rules:
* A gateway status (429, 502, 503, 504) leaves open whether the request ran; any other status >= 400 says it did.
* A reply means that it ran: a body that cannot be read is a failed run, with the reply's own status.
* Delivery is evidence about the other side, and says nothing about whether to try again.

Source: collection.md §3.7, §1.3.
"""

import re
from http import HTTPStatus
from typing import Final

import msgspec

from rollbook.records.ending import Ending
from rollbook.records.exchange import Reply, SendFailed
from rollbook.records.failure_kinds import (
    AGENT_REQUEST_FAILED_FAILURE_CLASS,
    AGENT_RUN_ERROR_FAILURE_CLASS,
    GATEWAY_STATUSES,
    Delivery,
)
from rollbook.records.json_values import JsonMapping
from rollbook.records.nesting import not_too_deep
from rollbook.records.outcome import Failed
from rollbook.records.reply_codec import ending_of_episode, ending_of_payload
from rollbook.records.task import Rollout

_BODY_KEPT: Final = 2000
_ERROR: Final = 400
_CAUSE_KEPT: Final = 200
_QUOTED: Final = re.compile(r"\bb\\*['\"]")
_ESCAPED_SPACE: Final = re.compile(r"\\+[nrt]")
_UNREACHABLE: Final = "transport_unreachable"


def ending_of_reply(reply: Reply, rollout: Rollout) -> Ending:
    """Return how the attempt of `rollout` ended that brought `reply`."""
    if reply.status >= _ERROR:
        return _status_ending(reply)
    try:
        payload = msgspec.json.decode(not_too_deep(reply.body))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return _unreadable(reply, "JSONDecodeError", f"{reply.status} with a body that is no JSON: {error}")
    if not isinstance(payload, dict):
        return _unreadable(reply, "InvalidRolloutResult", f"{reply.status} with JSON that is no object")
    if rollout.is_episode:
        request = episode_request(rollout)
        return ending_of_episode(payload, request["episode_id"], request["task"]["task_id"])
    return ending_of_payload(payload)


def ending_of_send_failure(failure: SendFailed) -> Ending:
    """Return how an attempt ended whose request brought no whole reply; one whose status was read did run."""
    ran = failure.status is not None and failure.status not in GATEWAY_STATUSES
    failed = Failed(
        failure_class=AGENT_RUN_ERROR_FAILURE_CLASS if ran else AGENT_REQUEST_FAILED_FAILURE_CLASS,
        message=failure.message or f"{failure.exception_type}()",
        kind=_transport_kind(failure),
        delivery=failure.delivery,
        exception_type=failure.exception_type,
        http_status=failure.status,
    )
    return Ending(failed, run_failed=True)


def request_body(rollout: Rollout) -> bytes:
    """Return what is posted: a flat row as it stands, or the episode request of a materialized task."""
    return msgspec.json.encode(episode_request(rollout)) if rollout.is_episode else rollout.line


def episode_request(rollout: Rollout) -> dict[str, JsonMapping]:
    """Return the episode request of a materialized task: its identity with the attempt apart, and the task."""
    row = msgspec.json.decode(rollout.line, type=dict[str, object])
    return {
        "episode_id": {"rollout_id": rollout.rollout_id, "attempt": rollout.attempt},
        "task": {"task_id": row["task_id"], "task_input": row["task_input"]},
    }


def _status_ending(reply: Reply) -> Ending:
    gateway = reply.status in GATEWAY_STATUSES
    failure_class = AGENT_REQUEST_FAILED_FAILURE_CLASS if gateway else AGENT_RUN_ERROR_FAILURE_CLASS
    failed = Failed(
        failure_class=failure_class,
        message=f"{reply.status}, message={_phrase(reply.status)!r}",
        kind=failure_class,
        delivery=Delivery.POSSIBLY_DELIVERED if gateway else Delivery.DELIVERED,
        exception_type="ClientResponseError",
        http_status=reply.status,
        response_body=_kept(reply.body),
    )
    return Ending(failed, run_failed=True)


def _unreadable(reply: Reply, exception_type: str, message: str) -> Ending:
    failed = Failed(
        failure_class=AGENT_RUN_ERROR_FAILURE_CLASS,
        message=message,
        kind=AGENT_RUN_ERROR_FAILURE_CLASS,
        exception_type=exception_type,
        http_status=reply.status,
        response_body=_kept(reply.body),
    )
    return Ending(failed, run_failed=True)


def _transport_kind(failure: SendFailed) -> str:
    if failure.delivery is Delivery.NOT_SENT:
        return _UNREACHABLE
    return "transport_timeout" if "Timeout" in failure.exception_type else "transport_peer_drop"


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Unknown"


def _kept(body: bytes) -> str:
    text = body[: 4 * _BODY_KEPT].decode(errors="replace")[:_BODY_KEPT]
    return f"{text}…" if len(body) > _BODY_KEPT else text


def cause_of(ending: Ending) -> str | None:
    """Return what the innermost server said of a failed run, in a line; None when no reply said anything.

    An error reply quotes the reply that it was given, one level a hop: what stands behind the last `b'` or `b"` is it.
    """
    body = ending.outcome.response_body if isinstance(ending.outcome, Failed) else None
    if not body:
        return None
    innermost = _QUOTED.split(body)[-1]
    text = " ".join(_ESCAPED_SPACE.sub(" ", innermost).replace("\\", "").split()).strip("\"' ")
    return text[:_CAUSE_KEPT] or None
