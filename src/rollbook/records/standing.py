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

from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from typing import Final

import msgspec
from msgspec.structs import replace

from rollbook.records.alike import alike_rollouts
from rollbook.records.columns import PLANNED, RolloutColumns, packed, packed_key, unpacked_key
from rollbook.records.coverage import Coverage
from rollbook.records.disposition import DEFAULT_RULES, OWED, Disposition, Rules, disposition_of
from rollbook.records.doubles import Doubles, count_disputed, earlier_result
from rollbook.records.group_count import GroupCount, Groups, coverage_of
from rollbook.records.identity import RolloutKey
from rollbook.records.in_order import InOrder
from rollbook.records.outcome import Evidence, Failed, NeverStarted, Omitted, Outcome, Result
from rollbook.records.place import Place
from rollbook.records.record import Record
from rollbook.records.table import NO_ROW, SCORED_KIND, RecordTable, renumbered
from rollbook.records.together import STAYS_OUT, is_broken, largest_task

__all__ = ["Coverage", "Standing", "Standings", "supersedes"]

_MOST_SPENT: Final = 0xFFFF
_ANY: Final = RolloutKey(0, 0)
_HIDDEN: Final = (OWED | {Disposition.HELD, Disposition.HELD_INTERRUPTED}) - {Disposition.APPROVED}
"""What a later attempt that did not end hides: neither a result nor an end for good."""


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


class Standing(msgspec.Struct, frozen=True):
    """Where one rollout stands: its disposition, and the record that decides (if one does).

    `with_task`: it is not owed by itself, and runs again because its task's repeats are scored together.
    """

    key: RolloutKey
    disposition: Disposition
    record: Record | None
    planned: bool
    with_task: bool = False

    @property
    def is_owed(self) -> bool:
        """Whether a resume would run it."""
        return self.with_task or self.disposition in OWED


