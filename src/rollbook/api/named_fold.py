"""The fold under the names that people and launchers use: rollouts by logical id, attempts by (id, number).

Rules:
* Each answer is asked of the fold when it is wanted; what the plan or a record does not name is nobody.

Source: collection.md §5.4.1.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from rollbook.api.rollout_views import Counts, Members, View, is_an_ending, is_omitted
from rollbook.errors import InputError
from rollbook.ledger.plan_rows import PlanRows
from rollbook.records.disposition import Rules
from rollbook.records.identity import RolloutKey
from rollbook.records.json_values import JsonObject
from rollbook.records.record import Record
from rollbook.records.standing import Standing, Standings, supersedes

AttemptId = tuple[str, int]
"""Logical rollout id, attempt."""


@dataclass(frozen=True, slots=True)
class NamedFold:
    """A fold, the plan that names its rollouts, and the rules that hold when it is asked."""

    fold: Standings
    plan: PlanRows
    rules: Callable[[], Rules]

    def standings(self, rules: Rules | None = None) -> Iterator[Standing]:
        """Yield where every rollout stands, in plan order."""
        return self.fold.standings(rules or self.rules())

    def known(self, name: object) -> RolloutKey | None:
        """Return the rollout that `name` names, if the plan or a record does too."""
        key = self.plan.key_of(name) if isinstance(name, str) else None
        if key is None or not (self.fold.is_planned(key) or self.fold.records_of(key)):
            return None
        return key

    def key(self, name: str) -> RolloutKey:
        """Return the rollout that `name` names.

        Raises:
            InputError: neither the plan nor a record names it.

        """
        key = self.known(name)
        if key is None:
            raise InputError(f"the run has no rollout {name!r}")
        return key

    def planned(self) -> View[str, JsonObject]:
        """Return the planned rows by rollout."""

        def row(name: object) -> JsonObject | None:
            key = self.known(name)
            return self.plan.row(key) if key is not None and self.fold.is_planned(key) else None

        return View(lambda: (self.plan.name_of(one.key) for one in self.standings() if one.planned), row)

    def by_rollout(self, value_of: Callable[[Standing], int | None]) -> View[str, int]:
        """Return a number by rollout, for those that have one."""

        def find(name: object) -> int | None:
            key = self.known(name)
            return None if key is None else value_of(self.fold.standing(key, self.rules()))

        return View(lambda: self._names(lambda one: value_of(one) is not None), find)

    def counts(self, count: Callable[[RolloutKey], int]) -> Counts:
        """Return a count by rollout."""

        def find(name: object) -> int:
            key = self.known(name)
            return 0 if key is None else count(key)

        return Counts(lambda: self._names(lambda one: count(one.key) > 0), find)

    def where(self, holds: Callable[[Standing], bool]) -> Members[str]:
        """Return the rollouts of which `holds` is true."""

        def has(name: object) -> bool:
            key = self.known(name)
            return key is not None and holds(self.fold.standing(key, self.rules()))

        return Members(lambda: self._names(holds), has)

    def omitted(self) -> Members[AttemptId]:
        """Return the attempts of which a row says that no result exists."""
        return Members(
            lambda: self._attempts(is_omitted),
            lambda value: any(is_omitted(record) for record in self._records(value)),
        )

    def ended(self) -> Iterator[AttemptId]:
        """Yield the attempts that ended."""
        return self._attempts(is_an_ending)

    def ending(self, attempt_id: object) -> Record | None:
        """Return how an attempt ended; of several rows about it, the one that stands."""
        stands: Record | None = None
        for record in self._records(attempt_id):
            if is_an_ending(record) and supersedes(record, stands):
                stands = record
        return stands

    def _names(self, holds: Callable[[Standing], bool]) -> Iterator[str]:
        return (self.plan.name_of(one.key) for one in self.standings() if holds(one))

    def _attempts(self, counts: Callable[[Record], bool]) -> Iterator[AttemptId]:
        for one in self.standings():
            attempts = dict.fromkeys(each.attempt for each in self.fold.records_of(one.key) if counts(each))
            name = self.plan.name_of(one.key) if attempts else ""
            yield from ((name, attempt) for attempt in attempts)

    def _records(self, attempt_id: object) -> Iterator[Record]:
        """Yield the records of one attempt; of what is no attempt there are none."""
        match attempt_id:
            case (str() as name, int() as attempt) if (key := self.known(name)) is not None:
                return (record for record in self.fold.records_of(key) if record.attempt == attempt)
            case _:
                return iter(())
