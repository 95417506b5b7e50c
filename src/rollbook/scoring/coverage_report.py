"""The coverage report: what became of every planned rollout, for programs.

Rules:
* The law: expected = scored + masked + unscored + failed + missing, each rollout in one of them. What counts as zero
  is a part of failed and missing, never a class of its own.
* Groups and tasks are told in the same words as the run. Of tasks only those are listed that are not scored
  throughout, up to `TASKS_LISTED`; how many more there are is said.
* Counts come from records and standings over all sessions, never from one session's events.

Source: collection.md §1.12, §5.4.3, §6.6, §21.1.28; case RC-71.
"""

from collections import Counter
from collections.abc import Iterator
from itertools import groupby
from typing import Final

import msgspec

from rollbook.records.columns import PLANNED, unpacked_key
from rollbook.records.coverage import FAILED_DISPOSITIONS, Coverage, covered
from rollbook.records.disposition import Disposition, Rules
from rollbook.records.group_count import GroupCount, coverage_of
from rollbook.records.json_values import JsonObject
from rollbook.records.outcome import Failed, Result
from rollbook.records.standing import Standings
from rollbook.records.table import NO_ROW, SCORED_KIND
from rollbook.scoring.coverage_text import MetricsCoverage
from rollbook.scoring.imputation import AS_MISSING, Counting, added

TASKS_LISTED: Final = 1000
SCHEMA_VERSION: Final = 1

_Name = tuple[str | None, str | None]


class Retries(msgspec.Struct, frozen=True):
    """What trying again came to, over all sessions.

    `attempts` that failed, `rollouts_retried` that were dispatched more than once, and `at_cap`: without a result, and
    with every attempt used that `max_attempts` gives them.
    """

    attempts: int
    rollouts_retried: int
    at_cap: int
    max_attempts: int

    def metrics(self) -> dict[str, int]:
        """Return the exported `retries/*` numbers."""
        return {
            "retries/attempts": self.attempts,
            "retries/rollouts_retried": self.rollouts_retried,
            "retries/at_cap": self.at_cap,
            "retries/max_attempts": self.max_attempts,
        }


class ScoreShare(msgspec.Struct, frozen=True):
    """What of a plan is in a mean, and what of the rest left a result.

    `scored` rollouts are in the mean by their own rewards, `imputed` ones count as zero by choice; `masked` and
    `unscored` ones have a result that is not in it. Of `disputed` ones, which are counted among the others, an attempt
    has results that differ.
    """

    expected: int
    scored: int
    masked: int = 0
    unscored: int = 0
    imputed: int = 0
    disputed: int = 0

    @property
    def is_whole(self) -> bool:
        """Whether the whole plan is in the mean, by its own rewards, and none of them is disputed."""
        return self.scored >= self.expected and not self.imputed and not self.disputed

    def metrics(self) -> dict[str, int]:
        """Return the `coverage/*` numbers: expected = scored + masked + unscored + imputed + missing."""
        missing = self.expected - self.scored - self.masked - self.unscored - self.imputed
        others = {"masked": self.masked, "unscored": self.unscored, "imputed": self.imputed}
        others["disputed"] = self.disputed
        return {
            "coverage/expected": self.expected,
            "coverage/scored": self.scored,
            "coverage/missing": max(missing, 0),
        } | {f"coverage/{name}": count for name, count in others.items() if count}


class CoverageReport(msgspec.Struct, frozen=True):
    """Coverage of a run, of each (agent, server) and of the tasks that are not scored throughout.

    `counted` says how many rollouts count as zero, by why. `unlisted` tasks are not scored throughout either.
    """

    coverage: Coverage
    groups: tuple[GroupCount, ...]
    counting: Counting
    counted: Counter[str]
    counted_by_group: dict[_Name, int]
    retries: Retries
    tasks: tuple[tuple[int, Coverage], ...]
    unlisted: int

    def to_json(self) -> JsonObject:
        """Return the report as it is saved."""
        return {
            "schema_version": SCHEMA_VERSION,
            **counts(self.coverage, sum(self.counted.values())),
            "imputed_by": {why: self.counted[why] for why in sorted(self.counted)},
            "retries": {name.removeprefix("retries/"): number for name, number in self.retries.metrics().items()},
            "groups": [self._group(group) for group in self.groups],
            "tasks": [{"task": task, **counts(coverage)} for task, coverage in self.tasks],
            "tasks_not_listed": self.unlisted,
        }

    def metrics(self) -> dict[str, int]:
        """Return the exported `coverage/*` and `retries/*` numbers.

        `coverage/imputed` is there also where missing rollouts would count as zero and there is none.
        """
        of, imputed = self.coverage, sum(self.counted.values())
        share = ScoreShare(of.planned, of.scored, of.masked, of.unscored, imputed, of.disputed).metrics()
        chosen = {"coverage/imputed": imputed} if self.counting.missing else {}
        failed = {f"coverage/failed/{name}": count for name, count in of.failed_by_class.items()}
        return share | chosen | failed | self.retries.metrics()

    def told(self, failures_file: str) -> MetricsCoverage:
        """Return what the metrics cover, as the field reports it; failures are those of all sessions."""
        scored = self.coverage.scored + sum(self.counted.values())
        missing = self.counted[AS_MISSING]
        return MetricsCoverage(self.coverage.planned, scored, missing, self.coverage.failed_by_class, failures_file)

    def _group(self, group: GroupCount) -> JsonObject:
        imputed = self.counted_by_group.get((group.agent, group.server), 0)
        return {"agent": group.agent, "server": group.server, **counts(group.coverage, imputed)}


