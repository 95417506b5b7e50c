"""One exchange with an environment server → how the attempt ended.

Rules:
* A gateway status (429, 502, 503, 504) leaves open whether the request ran; any other status >= 400 says it did.
* A reply means that it ran: a body that cannot be read is a failed run, with the reply's own status. So is a reply that
  sends elsewhere, and a success without a body: neither brings a result. One that is no HTTP, is encoded as nobody
  asked for or is above the bound is against the protocol as well: its server did not drop it.
* What a failure says of itself is kept without what looks like a credential; that is masked before anything is cut.
* Delivery is evidence about the other side, and says nothing about whether to try again.

Source: collection.md §3.7, §1.3.
"""

from http import HTTPStatus
from typing import Final

import msgspec

from rollbook.outcomes.credentials import without_credentials
from rollbook.outcomes.error_text import CAUSE_KEPT, innermost, kept_text
from rollbook.outcomes.kept import standing_reply
from rollbook.outcomes.reasons import masked_reasons
from rollbook.records.ending import Ending
from rollbook.records.episode_reply import ending_of_episode
from rollbook.records.exchange import Reply, SendFailed
from rollbook.records.failure_kinds import (
    AGENT_REQUEST_FAILED_FAILURE_CLASS,
    AGENT_RUN_ERROR_FAILURE_CLASS,
    GATEWAY_STATUSES,
    Delivery,
)
from rollbook.records.failure_report import FailureReport, report_in_headers
from rollbook.records.half_pairs import half_pair_in
from rollbook.records.json_values import JsonMapping, json_type, mapping_or_empty
from rollbook.records.keys import MASK_SAMPLE_KEY, REWARD_KEY
from rollbook.records.nesting import not_too_deep
from rollbook.records.outcome import Failed, Interrupted, Masked, Scored, Unscored
from rollbook.records.reply_codec import ending_of_payload, explained, reports_failure
from rollbook.records.task import Rollout

_SUCCESSES: Final = range(200, 300)
_REDIRECTS: Final = range(300, 400)
_SHORT_OF_FILES: Final = ("Errno 23]", "Errno 24]", "Too many open files")
_DECISIVE: Final = (REWARD_KEY, MASK_SAMPLE_KEY)
"""Of a reply with no key of the collector, what tells how it ended."""
_LOCAL: Final = "LocalResourceError"
_UNREADABLE: Final = frozenset({"ReplyTooLarge", "ContentEncodingError", "ClientResponseError"})
"""What is told of a reply that came, and is none that anybody here can read."""
_UNREACHABLE: Final = "transport_unreachable"


def ending_of_reply(reply: Reply, rollout: Rollout) -> Ending:
    """Return how the attempt of `rollout` ended that brought `reply`, with the failure report that came with it."""
    ending = _without_credentials(_ending(reply, rollout))
    report = report_in_headers(reply.headers)
    return ending if report is None else explained(ending, report)


def _without_credentials(ending: Ending) -> Ending:
    outcome = ending.outcome
    if not isinstance(outcome, Failed | Interrupted):
        return ending
    told = msgspec.structs.replace(outcome, message=without_credentials(outcome.message))
    masked = ending.payload if reports_failure(ending.payload) else masked_reasons(ending.payload)
    return msgspec.structs.replace(ending, outcome=told, payload=masked)


def _ending(reply: Reply, rollout: Rollout) -> Ending:
    if reply.status not in _SUCCESSES:
        return _status_ending(reply)
    ending = None if rollout.is_episode else plain_result(reply.body)
    if ending is not None:
        return ending
    try:
        payload = msgspec.json.decode(not_too_deep(reply.body))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        said = half_pair_in(reply.body) or error
        fault = f"a body that is no JSON: {said}" if reply.body.strip() else "an empty body"
        return _unreadable(reply, "JSONDecodeError", f"{reply.status} with {fault}")
    if rollout.is_episode:
        request = episode_request(rollout)
        return ending_of_episode(_with_masked_failure(payload), request["episode_id"], request["task"]["task_id"])
    if not isinstance(payload, dict):
        fault = f"{reply.status} with JSON that is {json_type(payload)}, no object"
        return _unreadable(reply, "InvalidRolloutResult", fault)
    return ending_of_payload(masked_reasons(payload) if reports_failure(payload) else payload)


def _with_masked_failure(reply: object) -> object:
    """Return an episode reply whose failure tells no credential before anything of it is read, let alone cut."""
    failure = mapping_or_empty(mapping_or_empty(reply).get("failure"))
    return {**mapping_or_empty(reply), "failure": masked_reasons(failure)} if failure else reply


def plain_result(body: bytes) -> Ending | None:
    """Return the result that `body` is, when its text may stand as it came; None when it has to be looked at closer."""
    said = standing_reply(body)
    if said is None:
        return None
    decisive: JsonMapping = {key: said[key] for key in _DECISIVE if key in said}
    ending = ending_of_payload(decisive)
    if not isinstance(ending.outcome, Scored | Masked | Unscored):
        return None
    return Ending(ending.outcome, kept=body)


def ending_of_send_failure(failure: SendFailed) -> Ending:
    """Return how an attempt ended whose request brought no reply that can be read; one with a status did run."""
    ran = failure.status is not None and failure.status not in GATEWAY_STATUSES
    failure_class = AGENT_RUN_ERROR_FAILURE_CLASS if ran else AGENT_REQUEST_FAILED_FAILURE_CLASS
    came_back = failure.exception_type in _UNREADABLE
    failed = Failed(
        failure_class=failure_class,
        message=failure.message or f"{failure.exception_type}()",
        kind=failure_class if came_back and failure.status is not None else _transport_kind(failure),
        delivery=failure.delivery,
        exception_type=failure.exception_type,
        http_status=failure.status,
    )
    unusable = came_back and (failure.status is None or failure.status in _SUCCESSES)
    return Ending(failed, run_failed=True, unusable=unusable)


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
        response_body=kept_text(reply.body),
    )
    return Ending(failed, run_failed=True, unusable=reply.status in _REDIRECTS)


def _unreadable(reply: Reply, exception_type: str, message: str) -> Ending:
    failed = Failed(
        failure_class=AGENT_RUN_ERROR_FAILURE_CLASS,
        message=message,
        kind=AGENT_RUN_ERROR_FAILURE_CLASS,
        exception_type=exception_type,
        http_status=reply.status,
        response_body=kept_text(reply.body),
    )
    return Ending(failed, run_failed=True, unusable=True)


def _transport_kind(failure: SendFailed) -> str:
    if failure.exception_type == _LOCAL or any(sign in failure.message for sign in _SHORT_OF_FILES):
        return "transport_local_resource"
    if failure.delivery is Delivery.NOT_SENT:
        return _UNREACHABLE
    return "transport_timeout" if "Timeout" in failure.exception_type else "transport_peer_drop"


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Unknown"


def cause_of(ending: Ending) -> str | None:
    """Return what the innermost server said of a failed run, in a line; None when no reply said anything.

    Where a report came along, its innermost failure stands in front, with the status that it was.
    """
    body = ending.outcome.response_body if isinstance(ending.outcome, Failed) else None
    said = innermost(body or "")[:CAUSE_KEPT]
    told = _told(ending.report) if ending.report is not None and ending.run_failed else ""
    return ": ".join(filter(None, (told, said))) or None


def _told(report: FailureReport) -> str:
    event = next((event for _, event in reversed([*report.chain()])), None)
    if event is None:
        return ""
    status = "" if event.http_status is None else f", {event.http_status}"
    return f"{event.boundary} ({event.kind}{status})"
