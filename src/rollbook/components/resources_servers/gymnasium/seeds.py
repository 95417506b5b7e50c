"""What an episode's chance is drawn by.

Rules:
* A row with a `seed` meets the same chance every time, in each of its repeats.
* Other rows meet the chance of their rollout, whatever the attempt, in this process or in another.

Source: servers.md §6.2.
"""

import re
from collections.abc import Mapping
from typing import Final

from rollbook import current_rollout_id, logical_rollout_id

_ATTEMPT: Final = re.compile(r"-a[1-9][0-9]*\Z")


def episode_seed(metadata: Mapping[str, object], seed: int | None, instance: str) -> str | None:
    """Return what to seed an episode's generator with, None for one that nobody seeded.

    `metadata`: the row's fields; `seed`: the instance's own, None for chance; `instance`: its name.
    """
    own = row_seed(metadata)
    if own is not None:
        return f"row {own}"
    rollout = rollout_of(metadata)
    return None if seed is None or rollout is None else f"deal {seed} {instance} {rollout}"


def row_seed(metadata: Mapping[str, object]) -> object:
    """Return the row's `seed`, or its `metadata.seed`; None when it has neither."""
    nested = metadata.get("metadata")
    seed = metadata.get("seed")
    return nested.get("seed") if seed is None and isinstance(nested, Mapping) else seed


def rollout_of(metadata: Mapping[str, object]) -> str | None:
    """Return the id that all attempts of the request's rollout share, or None when neither it nor its row names one."""
    known = current_rollout_id()
    return logical_rollout_id(metadata) if known is None else _ATTEMPT.sub("", known)