def counts(coverage: Coverage, imputed: int = 0) -> JsonObject:
    """Return how many rollouts stand where, as the saved report says it.

    `exhausted`, `terminal`, `stopped` and `retryable` are parts of failed and missing; `stopped` are held for a
    decision. `unplanned` ones left records and are in no plan: they are in no other number. Of `disputed` ones, which
    stand among the others, one attempt has several results that differ.
    """
    return {
        "expected": coverage.planned,
        "scored": coverage.scored,
        "masked": coverage.masked,
        "unscored": coverage.unscored,
        "unplanned": coverage.unplanned,
        "disputed": coverage.disputed,
        "failed": dict(coverage.failed_by_class),
        "missing": coverage.missing,
        "exhausted": coverage.exhausted,
        "terminal": coverage.settled,
        "final_zeros": coverage.final_zeros,
        "stopped": coverage.held + coverage.held_interrupted,
        "retryable": coverage.retryable,
        "interrupted": coverage.interrupted,
        "never_started": coverage.never_started,
        "in_flight": coverage.in_flight,
        "untouched": coverage.untouched,
        "imputed": imputed,
    }


def coverage_report(standings: Standings, counting: Counting, rules: Rules) -> CoverageReport:
    """Return what became of every planned rollout; where the fold holds no plan, of every one that a record names."""
    groups, unplanned = standings.counted(rules, of_plan_only=any(standings.columns.flags))
    counted: Counter[str] = Counter()
    by_group: Counter[_Name] = Counter()
    for one in added(standings, counting, rules):
        counted[one.why] += 1
        by_group[one.agent, one.server] += 1
    coverage = coverage_of(groups, unplanned=unplanned)
    tasks, unlisted = ((), 0) if coverage.scored == coverage.planned else _tasks(standings, rules)
    return CoverageReport(coverage, groups, counting, counted, by_group, _retries(standings, rules), tasks, unlisted)


def _tasks(standings: Standings, rules: Rules) -> tuple[tuple[tuple[int, Coverage], ...], int]:
    """Return the first tasks of which not every planned rollout is scored, and how many more there are."""
    listed: list[tuple[int, Coverage]] = []
    unlisted = 0
    for task, seats in groupby(_planned(standings), lambda of: of[0] >> 32):
        here = tuple(seats)
        if all(_is_scored(standings, seat) for _, seat in here):
            continue
        if len(listed) == TASKS_LISTED:
            unlisted += 1
        else:
            listed.append((task, _coverage(standings, [number for number, _ in here], rules)))
    return tuple(listed), unlisted


def _planned(standings: Standings) -> Iterator[tuple[int, int]]:
    flags = standings.columns.flags
    every = not any(flags)
    return ((number, seat) for number, seat in standings.in_order() if every or flags[seat] & PLANNED)


def _is_scored(standings: Standings, seat: int) -> bool:
    row = standings.columns.row[seat]
    return row != NO_ROW and standings.table.kinds[row] == SCORED_KIND


def _coverage(standings: Standings, numbers: list[int], rules: Rules) -> Coverage:
    dispositions: Counter[Disposition] = Counter()
    classes: Counter[str] = Counter()
    final_zeros = 0
    for number in numbers:
        standing = standings.standing(unpacked_key(number), rules)
        dispositions[standing.disposition] += 1
        outcome = None if standing.record is None else standing.record.outcome
        if standing.disposition in FAILED_DISPOSITIONS and isinstance(outcome, Failed):
            classes[outcome.failure_class] += 1
            final_zeros += standing.disposition is Disposition.SETTLED and outcome.counts_as_zero
    disputed = sum(standings.columns.seats.get(number) in standings.doubles.disputed for number in numbers)
    return covered(dispositions, classes, None, 0, final_zeros=final_zeros, disputed=disputed)


def _retries(standings: Standings, rules: Rules) -> Retries:
    columns, table, kinds = standings.columns, standings.table, standings.kinds_of_ending
    failed = {number for number, kind in enumerate(kinds) if isinstance(kind, Failed)}
    results = {number for number, kind in enumerate(kinds) if isinstance(kind, Result)}
    at_cap = (
        columns.row[seat] == NO_ROW or table.kinds[columns.row[seat]] not in results
        for seat, spent in enumerate(columns.spent)
        if spent >= rules.cap
    )
    attempts = sum(count for kind, count in Counter(table.kinds).items() if kind in failed)
    return Retries(attempts, columns.attempts.repeated(), sum(at_cap), rules.cap)
