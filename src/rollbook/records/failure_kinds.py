"""The vocabulary of failures: what happened, where, and what is known about the other side.

Rules:
* A kind names what happened and never implies that it may be tried again.
* An unregistered bare kind is let through with one warning; a namespaced kind (`<server>:<kind>`) needs none.

Source: collection.md §4.5; servers.md §3.7.
"""

import logging
import re
from enum import StrEnum
from typing import Final

_LOG = logging.getLogger(__name__)
_NAMESPACED = re.compile(r"[a-z][a-z0-9_]*:[a-z][a-z0-9_]*")

AGENT_RUN_ERROR_FAILURE_CLASS: Final = "agent_run_error"
AGENT_REQUEST_FAILED_FAILURE_CLASS: Final = "agent_request_failed"
ENVIRONMENT_SERVER_FAILURE_CLASS: Final = "environment_server_failed"
CANCELLED_FAILURE_CLASS: Final = "cancelled"
KILL_SHAPED_FAILURE_CLASS: Final = "kill_shaped"
JUDGE_FAILED: Final = "judge_failed"
JUDGE_UNPARSEABLE: Final = "judge_unparseable"
VERIFIER_ERROR: Final = "verifier_error"
COLLECTION_DISPATCH_FAILED: Final = "collection_dispatch_failed"
PROVIDER_CREDENTIALS_REJECTED: Final = "provider_credentials_rejected"
PROVIDER_QUOTA_EXHAUSTED: Final = "provider_quota_exhausted"
PROVIDER_UNAVAILABLE: Final = "provider_unavailable"

GATEWAY_STATUSES: Final = frozenset({429, 502, 503, 504})
"""HTTP statuses that leave open whether a request ran."""

TURNED_AWAY_STATUSES: Final = frozenset({429, 503})
"""HTTP statuses by which a server says that it did not take the request."""

ALLOCATION_ENDED_FAILURE_CLASS: Final = "rollout_allocation_ended"

REGISTERED_KINDS: Final = frozenset(
    {
        "transport_unreachable",
        "transport_peer_drop",
        "transport_timeout",
        "transport_local_resource",
        "agent_run_error",
        "agent_request_failed",
        "agent_timeout",
        "agent_command_not_allowed",
        "judge_failed",
        "judge_unparseable",
        "verifier_error",
        "provider_unavailable",
        "provider_quota_exhausted",
        "provider_credentials_rejected",
        "provider_oom_killed",
        "session_lost",
        "session_expired",
        "session_release_failed",
        "cancelled",
        "kill_shaped",
        "shutdown",
        "persistence_failed",
        "cohort_incomplete",
        "agent_route_failed",
        "collection_dispatch_failed",
    }
)
_warned: set[str] = set()


class Delivery(StrEnum):
    """What is known about the other side of a request that failed."""

    NOT_SENT = "not_sent"
    POSSIBLY_DELIVERED = "possibly_delivered"
    DELIVERED = "delivered"


class FailureStage(StrEnum):
    """Where in an episode a failure happened."""

    ADMISSION = "admission"
    SEED = "seed"
    AGENT = "agent"
    VERIFICATION = "verification"
    CLEANUP = "cleanup"


_STAGES: Final = {stage.value: stage for stage in FailureStage}
_DELIVERIES: Final = {delivery.value: delivery for delivery in Delivery}


def stage_of(value: object) -> FailureStage | None:
    """Return the stage that a saved or received value names, if any."""
    return _STAGES.get(value) if isinstance(value, str) else None


def delivery_of(value: object) -> Delivery:
    """Return the delivery that a saved value names; a row that says nothing was delivered."""
    known = _DELIVERIES.get(value) if isinstance(value, str) else None
    return known or Delivery.DELIVERED


def known_kind(kind: str) -> bool:
    """Whether `kind` is registered or namespaced; an unknown bare kind is logged once."""
    if is_registered(kind) or is_namespaced(kind):
        return True
    if kind not in _warned:
        _warned.add(kind)
        _LOG.warning("failure kind %r is not registered; write it as <server>:<kind>", kind)
    return False


def is_registered(kind: str) -> bool:
    """Whether `kind` is one of the vocabulary's own."""
    return kind in REGISTERED_KINDS


def is_namespaced(kind: str) -> bool:
    """Whether `kind` is written `<server>:<kind>`."""
    return _NAMESPACED.fullmatch(kind) is not None


def validate_failure_kind(kind: str | None) -> str | None:
    """Return `kind` itself; an unregistered bare one is logged once and let through."""
    if kind is not None:
        known_kind(kind)
    return kind
