"""The guard between a run and whoever watches it.

Rules:
* An observer that raises is logged once and told nothing more; the run goes on as if nobody watched.
"""

import logging

from rollbook.records.event import Event, Observe

_LOG = logging.getLogger(__name__)


class Guarded:
    """An observer that may fail without anybody noticing but its reader."""

    def __init__(self, observe: Observe) -> None:
        self._observe = observe
        self._failed = False

    def __call__(self, event: Event) -> None:
        """Tell the observer of `event`, unless it failed before."""
        if self._failed:
            return
        try:
            self._observe(event)
        except Exception:  # noqa: BLE001  an observer is a caller's code; see docs/architecture.md
            self._failed = True
            _LOG.exception("the observer of the run failed and is not told anything more")
