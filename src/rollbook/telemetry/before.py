"""What a session goes on from, as far as counting needs it.

Rules:
* Taken once, before anything is sent; where each rollout stands is asked of the one fold.
* What is scored and not owed is added up; only what may change is listed, for a run may have a million rollouts.

Source: collection.md §6.6, §21.28.
"""

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from rollbook.records.columns import unpacked_key
from rollbook.records.disposition import DEFAULT_CAP, DEFAULT_RULES, Disposition, Rules
from rollbook.records.group_count import GroupCount
from rollbook.records.identity import RolloutKey
from rollbook.records.outcome import Failed, Interrupted, NeverStarted, Outcome
from rollbook.records.standing import Standing, Standings
from rollbook.records.table import NO_ROW, SCORED_KIND
from rollbook.telemetry.stand import UNSENT, Scores, Stand, dispatch_name, reward_of


class Before(msgspec.Struct, frozen=True):
    """The plan by dispatch name, what stands of it, and what it took; `cap`: failures that a rollout may have.

    `scored` adds up what is scored and not owed; `stood` lists how every other rollout stands that was touched.
    """

    planned: Mapping[str, int] = msgspec.field(default_factory=dict)
    scored: Mapping[str | None, Scores] = msgspec.field(default_factory=dict)
    stood: Iterable[tuple[RolloutKey, Stand]] = ()
    failed_attempts: int = 0
    retried: int = 0
    cap: int = DEFAULT_CAP


NOTHING_BEFORE: Final = Before()


def before(standings: Standings, groups: Iterable[GroupCount], rules: Rules = DEFAULT_RULES) -> Before:
    """Return what `standings` hold when a session begins; `groups` are their counts by agent and server."""
    planned: dict[str, int] = {}
    for group in groups:
        name = dispatch_name(group.agent, group.server)
        if name is not None:
            planned[name] = planned.get(name, 0) + group.coverage.planned
    if not standings.records and not standings.attempts_handed_out():
        return Before(planned, cap=rules.cap)
    walk = _Walk(standings, rules)
    return Before(planned, walk.scored, walk.stood, _failed_attempts(standings), _retried(standings), rules.cap)


def _failed_attempts(standings: Standings) -> int:
    failed = {number for number, kind in enumerate(standings.kinds_of_ending) if isinstance(kind, Failed)}
    return sum(kind in failed for kind in standings.table.kinds)


def _retried(standings: Standings) -> int:
    """Return how many rollouts were handed a second attempt."""
    attempts = standings.columns.attempts
    return sum(attempts.next_number(seat) > 1 for seat in range(len(standings)))


class _Walk:
    """One walk over all rollouts, most of which are scored or were not touched."""

    def __init__(self, standings: Standings, rules: Rules) -> None:
        self.scored: dict[str | None, Scores] = {}
        self.stood: list[tuple[RolloutKey, Stand]] = []
        names = [dispatch_name(agent, server) for _, agent, server in standings.table.sources]
        columns, table, is_owed = standings.columns, standings.table, standings.owed_test(rules)
        for (number, seat), row in zip(columns.seats.items(), columns.row, strict=True):
            if row == NO_ROW and not columns.attempts.handed_out.of(seat):
                continue
            if row != NO_ROW and table.kinds[row] == SCORED_KIND and not is_owed(number):
                self._add_up(names[table.origins[row]], table.rewards[row])
            else:
                self._list(standings, standings.standing(unpacked_key(number), rules))

    def _add_up(self, name: str | None, reward: float) -> None:
        scores = self.scored.setdefault(name, Scores())
        scores.count += 1
        scores.rewards += reward

    def _list(self, standings: Standings, standing: Standing) -> None:
        kind = _kind(standing)
        if kind is not None:
            self.stood.append((standing.key, _stand(standing, kind, standings.spent(standing.key))))


def _kind(standing: Standing) -> type[Outcome] | None:
    """Return how a rollout stands, None where nothing moved it: an attempt that was lost hides an older failure."""
    if standing.disposition in (Disposition.INTERRUPTED, Disposition.HELD_INTERRUPTED):
        return Interrupted
    return None if standing.record is None else type(standing.record.outcome)


def _stand(standing: Standing, kind: type[Outcome], spent: int) -> Stand:
    record, finished = standing.record, not standing.is_owed
    if record is None:
        return Stand(kind, None, spent=spent, finished=finished)
    name, outcome = dispatch_name(record.agent, record.server), record.outcome
    if kind is NeverStarted:
        return UNSENT
    if kind is not type(outcome):
        return Stand(kind, name, spent=spent, finished=finished)
    failure_class = outcome.failure_class if isinstance(outcome, Failed) else None
    return Stand(kind, name, failure_class, reward_of(outcome), spent, finished)
