"""What a run was asked to do, and the log of the attempt numbers that it handed out.

Rules:
* The manifest holds digests, names and numbers; no value of a configuration and no credential.
* The log is append-only: one JSON line an event. What it says is never changed, so a number is never handed out twice.
* A version that is not known is refused, never read as another one.

Source: collection.md §1.8, §5.4; the log's form is our own (docs/record-format.md).
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, groupby
from operator import attrgetter
from typing import Annotated, Final, Literal

import msgspec

from rollbook.records.approval import Approval, Reverified
from rollbook.records.columns import LOW
from rollbook.records.disposition import DEFAULT_CAP
from rollbook.records.identity import MOST_ATTEMPTS, RolloutKey

SCHEMA_VERSION: Final = 1
_Count = Annotated[int, msgspec.Meta(ge=0)]
_Number = Annotated[int, msgspec.Meta(ge=1)]
_Name = Annotated[str, msgspec.Meta(min_length=1)]


class PlanDigest(msgspec.Struct, frozen=True, kw_only=True):
    """The plan that is in force: the first `bytes` of the materialized inputs, and their SHA-256."""

    sha256: str
    bytes: _Count
    rollouts: _Count


class SessionEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One process's stay in the run, as it was opened. `drift` says in which keys its command differed."""

    number: _Number
    opened_at: str
    host: str
    pid: int
    version: str
    git: str | None = None
    command: tuple[str, ...] = ()
    drift: tuple[str, ...] = ()


class MergedShard(msgspec.Struct, frozen=True, kw_only=True):
    """One of the runs that a merged output was made of: the name of its results, and its run where it has a name."""

    name: str
    run_id: str | None = None


IMPORTED: Final = "imported"
"""The manifest's key that names the logs which a run was imported from, and how its one session ended."""


class RunManifest(msgspec.Struct, frozen=True, kw_only=True):
    """The manifest of a run.

    `output`: the name of the file of results; other names of that stem are not this run's. `adopted`: rows that name no
    run belong to it as well. `unreserved`: so many records of attempts of which no log tells were there when it was
    adopted, or told to go on without them. `not_resumable`: why a resume refuses the run. `group_scored`: repeats of a
    task are scored together. `released`: held attempts that a person had run again. `merged`: the runs whose results,
    failures and plans it holds; records of other names than its own are at home there. `others`: what else its file
    says, under names that are not these. Source: collection.md §1.8.
    """

    schema_version: Literal[1] = 1
    run_id: _Name
    created_at: str
    output: str | None = None
    plan: PlanDigest
    input_sha256: str | None = None
    configuration_sha256: str | None = None
    configuration_keys: Mapping[str, str] = msgspec.field(default_factory=dict)
    max_rollout_attempts: _Number = DEFAULT_CAP
    attempt_extension: _Count = 0
    retry_terminal_timeouts: bool = False
    group_scored: bool = False
    rerun_masked: frozenset[tuple[int, int, int]] = frozenset()
    released: frozenset[tuple[int, int, int]] = frozenset()
    approvals: tuple[Approval, ...] = ()
    pending_rejudges: tuple[Mapping[str, object], ...] = ()
    reverified: Reverified | None = None
    merged: tuple[MergedShard, ...] = ()
    adopted: bool = False
    unreserved: _Count = 0
    not_resumable: str | None = None
    sessions: tuple[SessionEntry, ...] = ()
    others: Mapping[str, object] = msgspec.field(default_factory=dict)

    @property
    def attempt_cap(self) -> int:
        """Failures that a rollout of this run may have: the saved cap and what an explicit recovery added."""
        return self.max_rollout_attempts + self.attempt_extension

    @property
    def was_run_elsewhere(self) -> bool:
        """Whether its rollouts were imported or merged: no session of it ever sends one."""
        return bool(self.merged) or IMPORTED in self.others

    @property
    def was_judged_first(self) -> bool:
        """Whether a judge was paid for its answers before anything was known of how they were collected."""
        judged = self.adopted and self.not_resumable is not None and not self.configuration_keys
        return judged and self.reverified is None and not self.was_run_elsewhere

    @property
    def session(self) -> int:
        """The number of the latest session, 0 before the first."""
        return self.sessions[-1].number if self.sessions else 0


_OTHERS: Final = "others"
_OWN_NAMES: Final = frozenset(RunManifest.__struct_fields__) - {_OTHERS}
_MANIFEST: Final = msgspec.json.Decoder(RunManifest)


