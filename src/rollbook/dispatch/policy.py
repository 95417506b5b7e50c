"""How a run is driven, and how its driving ended.

Rules:
* Every number is finite; the defaults spend nothing that nobody asked for.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Policy:
    """`lanes` rollouts in flight at most (at least one); `route_failures` keeps going past a failed `/run`.

    After a stop, work in flight has `grace` seconds to end. An attempt that never ran is followed by another for
    `retry_for` seconds from its rollout's first start in this session; 0 retries nothing.
    """

    lanes: int
    route_failures: bool = True
    grace: float = 20.0
    retry_for: float = 0.0


@dataclass(frozen=True, slots=True)
class Dispatched:
    """`stopped`: why admission ended before the plan did, None when it did not; `cut`: attempts ended in flight."""

    stopped: str | None = None
    cut: int = 0
