"""Several candidates against one baseline: p-values that stay honest together.

Rules:
* An adjusted p-value is never smaller than the one it was made of, and none is smaller than that of a stronger result.

Source: Holm 1979, "A Simple Sequentially Rejective Multiple Test Procedure".
"""

from collections.abc import Sequence


def holm(p_values: Sequence[float]) -> list[float]:
    """Return the adjusted p-values, in the order of `p_values`: each may be held against the level as it is."""
    adjusted = [0.0] * len(p_values)
    largest = 0.0
    for rank, place in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[place]))
        adjusted[place] = largest
    return adjusted


def holm_of_known(p_values: Sequence[float | None]) -> list[float | None]:
    """Return the adjusted p-values of those that there are; None where there is none."""
    known = {place: p_value for place, p_value in enumerate(p_values) if p_value is not None}
    adjusted = dict(zip(known, holm([*known.values()]), strict=True))
    return [adjusted.get(place) for place in range(len(p_values))]
