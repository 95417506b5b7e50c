"""A failure report: which failures led to which, as the servers along the way tell it beside a reply.

Rules:
* It explains and decides nothing: no retry, no terminality, no score.
* Events are keyed by id and lead to their causes without a cycle. A report that breaks a rule is none, and no error.
* An event carries names and numbers from closed or short alphabets: no message, no body, nothing secret.
* A header has `HEADER_BYTES` at most. Over that the selected chain is kept, its outermost failures first, and the rest
  is counted.

Source: collection.md §1.3, §3.8, §21.1 (8).
"""

import binascii
import hashlib
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping
from typing import Annotated, Final, Literal

import msgspec

from rollbook.records import keys
from rollbook.records.failure_kinds import (
    AGENT_REQUEST_FAILED_FAILURE_CLASS,
    AGENT_RUN_ERROR_FAILURE_CLASS,
    COLLECTION_DISPATCH_FAILED,
    ENVIRONMENT_SERVER_FAILURE_CLASS,
)
from rollbook.records.json_values import JsonMapping, JsonObject
from rollbook.records.nesting import not_too_deep

FAILURE_REPORT_HEADER: Final = "X-NG-Failure-Report"
HEADER_BYTES: Final = 8192
ROUTING_KINDS: Final = frozenset(
    {
        AGENT_RUN_ERROR_FAILURE_CLASS,
        AGENT_REQUEST_FAILED_FAILURE_CLASS,
        ENVIRONMENT_SERVER_FAILURE_CLASS,
        COLLECTION_DISPATCH_FAILED,
        "agent_route_failed",
    }
)
"""Kinds that say that a request was passed on in vain, and not why."""
_HEADER_NAME: Final = FAILURE_REPORT_HEADER.lower()
_MOST_OMITTED: Final = 1_000_000
_NO_REPORT: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)

Boundary = Literal["model", "harness", "agent", "resources_server", "environment", "collection"]
_Stage = Literal["admission", "seed", "agent", "verification", "cleanup"]
_Id = Annotated[str, msgspec.Meta(pattern=r"^[!-~]{1,200}\Z")]
_Kind = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9_.:-]{1,200}\Z")]


class FailureEvent(msgspec.Struct, frozen=True, omit_defaults=True):
    """One failure: at whose `boundary`, what it was, and the id of the event that caused it, if one is told."""

    boundary: Boundary
    kind: _Kind
    stage: _Stage | None = None
    http_status: Annotated[int, msgspec.Meta(ge=100, le=599)] | None = None
    cause_id: _Id | None = None


class FailureReport(msgspec.Struct, frozen=True):
    """Events by id. `failure_id` selects the one that a reply, or a record, is about; None where all was got over.

    `events_omitted` counts events that were left out, which a cause may then name.
    """

    failure_id: _Id | None = None
    events: dict[_Id, FailureEvent] = msgspec.field(default_factory=dict)
    events_omitted: Annotated[int, msgspec.Meta(ge=0, le=_MOST_OMITTED)] = 0

    def chain(self) -> Iterator[tuple[str, FailureEvent]]:
        """Yield the selected failure and its causes with their ids, the outermost first, as far as they are here."""
        failure_id = self.failure_id
        while failure_id is not None and failure_id in self.events:
            event = self.events[failure_id]
            yield failure_id, event
            failure_id = event.cause_id

    @property
    def kind(self) -> str | None:
        """The kind of the outermost failure of the selected chain that does more than pass on another's.

        None when every failure of the chain only routes, or when a part of the chain was omitted.
        """
        chain = [event for _, event in self.chain()]
        last = chain[-1].cause_id if chain else self.failure_id
        if last is not None:
            return None
        return next((event.kind for event in chain if event.kind not in ROUTING_KINDS), None)

    def caused(self, boundary: Boundary, kind: str, *, http_status: int | None = None) -> "FailureReport":
        """Return this report with a failure selected that is caused by the one that was.

        It stays as it is where it speaks of a failure by the very id that the new one would have.
        """
        event = FailureEvent(boundary, kind, http_status=http_status, cause_id=self.failure_id)
        failure_id = _new_id(event)
        if failure_id in _ids(self):
            return self
        return FailureReport(failure_id, {failure_id: event} | self.events, self.events_omitted)

    def named(self, failure_id: str) -> "FailureReport":
        """Return this report with its selected failure under another id; as it is where there is none, or the id is."""
        held = self.failure_id
        if held is None or held not in self.events or failure_id in _ids(self):
            return self
        events = {
            failure_id if old == held else old: _renamed(event, held, failure_id) for old, event in self.events.items()
        }
        return FailureReport(failure_id, events, self.events_omitted)


