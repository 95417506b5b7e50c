"""How a run is driven, and how its driving ended.

Rules:
* Every number is finite; the defaults spend nothing that nobody asked for.
* A limit that is None is no limit, and nobody gets one by accident.
"""

import msgspec


class Limits(msgspec.Struct, frozen=True):
    """Seconds that a rollout may take once its request can be sent, and that two of its parts may take.

    `response`: from the request to the reply's first line. `body`: from there to the reply's end, however it trickles.
    """

    rollout: float | None = None
    response: float | None = None
    body: float | None = None


class Budget(msgspec.Struct, frozen=True):
    """Nothing starts later than `seconds` after the beginning, nor with less than the margin left.

    `margin` is in seconds; None is the 75th percentile of how long rollouts took, once five have ended.
    """

    seconds: float
    margin: float | None = None


class Policy(msgspec.Struct, frozen=True):
    """At most `lanes` rollouts are in flight (at least one); `route_failures` keeps going past a failed `/run`.

    After a stop, work in flight has `grace` seconds to end. An attempt that never ran is followed by another for
    `retry_for` seconds from its rollout's first start in this session; 0 retries nothing. A server that has no room
    keeps `look_ahead` rollouts of the plan waiting before others wait behind them. With `whole_tasks` the repeats of a
    task wait for each other on their server: nothing new starts while one of them waits to be sent again.
    """

    lanes: int
    route_failures: bool = True
    grace: float = 20.0
    retry_for: float = 0.0
    limits: Limits = msgspec.field(default_factory=Limits)
    budget: Budget | None = None
    look_ahead: int = 1
    whole_tasks: bool = False


class Dispatched(msgspec.Struct, frozen=True):
    """`stopped`: why admission ended before the plan did, None when it did not; `cut`: attempts ended in flight."""

    stopped: str | None = None
    cut: int = 0
