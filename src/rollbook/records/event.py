"""What is seen while a run goes on: noted, planned, started, refused, cut, ended.

Rules:
* An event is told after the fact it names is safe: an ending is observed once its line is committed.
* An observer may be slow or raise; neither reaches the run.
"""

from collections.abc import Callable
from enum import Enum

import msgspec

from rollbook.records.coverage import Coverage
from rollbook.records.identity import RolloutKey
from rollbook.records.record import Record


class RunNoted(msgspec.Struct, frozen=True):
    """Something that a person should know of this run, told once; what is known before anything is sent comes first."""

    text: str


class RunPlanned(msgspec.Struct, frozen=True):
    """The plan is on disk; nothing was sent yet.

    Of the `settled` rollouts, `settled_scored` are scored, with rewards that add up to `settled_rewards`, and
    `settled_zeros` failed and are a score of 0 by their producer's mark.
    """

    tasks: int
    rollouts: int
    settled: int = 0
    settled_scored: int = 0
    settled_rewards: float = 0.0
    settled_zeros: int = 0


class AttemptStarted(msgspec.Struct, frozen=True):
    """A request is about to leave. `at` is monotonic seconds."""

    key: RolloutKey
    attempt: int
    at: float


class AttemptEnded(msgspec.Struct, frozen=True):
    """An attempt ended and its line is committed. `elapsed` in seconds; `cause`: what a failed reply said."""

    record: Record
    elapsed: float
    at: float
    cause: str | None = None


class AttemptRefused(msgspec.Struct, frozen=True):
    """An attempt never ran: it was not sent, or turned away. Its rollout is sent again in `retry_in` seconds.

    `server` turned it away with the HTTP status `status` (None: it was not reached). A rollout is sent again for up to
    `retry_for` seconds; None where nobody says so.
    """

    key: RolloutKey
    attempt: int
    why: str
    at: float
    retry_in: float
    server: str = ""
    status: int | None = None
    retry_for: float | None = None


class AttemptCut(msgspec.Struct, frozen=True):
    """An attempt was ended from outside, and left no line; its rollout is sent again."""

    key: RolloutKey
    attempt: int
    why: str
    at: float


class Waiting(msgspec.Struct, frozen=True):
    """A rollout that is out: for `seconds`, on `host`, in `phase`."""

    key: RolloutKey
    seconds: float
    server: str
    host: str
    phase: str


class RunStalled(msgspec.Struct, frozen=True):
    """Nothing ended for `seconds` although `count` rollouts are out; those that wait longest, `longest`, come first."""

    seconds: float
    count: int
    longest: tuple[Waiting, ...]


class ConcurrencyChanged(msgspec.Struct, frozen=True):
    """From now on `limit` rollouts may be in flight: in all where `server` is None, else on that server."""

    limit: int
    why: str
    at: float
    server: str | None = None


class Admission(Enum):
    """Whether rollouts are sent; in all but the first, none is until somebody says so, or none any more."""

    OPEN = "open"
    PAUSED = "paused"
    DRAINING = "draining"
    STOPPING = "stopping"


class AdmissionChanged(msgspec.Struct, frozen=True):
    """From now on rollouts are sent, or not, as `admission` says."""

    admission: Admission


class RunRead(msgspec.Struct, frozen=True):
    """Where the run stands by its files, which others wrote; the rewards of what is scored add up to `rewards`.

    `zeros` of what failed are a score of 0 by their producer's word.
    """

    coverage: Coverage
    rewards: float
    zeros: int = 0


class RunEnded(msgspec.Struct, frozen=True):
    """No further attempt will be made in this session."""


Event = (
    RunNoted
    | RunPlanned
    | AttemptStarted
    | AttemptEnded
    | AttemptRefused
    | AttemptCut
    | RunStalled
    | ConcurrencyChanged
    | AdmissionChanged
    | RunRead
    | RunEnded
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