def report_in_headers(headers: Mapping[str, str]) -> FailureReport | None:
    """Return the report that a reply's headers (names in lower case) carry; None without a valid one."""
    text = headers.get(_HEADER_NAME)
    if not isinstance(text, str) or len(text) > HEADER_BYTES:
        return None
    try:
        return _checked(msgspec.json.decode(not_too_deep(b64decode(text, validate=True)), type=FailureReport))
    except (binascii.Error, ValueError, *_NO_REPORT):
        return None


def reply_failure_kind(headers: Mapping[str, str]) -> str | None:
    """Return the kind of the outermost failure that a failed reply's report selects and that is not a routing kind.

    None without a valid report, with an omitted chain, or when every failure of the chain only routes.
    """
    report = report_in_headers(headers)
    return report.kind if report is not None else None


def report_in_row(row: JsonMapping) -> FailureReport | None:
    """Return the report that a row or a reply's body carries under the keys of a record; None without a valid one."""
    events = row.get(keys.NG_FAILURE_EVENTS_KEY)
    if not isinstance(events, Mapping):
        return None
    omitted = row.get(keys.NG_FAILURE_EVENTS_OMITTED_KEY)
    said = {
        "failure_id": row.get(keys.NG_FAILURE_ID_KEY),
        "events": events,
        "events_omitted": int(omitted) if isinstance(omitted, bool) else omitted or 0,
    }
    return report_in_object(said)


def report_in_object(value: object) -> FailureReport | None:
    """Return the report that a decoded JSON object is; None for anything else."""
    try:
        text = msgspec.json.encode(value)
        return _checked(msgspec.json.decode(text, type=FailureReport)) if len(text) <= HEADER_BYTES else None
    except (TypeError, ValueError, *_NO_REPORT):
        return None


def report_fields(report: FailureReport) -> JsonObject:
    """Return a report as the keys of a record."""
    fields: JsonObject = {keys.NG_FAILURE_EVENTS_KEY: msgspec.to_builtins(report.events)}
    if report.failure_id is not None:
        fields[keys.NG_FAILURE_ID_KEY] = report.failure_id
    if report.events_omitted:
        fields[keys.NG_FAILURE_EVENTS_OMITTED_KEY] = report.events_omitted
    return fields


def header_of(report: FailureReport) -> str:
    """Return the value of the header that carries `report`, in ASCII, of `HEADER_BYTES` at most."""
    whole = _encoded(report)
    if len(whole) <= HEADER_BYTES:
        return whole
    kept: dict[str, FailureEvent] = {}
    for event_id, event in report.chain():
        longer = kept | {event_id: event}
        if len(_encoded(_part(report, longer))) > HEADER_BYTES:
            break
        kept = longer
    return _encoded(_part(report, kept))


def _part(report: FailureReport, events: dict[str, FailureEvent]) -> FailureReport:
    left_out = report.events_omitted + len(report.events) - len(events)
    return FailureReport(report.failure_id, events, min(left_out, _MOST_OMITTED))


def _encoded(report: FailureReport) -> str:
    return b64encode(msgspec.json.encode(report)).decode()


def _new_id(event: FailureEvent) -> str:
    """Return an id that follows from what the event says, its cause included: none can be its own cause."""
    return f"{event.boundary}-{hashlib.sha256(msgspec.json.encode(event)).hexdigest()[:16]}"


def _renamed(event: FailureEvent, old: str, new: str) -> FailureEvent:
    return msgspec.structs.replace(event, cause_id=new) if event.cause_id == old else event


def _ids(report: FailureReport) -> set[str | None]:
    """Return each id that a report speaks of, whether its event is there or was left out."""
    return {event.cause_id for event in report.events.values()} | {*report.events, report.failure_id}


def _checked(report: FailureReport) -> FailureReport | None:
    """Return `report` if it tells of a failure, each cause that it names is there or left out, and none is its own."""
    whole = bool(report.events) and _ids(report) <= {None, *report.events}
    if not whole and not report.events_omitted:
        return None
    return None if _is_circular(report.events) else report


def _is_circular(events: Mapping[str, FailureEvent]) -> bool:
    ends_well: set[str] = set()
    for start in events:
        walked: set[str] = set()
        at: str | None = start
        while at is not None and at in events and at not in ends_well:
            if at in walked:
                return True
            walked.add(at)
            at = events[at].cause_id
        ends_well |= walked
    return False
