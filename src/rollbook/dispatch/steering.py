"""A run that is told what to do while it goes on.

Rules:
* Every command is answered at once; what it leads to follows.
* A rollout is run again by ending its attempt: the attempt is told as cut, and the next one has a number of its own.

Source: collection.md §3.
"""

from collections.abc import Callable, Sequence
from typing import Final

from rollbook.dispatch.controls import ControlStatus, Requeued
from rollbook.dispatch.dispatcher import Dispatcher
from rollbook.dispatch.flights import GivenUp
from rollbook.records.identity import RolloutKey

_SHOWN: Final = 20
_AGAIN: Final = "run again: asked for"


class Steering:
    """The `Controls` of a dispatcher; `planned` rollouts are to be run, and `ended` says of how many that is over.

    `again` says how many rollouts wait to be sent again, and `hard` is the ceiling where the run finds its own limit.
    No limit is lower than `floor`, the size of the largest task whose repeats are scored together.
    """

    def __init__(
        self,
        dispatcher: Dispatcher,
        planned: int | None = None,
        ended: Callable[[], int | None] = lambda: None,
        floor: int = 1,
        *,
        again: Callable[[], int] = lambda: 0,
        hard: int | None = None,
    ) -> None:
        self._run = dispatcher
        self._floor = floor
        self._planned = planned
        self._ended = ended
        self._again = again
        self._hard = hard

    def status(self) -> ControlStatus:
        """Say how the run is."""
        stop = self._run.stop
        now = self._run.clock.monotonic()
        opens = self._run.ceilings.room_at(now)
        return ControlStatus(
            in_flight=len(self._run.flights),
            limit=self._run.ceilings.limit,
            planned=self._planned,
            ended=self._ended(),
            paused=self._run.supply.paused,
            draining=stop.closed.is_set(),
            stop_reason=stop.why,
            again=self._again(),
            held_for=None if opens is None else opens - now,
            waiting=self._run.flights.longest(_SHOWN),
        )

    def set_limit(self, limit: int | None) -> str | None:
        """Have at most `limit` rollouts in flight from now on, whatever decided about that before; None: find one."""
        if limit is not None and limit < self._floor:
            return f"a task of this run has {self._floor} rollouts that are scored together; give {self._floor} or more"
        is_found = limit is None
        self._run.ceilings.change(self._hard if is_found else limit, self._run.clock.monotonic(), auto=is_found)
        self._run.adjust()
        return None

    def pause(self) -> None:
        """Send nothing further until `resume`."""
        self._run.supply.paused = True

    def resume(self) -> None:
        """Send again."""
        self._run.supply.paused = False
        self._run.supply.has_changed()

    def drain(self, why: str) -> None:
        """Send nothing further for good, and end once what is in flight has ended."""
        self._run.stop.drain(why)

    def requeue(self, keys: Sequence[RolloutKey]) -> tuple[Requeued, ...]:
        """End the attempts of `keys` that are in flight, and run those rollouts again."""
        return tuple(map(self._requeued, keys))

    def _requeued(self, key: RolloutKey) -> Requeued:
        flight = self._run.flights.find(key)
        if self._run.policy.whole_tasks:
            return Requeued(key, None, "the repeats of its task are scored together; a resume runs a broken task again")
        if flight is None:
            return Requeued(key, None, "it is not in flight")
        if self._run.stop.closed.is_set():
            return Requeued(key, None, "nothing more is sent; a resume runs it again unless it ends by itself")
        flight.give_up(GivenUp.RUN_AGAIN, _AGAIN)
        return Requeued(key, flight.attempt.attempt)
