"""Where each rollout stands after its records: the one fold, "the latest execution stands first".

Rules:
* Readers ask this fold; none of them looks at a record's order or markers itself.
* A never-started row and evidence never supersede; an interrupted attempt hides older failures.
* With the same attempt number, or where no run id says which attempt is which, a result wins over a failure;
  with different numbers the highest attempt that has an outcome stands, in whichever file it lies.
* An attempt that was handed out and did not end is the latest execution: in flight while its session lives,
  interrupted afterwards. It hides a failure, and never a result.
* Columns, not objects: memory stays under 200 bytes a rollout.

Source: collection.md §4.11, §5.4, §17.1, §21.1, §21.3.
"""

from array import array
from collections import Counter
from collections.abc import Iterator, MutableSequence
from dataclasses import dataclass, field
from typing import Final

from rollbook.records.attempts import Attempts
from rollbook.records.coverage import Coverage, covered
from rollbook.records.disposition import DEFAULT_RULES, OWED, Disposition, Rules, disposition_of
from rollbook.records.group_count import GroupCount
from rollbook.records.identity import RolloutKey
from rollbook.records.outcome import Evidence, Failed, NeverStarted, Omitted, Result
from rollbook.records.record import Record
from rollbook.records.shared import Shared
from rollbook.records.table import NO_ROW, RecordTable, renumbered

__all__ = ["Coverage", "Standing", "Standings", "supersedes"]

_PLANNED: Final = 1
_MOST_SPENT: Final = 0xFFFF


def supersedes(new: Record, current: Record | None) -> bool:
    """Whether `new`, read after `current`, decides where the rollout stands."""
    if isinstance(new.outcome, NeverStarted | Evidence):
        return current is None
    if current is None or isinstance(current.outcome, NeverStarted | Evidence):
        return True
    numbered = new.run_id is not None and current.run_id is not None
    if numbered and new.attempt != current.attempt:
        return new.attempt > current.attempt
    return isinstance(new.outcome, Result) or not isinstance(current.outcome, Result)


@dataclass(frozen=True, slots=True)
class Standing:
    """Where one rollout stands: its disposition, the record that decides (if one does), and why nothing was sent."""

    key: RolloutKey
    disposition: Disposition
    record: Record | None
    planned: bool


