"""What is seen while a run goes on: noted, planned, started, refused, ended.

Rules:
* An event is told after the fact it names is safe: an ending is observed once its line is committed.
* An observer may be slow or raise; neither reaches the run.
"""

from collections.abc import Callable
from dataclasses import dataclass

from rollbook.records.identity import RolloutKey
from rollbook.records.record import Record


@dataclass(frozen=True, slots=True)
class RunNoted:
    """Something that a person should know of this run, told once; what is known before anything is sent comes first."""

    text: str


@dataclass(frozen=True, slots=True)
class RunPlanned:
    """The plan is on disk; nothing was sent yet.

    Of the `settled` rollouts, `settled_scored` are scored, with rewards that add up to `settled_rewards`.
    """

    tasks: int
    rollouts: int
    settled: int = 0
    settled_scored: int = 0
    settled_rewards: float = 0.0


@dataclass(frozen=True, slots=True)
class AttemptStarted:
    """A request is about to leave. `at` is monotonic seconds."""

    key: RolloutKey
    attempt: int
    at: float


@dataclass(frozen=True, slots=True)
class AttemptEnded:
    """An attempt ended and its line is committed. `elapsed` in seconds; `cause`: what a failed reply said."""

    record: Record
    elapsed: float
    at: float
    cause: str | None = None


@dataclass(frozen=True, slots=True)
class AttemptRefused:
    """An attempt never ran: it was not sent, or turned away. Its rollout is sent again in `retry_in` seconds."""

    key: RolloutKey
    attempt: int
    why: str
    at: float
    retry_in: float


@dataclass(frozen=True, slots=True)
class Waiting:
    """A rollout that is out: for `seconds`, on `host`, in `phase`."""

    key: RolloutKey
    seconds: float
    server: str
    host: str
    phase: str


@dataclass(frozen=True, slots=True)
class RunStalled:
    """Nothing ended for `seconds` although `count` rollouts are out; those that wait longest, `longest`, come first."""

    seconds: float
    count: int
    longest: tuple[Waiting, ...]


@dataclass(frozen=True, slots=True)
class ConcurrencyChanged:
    """From now on `limit` rollouts may be in flight: in all where `server` is None, else on that server."""

    limit: int
    why: str
    at: float
    server: str | None = None


@dataclass(frozen=True, slots=True)
class RunEnded:
    """No further attempt will be made in this session."""


Event = (
    RunNoted | RunPlanned | AttemptStarted | AttemptEnded | AttemptRefused | RunStalled | ConcurrencyChanged | RunEnded
)
Observe = Callable[[Event], None]


def observe_nothing(_event: Event) -> None:
    """Look away."""


def both(first: Observe, second: Observe) -> Observe:
    """Return an observer that tells two."""

    def tell(event: Event) -> None:
        first(event)
        second(event)

    return tell
