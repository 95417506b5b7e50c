"""How many rollouts of one agent and environment server stand where.

Rules:
* Counts and sums alone: nothing here follows the number of rollouts.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from rollbook.records.coverage import FAILED_DISPOSITIONS, Coverage, covered
from rollbook.records.disposition import Disposition
from rollbook.records.outcome import Failed, Outcome
from rollbook.records.table import NO_ROW, RecordTable


class GroupCount(msgspec.Struct):
    """The counts of one group. `server` is the stamped one, else the one that its records name: see `Groups`.

    `with_task` counts, by where they stand, rollouts that run again for the sake of their task alone; the rewards that
    they have add up to `rewards_with_task`. `zeros` are the failures that their producer marks as a score of 0,
    `final_zeros` those of them that are settled. Of `disputed` rollouts one attempt has results that differ.
    """

    agent: str | None
    server: str | None
    dispositions: Counter[Disposition] = msgspec.field(default_factory=Counter)
    classes: Counter[str] = msgspec.field(default_factory=Counter)
    kinds: Counter[str] = msgspec.field(default_factory=Counter)
    rewards: float = 0.0
    zeros: int = 0
    final_zeros: int = 0
    with_task: Counter[Disposition] = msgspec.field(default_factory=Counter)
    rewards_with_task: float = 0.0
    disputed: int = 0

    def add(self, disposition: Disposition, table: RecordTable, row: int, count: int, rewards: float) -> None:
        """Count `count` rollouts that stand as `row` of `table` does, with the sum of their `rewards`."""
        self.dispositions[disposition] += count
        if row == NO_ROW:
            return
        if disposition is Disposition.SCORED:
            self.rewards += rewards
        elif disposition in FAILED_DISPOSITIONS:
            self._add_failures(disposition, table.shape(row), count)

    def _add_failures(self, disposition: Disposition, failed: Outcome, count: int) -> None:
        if isinstance(failed, Failed):
            self.classes[failed.failure_class] += count
            self.kinds[failed.kind or failed.failure_class] += count
            if failed.counts_as_zero:
                self.zeros += count
                self.final_zeros += count if disposition is Disposition.SETTLED else 0

    def take(self, other: "GroupCount") -> None:
        """Count what `other` counted."""
        for mine, its in zip(self.counters(), other.counters(), strict=True):
            mine.update(its)
        self.rewards += other.rewards
        self.zeros += other.zeros
        self.final_zeros += other.final_zeros
        self.rewards_with_task += other.rewards_with_task
        self.disputed += other.disputed

    def counters(self) -> tuple[Counter[Any], ...]:
        """Return what is counted by name."""
        return self.dispositions, self.classes, self.kinds, self.with_task

    def add_with_task(self, disposition: Disposition, reward: float) -> None:
        """Count a rollout that was counted where it stands and runs again with its task."""
        self.with_task[disposition] += 1
        self.rewards_with_task += reward

    @property
    def coverage(self) -> Coverage:
        """Where the group's planned rollouts stand."""
        named = {"final_zeros": self.final_zeros, "disputed": self.disputed}
        return covered(self.dispositions, self.classes, None, 0, self.with_task, **named)

    @property
    def mean_reward(self) -> float | None:
        """The mean of the rewards that count, and of marked zeros; None where there is none."""
        measured = self.dispositions[Disposition.SCORED] + self.zeros
        return self.rewards / measured if measured else None


class Groups:
    """The counts of a run by agent and server: the plan's word goes first, then that of the record that stands.

    A rollout of which neither names a server belongs to the one that its agent's other rollouts name, if that is one.
    """

    def __init__(self, names: Sequence[tuple[str | None, str | None]], table: RecordTable) -> None:
        self._names = names
        self._table = table
        self._found: dict[tuple[int, str | None, str | None], GroupCount] = {}

    def at(self, group: int, row: int, *, planned: bool) -> GroupCount:
        """Return the counts that a rollout of the plan's `group` (of none unless `planned`) belongs to."""
        agent, server = self._names[group]
        if row != NO_ROW and (server is None or not planned):
            _, its_agent, its_server = self._table.sources[self._table.origins[row]]
            agent, server = agent if planned else its_agent, server or its_server
        key = (group, agent, server)
        found = self._found.get(key)
        if found is None:
            found = self._found[key] = GroupCount(agent, server)
        return found

    def counts(self) -> tuple[GroupCount, ...]:
        """Return the counts of every group that has any, those of a plan's group together."""
        servers: dict[tuple[int, str | None], set[str]] = {}
        for group, agent, server in self._found:
            servers.setdefault((group, agent), set()).update(() if server is None else (server,))
        for (group, agent), named in servers.items():
            unserved = self._found.get((group, agent, None))
            if unserved is not None and len(named) == 1:
                [server] = named
                self._found[group, agent, server].take(unserved)
                del self._found[group, agent, None]
        return tuple(count for key, count in sorted(self._found.items(), key=_in_order) if count.dispositions)


def _in_order(found: tuple[tuple[int, str | None, str | None], GroupCount]) -> tuple[int, str, str]:
    (group, agent, server), _ = found
    return group, agent or "", server or ""


def coverage_of(groups: Iterable[GroupCount], planned: int | None = None, unplanned: int = 0) -> Coverage:
    """Return where the rollouts of all `groups` stand, together with `unplanned` ones."""
    counts: Counter[Disposition] = Counter()
    classes: Counter[str] = Counter()
    with_task: Counter[Disposition] = Counter()
    final_zeros = disputed = 0
    for group in groups:
        counts.update(group.dispositions)
        classes.update(group.classes)
        with_task.update(group.with_task)
        final_zeros += group.final_zeros
        disputed += group.disputed
    return covered(counts, classes, planned, unplanned, with_task, final_zeros=final_zeros, disputed=disputed)
