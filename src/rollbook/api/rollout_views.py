"""What a run's records look like from outside: mappings and sets that ask the fold each time, and hold nothing.

Rules:
* A view keeps no entry: looking one up costs one question to the fold, counting them one pass over it.
* What is not in a view is a `KeyError`, as in a dict; a count of what never happened is 0, as in a `Counter`.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import TypeVar

from rollbook.ledger.rollout_record import RolloutRecord
from rollbook.records.disposition import Rules, is_terminal_failure
from rollbook.records.keys import NG_ELAPSED_KEY
from rollbook.records.outcome import Evidence, Failed, Interrupted, Masked, NeverStarted, Outcome, Scored
from rollbook.records.record import Record

_K = TypeVar("_K", bound=Hashable)
_M_co = TypeVar("_M_co", bound=Hashable, covariant=True)
_V = TypeVar("_V")


class View(Mapping[_K, _V]):
    """A mapping over `keys`, of which `find` tells the value, or None."""

    __slots__ = ("_find", "_keys")

    def __init__(self, keys: Callable[[], Iterator[_K]], find: Callable[[object], _V | None]) -> None:
        self._keys = keys
        self._find = find

    def __getitem__(self, key: _K) -> _V:
        """Return the value of `key`."""
        value = self._find(key)
        if value is None:
            raise KeyError(key)
        return value

    def __iter__(self) -> Iterator[_K]:
        """Yield the keys, in plan order."""
        return self._keys()

    def __len__(self) -> int:
        """Count the keys."""
        return sum(1 for _ in self._keys())

    def __repr__(self) -> str:
        """Say how many there are; the entries may be a million."""
        return f"<{len(self)} entries>"


class Counts(View[str, int]):
    """Numbers by rollout; what is not counted is 0 and no key."""

    __slots__ = ()

    def __getitem__(self, key: str) -> int:
        """Return the number for `key`."""
        return self._find(key) or 0

    def __contains__(self, key: object) -> bool:
        """Whether the number for `key` is another one than 0."""
        return bool(self._find(key))


class Members(AbstractSet[_M_co]):
    """A set of `members`; `has` tells whether something is one."""

    __slots__ = ("_has", "_members")

    def __init__(self, members: Callable[[], Iterator[_M_co]], has: Callable[[object], bool]) -> None:
        self._members = members
        self._has = has

    @classmethod
    def _from_iterable(cls, it: Iterable[_V]) -> AbstractSet[_V]:
        return frozenset(it)

    def __contains__(self, value: object) -> bool:
        """Whether `value` is a member."""
        return self._has(value)

    def __iter__(self) -> Iterator[_M_co]:
        """Yield the members, in plan order."""
        return self._members()

    def __len__(self) -> int:
        """Count the members."""
        return sum(1 for _ in self._members())

    def __repr__(self) -> str:
        """Say how many there are; the members may be a million."""
        return f"<{len(self)} members>"


@dataclass(frozen=True, slots=True)
class SavedOutcome:
    """How one attempt ended, as its row says it, and where the row lies. Source: collection.md §5.4.1."""

    record: RolloutRecord
    failure_class: str | None
    legacy_failure_class: str | None
    terminal: bool
    masked: bool
    has_reward: bool
    final_zero: bool = False
    counted_zero_kind: str | None = None
    interruption_cause_unknown: bool = False
    saved_answer: bool = False
    rerun_approved: bool = False

    @property
    def elapsed_seconds(self) -> float | None:
        """How long the attempt took, if its row says so; read from disk."""
        seconds = self.record.read().get(NG_ELAPSED_KEY)
        return float(seconds) if isinstance(seconds, int | float) else None


def saved_outcome(record: Record, where: RolloutRecord, rules: Rules) -> SavedOutcome:
    """Return what a run's `rules` make of a record that lies at `where`."""
    match record.outcome:
        case Failed() as failed:
            return _failure(failed, where, rules)
        case Interrupted() as interrupted:
            unknown = record.run_id is not None and not interrupted.may_replay
            told = interrupted.failure_class
            return SavedOutcome(
                where, told, None, terminal=False, masked=False, has_reward=False, interruption_cause_unknown=unknown
            )
        case outcome:
            approved = (record.key.task, record.key.rollout, record.attempt) in rules.rerun_masked
            masked = isinstance(outcome, Masked)
            return SavedOutcome(
                where,
                None,
                None,
                terminal=False,
                masked=masked,
                has_reward=_has_reward(outcome),
                rerun_approved=masked and approved,
            )


def is_an_ending(record: Record) -> bool:
    """Whether an attempt ended with `record`."""
    return not is_omitted(record) and not isinstance(record.outcome, Evidence)


def is_omitted(record: Record) -> bool:
    """Whether the row says that no result exists; what a managed run saves of an interruption is a row of its own."""
    return isinstance(record.outcome, NeverStarted) or (
        record.run_id is None and isinstance(record.outcome, Interrupted)
    )


def _failure(failed: Failed, where: RolloutRecord, rules: Rules) -> SavedOutcome:
    terminal = is_terminal_failure(failed, retry_terminal_timeouts=rules.retry_terminal_timeouts)
    return SavedOutcome(
        where,
        failed.failure_class,
        failed.legacy_class,
        terminal=terminal,
        masked=False,
        has_reward=False,
        final_zero=terminal and failed.counts_as_zero,
        counted_zero_kind=(failed.kind or failed.failure_class) if failed.counts_as_zero else None,
        saved_answer=failed.saved_answer,
    )


def _has_reward(outcome: Outcome) -> bool:
    return isinstance(outcome, Scored) or (isinstance(outcome, Masked) and outcome.reward is not None)
