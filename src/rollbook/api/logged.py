"""A run that nobody watches: what its owner should know goes to the log.

Rules:
* Whoever is told nothing by a run that goes well is told of one that does not.
"""

import logging

from rollbook.records.event import Event, RunNoted, RunStalled, Waiting

_LOG = logging.getLogger(__name__)


def logged(event: Event) -> None:
    """Log a note, and that a run stalls; nothing of a run that goes well."""
    if isinstance(event, RunNoted):
        _LOG.warning("%s", event.text)
    elif isinstance(event, RunStalled):
        longest = "; ".join(map(_waiting, event.longest))
        _LOG.warning("nothing ended for %.0f s; %d in flight, the longest: %s", event.seconds, event.count, longest)


def _waiting(one: Waiting) -> str:
    return f"{one.key} {one.phase} for {one.seconds:.0f} s on {one.host} ({one.server})"