def read_manifest_text(text: bytes) -> RunManifest:
    """Decode what the file of a manifest holds.

    Raises:
        msgspec.DecodeError, UnicodeDecodeError: it is no manifest that this version knows.

    """
    manifest = _MANIFEST.decode(text)
    others = {name: value for name, value in msgspec.json.decode(text).items() if name not in _OWN_NAMES}
    return msgspec.structs.replace(manifest, others=others)


def manifest_text(manifest: RunManifest) -> bytes:
    """Return a manifest as its file holds it."""
    said = {name: getattr(manifest, name) for name in RunManifest.__struct_fields__ if name != _OTHERS}
    return msgspec.json.format(msgspec.json.encode(said | dict(manifest.others)), indent=1) + b"\n"


class _Event(msgspec.Struct, frozen=True, tag_field="t", omit_defaults=True):
    """One line of the log; `sizes` are the bytes of results and failures that were committed before it."""


class Opened(_Event, frozen=True, tag="open"):
    """A session began."""

    session: _Count
    run_id: str
    at: str
    sizes: tuple[_Count, _Count]


class Reserved(_Event, frozen=True, tag="reserve"):
    """Attempt numbers were handed out, `after` so many seconds of the session: task, rollout, attempt, and so on."""

    a: list[int]
    sizes: tuple[_Count, _Count]
    after: float = 0.0


class Refused(_Event, frozen=True, tag="refused"):
    """These attempts never ran."""

    a: list[int]
    why: str


class Cut(_Event, frozen=True, tag="cut"):
    """This process ended these attempts while they were in flight."""

    a: list[int]
    why: str


class Stopped(_Event, frozen=True, tag="stop"):
    """Nothing more is sent: what is owed and has no number was never started."""

    why: str


class Closed(_Event, frozen=True, tag="close"):
    """The session ended in order, `after` so many seconds."""

    how: str
    at: str
    sizes: tuple[_Count, _Count]
    after: float = 0.0


LogEvent = Opened | Reserved | Refused | Cut | Stopped | Closed
_LOG_EVENT: Final = msgspec.json.Decoder(LogEvent)
_ATTEMPTS: Final = attrgetter("a")
_SIZES: Final = attrgetter("sizes")
_NO_ATTEMPTS: Final = "its numbers are no attempts: task, rollout, attempt, and so on"


def read_log_event(line: bytes) -> LogEvent:
    """Decode one line of the log.

    Raises:
        msgspec.DecodeError: it is no event that this version knows.

    """
    event = _LOG_EVENT.decode(line)
    if isinstance(event, Reserved | Refused | Cut) and not _are_attempts(event.a):
        raise msgspec.ValidationError(_NO_ATTEMPTS)
    return event


def read_log_events(lines: Iterable[bytes]) -> list[LogEvent]:
    """Decode lines of the log; reservations that follow each other come as one.

    Raises:
        msgspec.DecodeError: one is no event that this version knows.

    """
    events: list[LogEvent] = []
    for kind, alike in groupby(map(_LOG_EVENT.decode, lines), type):
        if kind is Reserved:
            events.append(_as_one([event for event in alike if isinstance(event, Reserved)]))
        else:
            events += alike
    if all(_are_attempts(event.a) for event in events if isinstance(event, Reserved | Refused | Cut)):
        return events
    raise msgspec.ValidationError(_NO_ATTEMPTS)


def _as_one(reserved: list[Reserved]) -> Reserved:
    """Return what reservations that follow each other say together."""
    numbers = list(map(_ATTEMPTS, reserved))
    if any(len(some) % 3 for some in numbers):
        raise msgspec.ValidationError(_NO_ATTEMPTS)
    results, failures = zip(*map(_SIZES, reserved), strict=True)
    return Reserved(list(chain.from_iterable(numbers)), (max(results), max(failures)), reserved[-1].after)


def _are_attempts(numbers: list[int]) -> bool:
    if len(numbers) % 3 or min(numbers, default=0) < 0:
        return False
    return max(numbers[1::3], default=0) <= LOW and max(numbers[2::3], default=0) <= MOST_ATTEMPTS


def log_line(event: LogEvent) -> bytes:
    """Return `event` as a line, newline included."""
    return msgspec.json.encode(event) + b"\n"


def flat(attempts: Iterable[tuple[RolloutKey, int]]) -> list[int]:
    """Return attempts as the log writes them."""
    return [number for key, attempt in attempts for number in (key.task, key.rollout, attempt)]


def unflat(numbers: list[int]) -> Iterator[tuple[RolloutKey, int]]:
    """Yield the attempts that a line of the log names."""
    triples = iter(numbers)
    thrice = zip(triples, triples, triples, strict=True)
    return ((RolloutKey(task, rollout), attempt) for task, rollout, attempt in thrice)
