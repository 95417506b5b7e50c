"""How often a process that serves looks for garbage: what was loaded is left out, and the rest is looked at less often.

Rules:
* A request leaves nothing behind that only the collector can free, so looking every 700 objects is time spent in vain:
  a tenth of a rollout's. Every 20,000 is soon enough for what a component's own code may leave.
* What was there before comes back with `looking_as_before`.

Source: servers.md §3.2.
"""

import gc
from dataclasses import dataclass
from typing import Final

_NEW_OBJECTS: Final = 20_000


@dataclass(frozen=True, slots=True)
class Looking:
    """How often the collector looked."""

    thresholds: tuple[int, int, int]


def looking_less() -> Looking:
    """Leave out what is loaded, look less often from now on, and return how it was."""
    before = Looking(gc.get_threshold())
    gc.freeze()
    gc.set_threshold(max(_NEW_OBJECTS, before.thresholds[0]), *before.thresholds[1:])
    return before


def looking_as_before(before: Looking) -> None:
    """Look at everything again, as often as before."""
    gc.unfreeze()
    gc.set_threshold(*before.thresholds)
