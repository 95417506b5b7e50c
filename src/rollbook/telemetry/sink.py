"""Where counted numbers go: one method.

Rules:
* A sink may raise, hang or be slow; `guarded` stands between it and the run.
"""

from collections.abc import Mapping
from typing import Protocol


class Sink(Protocol):
    """Something that takes numbers by name."""

    def log(self, metrics: Mapping[str, float], step: int) -> None:
        """Take `metrics` as they were at `step`, the whole percent of the run that was through."""
        ...


def name_of(sink: Sink) -> str:
    """Return what a message calls `sink`: its class, with the module that it comes from."""
    kind = type(sink)
    return f"{kind.__module__}.{kind.__qualname__}"
