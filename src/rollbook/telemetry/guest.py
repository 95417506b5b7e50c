"""Somebody's code that a run calls, and that may fail without the run noticing.

Rules:
* What it raises is logged once, with the name of the guest; it is called no more.
"""

import logging
from collections.abc import Callable
from typing import Generic, ParamSpec

_LOG = logging.getLogger(__name__)
P = ParamSpec("P")


class Guest(Generic[P]):
    """A call that never raises; `who` is what a message calls it."""

    def __init__(self, call: Callable[P, object], who: str) -> None:
        self._call = call
        self._who = who
        self.failed = False

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> None:
        """Call it, unless it failed before."""
        if self.failed:
            return
        try:
            self._call(*args, **kwargs)
        except Exception:  # noqa: BLE001  a guest is a caller's code; see docs/architecture.md
            self.failed = True
            _LOG.exception("%s failed and is not told anything more", self._who)