@dataclass(slots=True)
class Standings:
    """The fold over a run's reservations and records, in the order in which they were written."""

    _slots: dict[int, int] = field(default_factory=dict)
    _row: MutableSequence[int] = field(default_factory=lambda: array("i"))
    _last: MutableSequence[int] = field(default_factory=lambda: array("i"))
    _spent: MutableSequence[int] = field(default_factory=lambda: array("H"))
    _flags: MutableSequence[int] = field(default_factory=lambda: array("B"))
    _group: MutableSequence[int] = field(default_factory=lambda: array("I"))
    _names: Shared[tuple[str | None, str | None]] = field(default_factory=lambda: Shared((None, None)))
    _table: RecordTable = field(default_factory=RecordTable)
    _attempts: Attempts = field(default_factory=Attempts)
    stop_reason: str | None = None
    unreserved: int = 0
    refused_attempts: int = 0

    def plan(self, key: RolloutKey, agent: str | None = None, server: str | None = None) -> bool:
        """Note that the plan holds `key`, for `agent` on a stamped `server`; False when it was there already."""
        slot = self._slot(key)
        if self._flags[slot] & _PLANNED:
            return False
        self._flags[slot] |= _PLANNED
        self._group[slot] = self._names.number((agent, server))
        return True

    def reserved(self, key: RolloutKey, attempt: int, session: int = 0) -> None:
        """Note that `attempt` of `key` was handed out in `session`."""
        self._attempts.reserve(self._slot(key), attempt, session)

    def refused(self, key: RolloutKey, attempt: int) -> None:
        """Note that `attempt` of `key` never ran."""
        self._attempts.end(self._slot(key), attempt)
        self.refused_attempts += 1

    def cut(self, key: RolloutKey, attempt: int) -> None:
        """Note that the process which had sent `attempt` of `key` ended it."""
        self._attempts.cut(self._slot(key), attempt)

    def stopped(self, why: str) -> None:
        """Note that what is owed and was not sent is not sent any more."""
        self.stop_reason = why

    def add(self, record: Record) -> Record:
        """Fold one record, and return it with the attempt number that it has."""
        slot = self._slot(record.key)
        attempt = self._number(slot, record)
        record = renumbered(record, attempt)
        self._count(slot, record)
        row = self._table.append(record, attempt, self._last[slot])
        self._last[slot] = row
        if self._row[slot] == NO_ROW or supersedes(record, self._table.record(self._row[slot], record.key)):
            self._row[slot] = row
        if _was_an_attempt(record):
            self._attempts.end(slot, attempt)
        return record

    def _number(self, slot: int, record: Record) -> int:
        """Return the attempt that `record` is: rows that name no run are numbered in the order of the file."""
        if record.run_id is not None or not _was_an_attempt(record):
            if _was_an_attempt(record) and not self._attempts.is_reserved(slot, record.attempt):
                self.unreserved += 1
            return record.attempt
        return max(record.attempt, self._attempts.lowest_unused(slot))

    def _count(self, slot: int, record: Record) -> None:
        if not isinstance(record.outcome, Failed):
            return
        managed = record.run_id is not None
        repeated = managed and self._attempts.has_ended(slot, record.attempt)
        if not repeated and not (managed and record.outcome.never_ran):
            self._spent[slot] = min(self._spent[slot] + 1, _MOST_SPENT)

    def of(self, key: RolloutKey) -> Record | None:
        """Return the record that decides where `key` stands, or None when nothing was written about it."""
        slot = self._slots.get(_packed(key))
        if slot is None or self._row[slot] == NO_ROW:
            return None
        return self._table.record(self._row[slot], key)

    def records_of(self, key: RolloutKey) -> tuple[Record, ...]:
        """Return every record of `key`, in the order in which they were read."""
        slot = self._slots.get(_packed(key))
        rows = () if slot is None else tuple(self._table.chain(self._last[slot]))
        return tuple(self._table.record(row, key) for row in reversed(rows))

    def spent(self, key: RolloutKey) -> int:
        """Return how many failures of `key` count against the cap; what never ran and what was omitted do not."""
        slot = self._slots.get(_packed(key))
        return 0 if slot is None else self._spent[slot]

    def next_attempt(self, key: RolloutKey) -> int:
        """Return the next number of `key` that nobody had."""
        slot = self._slots.get(_packed(key))
        return 0 if slot is None else self._attempts.next_number(slot)

    def lost(self, key: RolloutKey) -> tuple[int, ...]:
        """Return the attempts of `key` that were handed out and left neither an ending nor a word."""
        slot = self._slots.get(_packed(key))
        return () if slot is None else tuple(self._attempts.lost(slot))

    def losses(self) -> Iterator[tuple[RolloutKey, tuple[int, ...]]]:
        """Yield each rollout of which attempts were lost, and which."""
        for packed, slot in self._slots.items():
            if self._attempts.open_attempt(slot) is not None:
                lost = tuple(self._attempts.lost(slot))
                if lost:
                    yield _unpacked(packed), lost

    def is_planned(self, key: RolloutKey) -> bool:
        """Whether the plan holds `key`."""
        slot = self._slots.get(_packed(key))
        return slot is not None and bool(self._flags[slot] & _PLANNED)

    def standing(self, key: RolloutKey, rules: Rules = DEFAULT_RULES) -> Standing:
        """Return where `key` stands."""
        slot = self._slots.get(_packed(key))
        return Standing(key, Disposition.UNTOUCHED, None, planned=False) if slot is None else self._at(slot, key, rules)

    def standings(self, rules: Rules = DEFAULT_RULES) -> Iterator[Standing]:
        """Yield where every rollout stands that the plan or a record names, in the order in which they were named."""
        for packed, slot in self._slots.items():
            yield self._at(slot, _unpacked(packed), rules)

    def _at(self, slot: int, key: RolloutKey, rules: Rules) -> Standing:
        record = self._table.record(self._row[slot], key) if self._row[slot] != NO_ROW else None
        disposition = self._later(slot, disposition_of(record, self._spent[slot], rules), rules)
        return Standing(key, disposition, record, bool(self._flags[slot] & _PLANNED))

    def _later(self, slot: int, disposition: Disposition, rules: Rules) -> Disposition:
        """Return what `disposition`, by the rollout's records alone, is once attempts without an ending count."""
        open_attempt = self._attempts.open_attempt(slot)
        if open_attempt is not None and self._is_latest(slot, open_attempt):
            alive = rules.live_session is not None and self._attempts.session(slot) == rules.live_session
            if alive and not self._attempts.was_cut(slot, open_attempt):
                return Disposition.IN_FLIGHT
            return Disposition.INTERRUPTED if disposition in OWED else disposition
        if disposition is Disposition.UNTOUCHED and self.stop_reason is not None and rules.live_session is None:
            return Disposition.NEVER_STARTED
        return disposition

    def _is_latest(self, slot: int, open_attempt: int) -> bool:
        row = self._row[slot]
        if row == NO_ROW or isinstance(self._table.shape(row), NeverStarted | Evidence):
            return True
        return open_attempt > self._table.attempt(row)

    def __iter__(self) -> Iterator[Record]:
        """Yield the records that stand."""
        for packed, slot in self._slots.items():
            if self._row[slot] != NO_ROW:
                yield self._table.record(self._row[slot], _unpacked(packed))

    def __len__(self) -> int:
        """Return how many rollouts the plan or a record names."""
        return len(self._slots)

    @property
    def records(self) -> int:
        """How many records were folded."""
        return len(self._table)

    def coverage(self, planned: int | None = None, rules: Rules = DEFAULT_RULES) -> Coverage:
        """Count where the planned rollouts stand; without a plan in the fold, `planned` says how many there are."""
        counts: Counter[Disposition] = Counter()
        classes: Counter[str] = Counter()
        groups, unplanned = self._counted(rules, of_plan_only=planned is None)
        for group in groups:
            counts.update(group.dispositions)
            classes.update(group.classes)
        return covered(counts, classes, planned, unplanned)

    def groups(self, rules: Rules = DEFAULT_RULES) -> tuple[GroupCount, ...]:
        """Count where the planned rollouts stand, for each agent and environment server that the plan names."""
        return self._counted(rules, of_plan_only=True)[0]

    def _counted(self, rules: Rules, *, of_plan_only: bool) -> tuple[tuple[GroupCount, ...], int]:
        """Return the counts by group, and how many rollouts are in no plan."""
        groups = [GroupCount(*name) for name in self._names]
        unplanned = 0
        judged = _Judged(rules)
        for packed, slot in self._slots.items():
            if of_plan_only and not self._flags[slot] & _PLANNED:
                unplanned += 1
                continue
            row, group = self._row[slot], groups[self._group[slot]]
            alone = Disposition.UNTOUCHED if row == NO_ROW else judged.of(self._table, row, packed, self._spent[slot])
            disposition = self._later(slot, alone, rules)
            group.add(disposition, None if row == NO_ROW else self._table, row)
        return tuple(group for group in groups if group.dispositions), unplanned

    def attempts_handed_out(self) -> int:
        """Return how many attempt numbers were handed out."""
        return sum(self._attempts.handed_out(slot) for slot in self._slots.values())

    def _slot(self, key: RolloutKey) -> int:
        packed = _packed(key)
        slot = self._slots.get(packed)
        if slot is None:
            slot = self._slots[packed] = len(self._row)
            self._row.append(NO_ROW)
            self._last.append(NO_ROW)
            self._spent.append(0)
            self._flags.append(0)
            self._group.append(0)
            self._attempts.grow()
        return slot


@dataclass(slots=True)
class _Judged:
    """Dispositions by what decides about them: a million rollouts end in a few dozen ways."""

    rules: Rules
    _known: dict[tuple[int, bool, bool], Disposition] = field(default_factory=dict)

    def of(self, table: RecordTable, row: int, packed: int, spent: int) -> Disposition:
        if self.rules.rerun_masked:
            return disposition_of(table.record(row, _unpacked(packed)), spent, self.rules)
        kind = (table.shape_number(row), table.run_id(row) is None, spent >= self.rules.cap)
        found = self._known.get(kind)
        if found is None:
            found = self._known[kind] = disposition_of(table.record(row, _unpacked(packed)), spent, self.rules)
        return found


def _was_an_attempt(record: Record) -> bool:
    """Whether a row stands for an attempt: of a run without a name, rows without a result stand for none."""
    if record.run_id is None:
        return not isinstance(record.outcome, Omitted | Evidence)
    return not isinstance(record.outcome, NeverStarted)


def _packed(key: RolloutKey) -> int:
    return key.task << 32 | key.rollout


def _unpacked(packed: int) -> RolloutKey:
    return RolloutKey(packed >> 32, packed & 0xFFFFFFFF)
