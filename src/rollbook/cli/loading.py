"""Loading the engine of a verb.

Rules:
* The garbage collector rests meanwhile, and what was loaded stays out of its sight: it would be gone through many
  times, and nothing of it is ever garbage.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def loading() -> Iterator[None]:
    """Load modules in this block."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if was_on:
            gc.enable()
