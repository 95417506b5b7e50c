"""How a run is: one value that the terminal, programs and a chain of jobs are told from.

Rules:
* Every planned rollout is in exactly one part of the coverage, and in one reason of what a resume would run or leave.
* The exit code follows from the value alone; nobody else decides it.

Source: collection.md §5, §9.3, §17.3; cases RC-21, RC-53.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Final, Protocol

import msgspec

from rollbook.records.headline import Headline
from rollbook.records.standing import Coverage

DONE: Final = 0
RESUMABLE: Final = 3
INCOMPLETE: Final = 4
VIOLATED: Final = 5
WITH_TASK: Final = "of a task that runs again whole"


class RunState(StrEnum):
    """Whether somebody works on a run, and whether its files can be believed."""

    RUNNING = "running"
    INTERRUPTED = "interrupted"
    FINISHED = "finished"
    DAMAGED = "damaged"


class FilePath(Protocol):
    """Where a file lies; a `pathlib.Path` is one."""

    def __fspath__(self) -> str:
        """Return the path as text."""
        ...


class Damage(msgspec.Struct, frozen=True):
    """What is wrong with a file; `place` is `file:line`, or the file alone."""

    place: str
    what: str


class SessionStatus(msgspec.Struct, frozen=True):
    """One process's stay in the run; `closed_at` and `how` are None while it runs, and when it died."""

    number: int
    opened_at: str
    closed_at: str | None
    how: str | None
    host: str
    pid: int
    command: str


class GroupStatus(msgspec.Struct, frozen=True):
    """The rollouts of one agent on one environment server.

    `failure_kinds` counts the failures that stand by kind; `final_zeros` counts those that are final and count as zero.
    """

    agent: str | None
    server: str | None
    coverage: Coverage
    mean_reward: float | None
    failure_kinds: Mapping[str, int] = msgspec.field(default_factory=dict)
    final_zeros: int = 0


class RunStatus(msgspec.Struct, frozen=True):
    """One run, as its files tell it.

    `attempts` counts reserved numbers and `refused` those of them that never ran; `owed_by` and `not_owed_by` split the
    plan by why a resume would run a rollout or leave it; `elapsed_s` sums the sessions' active time, in seconds.
    `input` is the file of rows that a resume reads, where it lies beside the output: the run's own plan.
    Without `has_plan` the coverage is of the rollouts that records name, and nobody knows how many were planned.
    `run_elsewhere` says why no session goes on with a run that was imported or merged; None of any other.
    `headlines` are those of its agents by name; none where they were not asked for.
    """

    output: FilePath
    state: RunState
    run_id: str | None
    managed: bool
    coverage: Coverage
    groups: tuple[GroupStatus, ...]
    sessions: tuple[SessionStatus, ...]
    attempts: int
    refused: int
    cap: int
    owed_by: Mapping[str, int]
    not_owed_by: Mapping[str, int]
    damage: tuple[Damage, ...]
    started_at: str | None
    elapsed_s: float | None
    tokens: Mapping[str, int] | None
    notes: tuple[str, ...]
    input: FilePath | None = None
    has_plan: bool = True
    run_elsewhere: str | None = None
    headlines: Mapping[str, Headline] = msgspec.field(default_factory=dict)

    @property
    def final_zeros(self) -> int:
        """How many rollouts ended for good and count as zero."""
        return sum(group.final_zeros for group in self.groups)

    @property
    def is_believable(self) -> bool:
        """Whether the law holds and no file is damaged."""
        return self.coverage.law_holds and not self.damage and self.state is not RunState.DAMAGED


def exit_code(status: RunStatus, *, require_complete: bool) -> int:
    """Return what a command about the run ends with.

    5 when the law is violated or a file is damaged; 4 when everything was to be scored and is not, or nobody knows
    whether it is; 3 when a resume would run something, or something is in flight; 0 when there is nothing that a resume
    would do, as of a run that was imported or merged.
    """
    code = code_of(status.coverage, believable=status.is_believable, require_complete=require_complete)
    if code == DONE and require_complete and not status.has_plan:
        return INCOMPLETE
    return DONE if code == RESUMABLE and status.run_elsewhere is not None else code


def code_of(coverage: Coverage, *, believable: bool = True, require_complete: bool = False) -> int:
    """Return what a run of this coverage ends with, whose files can be believed or not."""
    if not (believable and coverage.law_holds):
        return VIOLATED
    if require_complete and (coverage.scored + coverage.final_zeros < coverage.planned or coverage.owed):
        return INCOMPLETE
    return RESUMABLE if coverage.owed or coverage.in_flight else DONE


def exit_code_of_all(statuses: Iterable[RunStatus], *, require_complete: bool) -> int:
    """Return the gravest exit code of several runs."""
    return max((exit_code(status, require_complete=require_complete) for status in statuses), default=DONE)


def owed_by(coverage: Coverage) -> Mapping[str, int]:
    """Return how many rollouts a resume would run, by reason; reasons that cover none are left out."""
    return _without_zeros(
        {
            "retryable": coverage.retryable,
            "interrupted": coverage.interrupted - coverage.held_interrupted,
            "never started": coverage.never_started,
            "untouched": coverage.untouched,
            "masked, approved to run again": coverage.approved,
            WITH_TASK: coverage.with_their_tasks,
        }
    )


def not_owed_by(coverage: Coverage) -> Mapping[str, int]:
    """Return how many rollouts a resume would leave, by reason; what is in flight is in neither count."""
    by_themselves = {
        "scored": coverage.scored,
        "masked": coverage.masked - coverage.approved,
        "unscored": coverage.unscored,
        "settled": coverage.settled,
        "exhausted": coverage.exhausted,
        "held": coverage.held + coverage.held_interrupted,
    }
    return _without_zeros(
        {reason: count - coverage.with_task.get(reason, 0) for reason, count in by_themselves.items()}
    )


def summed(coverages: Sequence[Coverage]) -> Coverage:
    """Return the coverage of several plans taken together."""
    split = ("failed_by_class", "with_task")
    counts = [name for name in Coverage.__struct_fields__ if name not in split]
    sums = {name: sum(getattr(coverage, name) for coverage in coverages) for name in counts}
    splits = {name: counted(getattr(coverage, name) for coverage in coverages) for name in split}
    classes, with_task = (dict(sorted(splits[name].items())) for name in split)
    return Coverage(**sums, failed_by_class=classes, with_task=with_task)


def counted(mappings: Iterable[Mapping[str, int]]) -> Mapping[str, int]:
    """Return the sum of several counts, names in the order in which they first appear."""
    total: Counter[str] = Counter()
    for mapping in mappings:
        total.update(mapping)
    return dict(total)


def _without_zeros(counts: Mapping[str, int]) -> Mapping[str, int]:
    return {reason: count for reason, count in counts.items() if count}
