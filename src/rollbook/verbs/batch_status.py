"""The status file beside a run: what an outer scheduler reads, folded from the run's status.

Rules:
* Identities, counts, failure classes and kinds, and nothing else: no message, no payload, no command, no address.
* Of a member, expected = completed + failed + masked + remaining.
* Counts that cannot be believed are replaced once by a disabled state with its time, which stays for that run.

Source: collection.md §1.9, §9.3, §17.3.
"""

import re
from collections.abc import Iterable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Final

import msgspec

from rollbook.ledger.paths import batch_status_path_for
from rollbook.ledger.whole_file import whole_file
from rollbook.records.json_values import JsonMapping, JsonObject
from rollbook.records.keys import AGENT_REF_KEY, NG_ENVIRONMENT_SERVER_KEY
from rollbook.records.run_status import GroupStatus, RunState, RunStatus

SCHEMA_VERSION: Final = 1
UNNAMED: Final = "other"
"""What a class or kind is counted under whose name is no name."""

_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_.:-]{0,99}")
_DECODER: Final = msgspec.json.Decoder(dict[str, object])


class BatchState(StrEnum):
    """How a run is, in a status file."""

    RUNNING = "running"
    COMPLETE = "complete"
    INCOMPLETE = "incomplete"
    DISABLED = "disabled"


class IncompleteReason(StrEnum):
    """Why a run that nobody works on is not complete."""

    INTERRUPTED = "interrupted"
    REJECTED = "rejected"
    STOPPED = "stopped"


class AggregationState(StrEnum):
    """What became of the servers' own metrics."""

    PENDING = "pending"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    SKIPPED = "skipped"


class AggregationFault(msgspec.Struct, frozen=True):
    """A server whose metrics could not be computed, without what it said."""

    server: str
    error_type: str
    http_status: int | None = None


class Aggregation(msgspec.Struct, frozen=True):
    """The outcome of an aggregation."""

    state: AggregationState = AggregationState.PENDING
    errors: tuple[AggregationFault, ...] = ()


def batch_state(status: RunStatus) -> BatchState:
    """Return how a run is: complete when every planned rollout left a result or counts as zero for good."""
    if not status.is_believable:
        return BatchState.DISABLED
    if status.state is RunState.RUNNING:
        return BatchState.RUNNING
    done = status.coverage.settled_with_result + status.final_zeros
    return BatchState.COMPLETE if done >= status.coverage.planned else BatchState.INCOMPLETE


def batch_status(
    status: RunStatus,
    state: BatchState,
    aggregation: Aggregation,
    *,
    updated_at: str,
    batch_manifest_sha256: str | None = None,
    reason: IncompleteReason | None = None,
) -> JsonObject:
    """Return the content of the status file; a disabled one holds no counts."""
    disabled = state is BatchState.DISABLED
    return {
        "schema_version": SCHEMA_VERSION,
        "state": state.value,
        "reason": reason.value if reason and state is BatchState.INCOMPLETE else None,
        "updated_at": updated_at,
        "run_id": status.run_id,
        "batch_manifest_sha256": batch_manifest_sha256,
        "members": [] if disabled else [_member(group) for group in status.groups],
        "aggregation": _aggregation(aggregation),
    }


def with_aggregation(document: JsonMapping, aggregation: Aggregation, *, updated_at: str) -> JsonObject:
    """Return a status file's content with the outcome of an aggregation; the counts stay as they are."""
    return dict(document) | {"updated_at": updated_at, "aggregation": _aggregation(aggregation)}


def superseding(old: JsonMapping | None, new: JsonObject) -> JsonObject:
    """Return what is to be on disk: a run that was disabled stays so, with the time at which it was."""
    stays = old is not None and old.get("state") == BatchState.DISABLED and old.get("run_id") == new.get("run_id")
    return dict(old) if old is not None and stays else new


def faults_of(entries: Iterable[JsonMapping]) -> tuple[AggregationFault, ...]:
    """Return which entries of aggregate metrics say that their server could not answer."""
    return tuple(
        _fault(str(entry.get(NG_ENVIRONMENT_SERVER_KEY)), error)
        for entry in entries
        if isinstance(error := entry.get("aggregation_error"), Mapping)
    )


def read_batch_status(output: Path) -> JsonObject | None:
    """Return the status file beside `output`, or None where there is none that can be read."""
    try:
        return _DECODER.decode(batch_status_path_for(output).read_bytes())
    except (FileNotFoundError, msgspec.DecodeError, UnicodeDecodeError):
        return None


def write_batch_status(output: Path, document: JsonObject) -> None:
    """Write the status file beside `output` whole, unless one is there that stays."""
    lasting = superseding(read_batch_status(output), document)
    with whole_file(batch_status_path_for(output)) as file:
        file.write(msgspec.json.encode(lasting) + b"\n")


def _member(group: GroupStatus) -> JsonObject:
    coverage = group.coverage
    completed = coverage.scored + coverage.unscored
    return {
        AGENT_REF_KEY: {"name": group.agent},
        NG_ENVIRONMENT_SERVER_KEY: group.server,
        "expected": coverage.planned,
        "completed": completed,
        "failed": coverage.failed,
        "masked": coverage.masked,
        "remaining": coverage.planned - completed - coverage.failed - coverage.masked,
        "failure_classes": _named(coverage.failed_by_class),
        "failure_kinds": _named(group.failure_kinds),
        "model_final": group.final_zeros,
    }


def _aggregation(aggregation: Aggregation) -> JsonObject:
    errors = [
        {"server": fault.server, "type": _name(fault.error_type), "http_status": fault.http_status}
        for fault in aggregation.errors
    ]
    return {"state": aggregation.state.value, "errors": errors}


def _fault(server: str, error: JsonMapping) -> AggregationFault:
    status = error.get("http_status")
    return AggregationFault(server, str(error.get("type")), status if isinstance(status, int) else None)


def _named(counts: Mapping[str, int]) -> dict[str, int]:
    """Return the counts under names alone: a server may put any text where a class or a kind belongs."""
    named: dict[str, int] = {}
    for name, count in counts.items():
        named[_name(name)] = named.get(_name(name), 0) + count
    return named


def _name(text: str) -> str:
    return text if _NAME.fullmatch(text) else UNNAMED