class Standings:
    """The fold over a run's reservations and records, in the order in which they were written."""

    def __init__(self) -> None:
        self.columns = RolloutColumns()
        self.table = RecordTable()
        self.stop_reason: str | None = None
        self.unreserved = 0
        self.first_unreserved: Record | None = None
        self.refused_attempts = 0
        self.doubles = Doubles()
        self._reusing: set[int] = set()

    def plan(self, key: RolloutKey, agent: str | None = None, server: str | None = None) -> bool:
        """Note that the plan holds `key`, for `agent` on a stamped `server`; False when it was there already."""
        seat = self.columns.seat(packed_key(key))
        if self.columns.flags[seat] & PLANNED:
            return False
        self.columns.flags[seat] |= PLANNED
        self.columns.group[seat] = self.columns.names.number((agent, server))
        return True

    def reserved(self, key: RolloutKey, attempt: int, session: int = 0) -> None:
        """Note that `attempt` of `key` was handed out in `session`."""
        self.columns.attempts.reserve(self.columns.seat(packed_key(key)), attempt, session)

    def refused(self, key: RolloutKey, attempt: int) -> None:
        """Note that `attempt` of `key` never ran."""
        self.columns.attempts.end(self.columns.seat(packed_key(key)), attempt)
        self.refused_attempts += 1

    def cut(self, key: RolloutKey, attempt: int) -> None:
        """Note that the process which had sent `attempt` of `key` ended it."""
        self.columns.attempts.cut(self.columns.seat(packed_key(key)), attempt)

    def stopped(self, why: str) -> None:
        """Note that what is owed and was not sent is not sent any more."""
        self.stop_reason = why

    def add(self, record: Record) -> Record:
        """Fold one record, and return it with the attempt number that it has."""
        seat = self.columns.seat(packed_key(record.key))
        earlier = None if record.is_rejudgment else earlier_result(self.columns, self.table, seat, record)
        attempt = self._number(seat, record)
        record = renumbered(record, attempt)
        self._count(seat, record)
        row = self.table.append(record, attempt, self.columns.last[seat])
        if earlier is not None:
            self.doubles.note(self.table, seat, earlier, row)
        self.columns.last[seat] = row
        if self.columns.row[seat] == NO_ROW or supersedes(
            record, self.table.record(self.columns.row[seat], record.key)
        ):
            self.columns.row[seat] = row
        if _was_an_attempt(record):
            self.columns.attempts.end(seat, attempt)
        return record

    def _number(self, seat: int, record: Record) -> int:
        """Return the attempt that `record` is: rows that name no run are numbered in the order of the file."""
        if record.run_id is not None or not _was_an_attempt(record):
            if _was_an_attempt(record) and not self.columns.attempts.is_handed_out(seat, record.attempt):
                self.first_unreserved = self.first_unreserved or record
                self.unreserved += 1
            return record.attempt
        return max(record.attempt, self.columns.attempts.lowest_unused(seat))

    def _count(self, seat: int, record: Record) -> None:
        if not isinstance(record.outcome, Failed):
            return
        if record.outcome.reuses_deliverable:
            self._reusing.add(seat)
        managed = record.run_id is not None
        repeated = managed and self.columns.attempts.has_ended(seat, record.attempt)
        if not repeated and not (managed and record.outcome.never_ran):
            self.columns.spent[seat] = min(self.columns.spent[seat] + 1, _MOST_SPENT)

    def of(self, key: RolloutKey) -> Record | None:
        """Return the record that decides where `key` stands, or None when nothing was written about it."""
        seat = self.columns.seats.get(packed_key(key))
        if seat is None or self.columns.row[seat] == NO_ROW:
            return None
        return self.table.record(self.columns.row[seat], key)

    def records_of(self, key: RolloutKey) -> tuple[Record, ...]:
        """Return every record of `key`, in the order in which they were read."""
        seat = self.columns.seats.get(packed_key(key))
        rows = () if seat is None else tuple(self.table.chain(self.columns.last[seat]))
        return tuple(self.table.record(row, key) for row in reversed(rows))

    def spent(self, key: RolloutKey) -> int:
        """Return how many failures of `key` count against the cap; what never ran and what was omitted do not."""
        seat = self.columns.seats.get(packed_key(key))
        return 0 if seat is None else self.columns.spent[seat]

    def reuses_deliverable(self, key: RolloutKey) -> bool:
        """Whether a failure of `key` said that its next attempt may use what was delivered before."""
        return bool(self._reusing) and self.columns.seats.get(packed_key(key)) in self._reusing

    def next_attempt(self, key: RolloutKey) -> int:
        """Return the next number of `key` that nobody had."""
        seat = self.columns.seats.get(packed_key(key))
        return 0 if seat is None else self.columns.attempts.next_number(seat)

    def lost(self, key: RolloutKey) -> tuple[int, ...]:
        """Return the attempts of `key` that were handed out and left neither an ending nor a word."""
        seat = self.columns.seats.get(packed_key(key))
        return () if seat is None else tuple(self.columns.attempts.lost(seat))

    def losses(self) -> Iterator[tuple[RolloutKey, tuple[int, ...]]]:
        """Yield each rollout of which attempts were lost, and which."""
        for number, seat in self.columns.seats.items():
            if self.columns.attempts.open_attempt(seat) is not None:
                lost = tuple(self.columns.attempts.lost(seat))
                if lost:
                    yield unpacked_key(number), lost

    def is_planned(self, key: RolloutKey) -> bool:
        """Whether the plan holds `key`."""
        seat = self.columns.seats.get(packed_key(key))
        return seat is not None and bool(self.columns.flags[seat] & PLANNED)

    def standing(self, key: RolloutKey, rules: Rules = DEFAULT_RULES) -> Standing:
        """Return where `key` stands."""
        seat = self.columns.seats.get(packed_key(key))
        return Standing(key, Disposition.UNTOUCHED, None, planned=False) if seat is None else self._at(seat, key, rules)

    def standings(self, rules: Rules = DEFAULT_RULES) -> Iterator[Standing]:
        """Yield where every rollout stands that the plan or a record names, in the order in which they were named."""
        for number, seat in self.columns.seats.items():
            yield self._at(seat, unpacked_key(number), rules)

    def _at(self, seat: int, key: RolloutKey, rules: Rules) -> Standing:
        standing, planned = self._by_itself(seat, key, rules), bool(self.columns.flags[seat] & PLANNED)
        taken = rules.group_scored and planned and standing.disposition not in STAYS_OUT
        return replace(standing, with_task=True) if taken and self._is_broken(key.task, rules) else standing

    def _by_itself(self, seat: int, key: RolloutKey, rules: Rules) -> Standing:
        record = self.table.record(self.columns.row[seat], key) if self.columns.row[seat] != NO_ROW else None
        disposition = self._later(seat, disposition_of(record, self.columns.spent[seat], rules), rules)
        return Standing(key, disposition, record, bool(self.columns.flags[seat] & PLANNED))

    def _is_broken(self, task: int, rules: Rules) -> bool:
        """Whether `task`, whose repeats are scored together, has to run again whole."""

        def stands(number: int, seat: int) -> Disposition:
            if self.is_plainly_scored(seat):
                return Disposition.SCORED
            return self._by_itself(seat, unpacked_key(number), rules).disposition

        return is_broken(self.columns, task, stands, self._lost_later)

    def is_plainly_scored(self, seat: int) -> bool:
        """Whether a reward stands, and every attempt ended."""
        row, attempts = self.columns.row[seat], self.columns.attempts
        if row == NO_ROW or self.table.kinds[row] != SCORED_KIND or seat in attempts.handed_out.wide:
            return False
        return not attempts.handed_out.bits[seat] & ~attempts.ended.bits[seat]

    def _lost_later(self, seat: int) -> bool:
        """Whether an attempt after the one that stands was handed out and did not end."""
        attempt = self.columns.attempts.open_attempt(seat)
        return attempt is not None and self._is_latest(seat, attempt)

    def _later(self, seat: int, disposition: Disposition, rules: Rules) -> Disposition:
        """Return what `disposition`, by the rollout's records alone, is once attempts without an ending count."""
        open_attempt = self.columns.attempts.open_attempt(seat)
        if open_attempt is not None and self._is_latest(seat, open_attempt):
            alive = rules.live_session is not None and self.columns.attempts.session(seat) == rules.live_session
            last = open_attempt + 1 == self.columns.attempts.next_number(seat)
            if alive and last and not self.columns.attempts.was_cut(seat, open_attempt):
                return Disposition.IN_FLIGHT
            return Disposition.INTERRUPTED if disposition in _HIDDEN else disposition
        return self._unsent(disposition, rules)

    def _unsent(self, disposition: Disposition, rules: Rules) -> Disposition:
        """Return `disposition`, of a rollout that no attempt in flight speaks for, once the end of admission counts."""
        never_sent = disposition is Disposition.UNTOUCHED and self.stop_reason is not None
        return Disposition.NEVER_STARTED if never_sent and rules.live_session is None else disposition

    def _is_latest(self, seat: int, open_attempt: int) -> bool:
        row = self.columns.row[seat]
        if row == NO_ROW or isinstance(self.table.shape(row), NeverStarted | Evidence):
            return True
        return open_attempt > self.table.attempt(row)

    def owed_test(self, rules: Rules) -> Callable[[int], bool]:
        """Return a test of whether a rollout, by its packed key, is owed as the fold stands when it is asked."""
        seats, rows, kinds = self.columns.seats, self.columns.row, self.table.kinds
        handed_out, ended = self.columns.attempts.handed_out, self.columns.attempts.ended

        def is_owed(number: int) -> bool:
            seat = seats.get(number)
            if seat is None:
                return True
            row, all_ended = rows[seat], not handed_out.bits[seat] & ~ended.bits[seat]
            if row != NO_ROW and kinds[row] == SCORED_KIND and all_ended and seat not in handed_out.wide:
                return False
            return self._by_itself(seat, unpacked_key(number), rules).disposition in OWED

        return self._owed_together(rules, is_owed) if rules.group_scored else is_owed

    def _owed_together(self, rules: Rules, by_itself: Callable[[int], bool]) -> Callable[[int], bool]:
        """Return the test for tasks whose repeats are scored together; one that was found whole is not asked again."""
        whole: int | None = None

        def is_owed(number: int) -> bool:
            nonlocal whole
            task = number >> 32
            if task == whole:
                return False
            if by_itself(number):
                return True
            seat = self.columns.seats[number]
            if not self.columns.flags[seat] & PLANNED or self._in_flight(seat, number, rules):
                return False
            broken = self._is_broken(task, rules)
            whole = whole if broken else task
            return broken

        return is_owed

    def _in_flight(self, seat: int, number: int, rules: Rules) -> bool:
        return self._by_itself(seat, unpacked_key(number), rules).disposition is Disposition.IN_FLIGHT

    def largest_task(self) -> tuple[int, int] | None:
        """Return the task of which the plan holds most rollouts, and how many; None of an empty plan."""
        return largest_task(self.columns)

    def tasks(self) -> int:
        """Return how many tasks the plan or a record names."""
        return sum(1 for _ in groupby(number >> 32 for number, _ in self.in_order()))

    def in_order(self) -> InOrder:
        """Return every rollout that the plan or a record names, by task and repeat."""
        return InOrder(self.columns.seats)

    def __iter__(self) -> Iterator[Record]:
        """Yield the records that stand."""
        for number, seat in self.columns.seats.items():
            if self.columns.row[seat] != NO_ROW:
                yield self.table.record(self.columns.row[seat], unpacked_key(number))

    def lies_at(self, key: RolloutKey, place: Place) -> None:
        """Note where the record lies that stands of `key`, whose place was not known."""
        self.table.lies_at(self.columns.row[self.columns.seats[packed_key(key)]], place)

    def places(self, order: Iterable[tuple[int, int]]) -> Iterator[tuple[str | None, Place]]:
        """Yield (environment server, place) of each record that stands and of which it is known where it lies."""
        for _, seat in order:
            row = self.columns.row[seat]
            place = None if row == NO_ROW else self.table.place(row)
            if place is not None:
                yield self.table.server(row), place

    @property
    def kinds_of_ending(self) -> tuple[Outcome, ...]:
        """The kinds of ending by their numbers: outcomes without their rewards and texts."""
        return tuple(self.table.outcomes)

    def __len__(self) -> int:
        """Return how many rollouts the plan or a record names."""
        return len(self.columns.seats)

    @property
    def records(self) -> int:
        """How many records were folded."""
        return len(self.table)

    def coverage(self, planned: int | None = None, rules: Rules = DEFAULT_RULES) -> Coverage:
        """Count where the planned rollouts stand; without a plan in the fold, `planned` says how many there are."""
        groups, unplanned = self.counted(rules, of_plan_only=planned is None)
        return coverage_of(groups, planned, unplanned)

    def counted(self, rules: Rules = DEFAULT_RULES, *, of_plan_only: bool = True) -> tuple[tuple[GroupCount, ...], int]:
        """Count by agent and environment server; return the counts, and how many rollouts are in no plan."""
        groups = Groups(tuple(self.columns.names), self.table)
        seats = (
            self.columns.seats.get(packed(task, rollout)) for task, rollout, _ in rules.rerun_masked | rules.released
        )
        asked = {seat for seat in seats if seat is not None}
        nobody_approved = replace(rules, rerun_masked=frozenset(), released=frozenset())
        alike, others = alike_rollouts(self.columns, self.table, apart=asked, of_plan_only=of_plan_only)
        for one in alike:
            record = None if one.row == NO_ROW else self.table.record(one.row, _ANY)
            disposition = self._unsent(disposition_of(record, one.spent, nobody_approved), rules)
            group = groups.at(one.group, one.row, planned=one.planned)
            group.add(disposition, self.table, one.row, one.count, one.rewards)
        unplanned = 0
        for key, seat in others:
            if of_plan_only and not self.columns.flags[seat] & PLANNED:
                unplanned += 1
                continue
            standing, row = self._at(seat, unpacked_key(key), rules), self.columns.row[seat]
            reward = self.table.rewards[row] if standing.disposition is Disposition.SCORED else 0.0
            group = groups.at(self.columns.group[seat], row, planned=standing.planned)
            group.add(standing.disposition, self.table, row, 1, reward)
        count_disputed(self.doubles, self.columns, groups, of_plan_only=of_plan_only)
        if rules.group_scored:
            self._count_with_tasks(groups, rules)
        return groups.counts(), unplanned

    def _count_with_tasks(self, groups: Groups, rules: Rules) -> None:
        """Count what runs again because its task's repeats are scored together."""
        is_owed = self.owed_test(rules)
        for number, seat in self.columns.seats.items():
            if self.columns.flags[seat] & PLANNED and is_owed(number):
                disposition = self._by_itself(seat, unpacked_key(number), rules).disposition
                if disposition not in STAYS_OUT:
                    scored = disposition is Disposition.SCORED
                    reward = self.table.rewards[self.columns.row[seat]] if scored else 0.0
                    group = groups.at(self.columns.group[seat], self.columns.row[seat], planned=True)
                    group.add_with_task(disposition, reward)

    def attempts_handed_out(self) -> int:
        """Return how many attempt numbers were handed out."""
        return self.columns.attempts.total()


def _was_an_attempt(record: Record) -> bool:
    """Whether a row stands for an attempt: of a run without a name, rows without a result stand for none."""
    if record.run_id is None:
        return not isinstance(record.outcome, Omitted | Evidence)
    return not isinstance(record.outcome, NeverStarted)
