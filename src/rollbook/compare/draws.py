"""Chance that comes from a seed: the same seed gives the same numbers, today and on another machine.

Rules:
* The one place of this room that makes a generator; without a seed there is none.
"""

from random import Random

Draws = Random


def seeded(seed: int) -> Draws:
    """Return a generator whose draws follow from `seed`."""
    return Random(seed)  # noqa: S311  draws of a test, not secrets
