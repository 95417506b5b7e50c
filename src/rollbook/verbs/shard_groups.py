"""The results of several runs, by the environment server that produced them: what stands, and what was planned.

Rules:
* Of a rollout, the fold of its own run says what stands. Runs that number their tasks alike share nothing unless the
  same server ran them.
* Of a result only its place is kept, some fifteen bytes a rollout.
* What servers share of a plan that names none of them is nobody's own.
* What is in no plan, though there is one, is in no number: it is counted, and its rows are left out.
* A row without a server belongs to the one that ran its agent's other rows, where that is one.

Source: collection.md §6.2, §6.3, §21.4.25; cases RC-81, RC-82, RC-84; vector V18.
"""

from array import array
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, MutableSequence, Sequence
from dataclasses import dataclass, field
from heapq import merge
from itertools import pairwise, starmap
from operator import eq, le, lt
from pathlib import Path

from rollbook.ledger.paths import RunPaths
from rollbook.records.columns import PLANNED
from rollbook.records.disposition import Rules
from rollbook.records.outcome import Result
from rollbook.records.seats import Seats
from rollbook.records.standing import Standings
from rollbook.records.table import NO_ROW
from rollbook.verbs.light_rows import Serving, named_group


@dataclass(frozen=True, slots=True)
class Shard:
    """One run of several, folded."""

    paths: RunPaths
    standings: Standings
    rules: Rules
    is_inventory: bool = False
    """Whether it is the plan of all shards that have none of their own, and ran nothing."""
    is_damaged: bool = False
    """Whether its files cannot be believed."""

    @property
    def output(self) -> Path:
        """Where its results are."""
        return self.paths.output


@dataclass(slots=True)
class MetricsGroup:
    """The rollouts of one environment server, or of an agent whose server nobody knows (`is_served` is False).

    `keys` are the rollouts that have a result, in order; `shards` and `rows` say which shard each is of, and which row
    of that shard's table. `planned` are all that were planned, each once, in order; `unplanned` more left records and
    are in no plan. Where a task has a number of more than 32 bits, the group `is_wide`.
    """

    name: str
    is_served: bool
    is_wide: bool = False
    agents: set[str] = field(default_factory=set)
    keys: MutableSequence[int] = field(init=False)
    shards: "array[int]" = field(default_factory=lambda: array("H"))
    rows: "array[int]" = field(default_factory=lambda: array("I"))
    planned: MutableSequence[int] = field(init=False)
    unplanned: int = 0

    def __post_init__(self) -> None:
        self.keys, self.planned = self._held(()), self._held(())

    def _held(self, keys: Iterable[int]) -> MutableSequence[int]:
        return list(keys) if self.is_wide else array("Q", keys)

    def sort(self) -> None:
        """Put rollouts in order; of equal ones, those of an earlier shard come first."""
        if not all(map(le, self.keys, self.keys[1:])):
            order = sorted(range(len(self.keys)), key=self.keys.__getitem__)
            self.keep(order)
        if not all(map(lt, self.planned, self.planned[1:])):
            self.planned = self._held(_distinct(sorted(self.planned)))

    def keep(self, order: Sequence[int]) -> None:
        """Keep the results at these positions, in this order."""
        self.keys = self._held(map(self.keys.__getitem__, order))
        self.shards = array("H", map(self.shards.__getitem__, order))
        self.rows = array("I", map(self.rows.__getitem__, order))

    @property
    def has_overlap(self) -> bool:
        """Whether a rollout has two results."""
        return any(map(eq, self.keys, self.keys[1:]))


def groups_of(shards: Sequence[Shard], of_shards: Sequence[Serving]) -> tuple[MetricsGroup, ...]:
    """Return the results of `shards` by server, sorted; `of_shards` say which server a row of each belongs to."""
    groups: dict[str, MetricsGroup] = {}
    is_wide = any(not isinstance(shard.standings.columns.seats.keys, array) for shard in shards)
    inventory = next((shard.standings.columns.seats for shard in shards if shard.is_inventory), None)
    for number, serving in enumerate(of_shards):
        _add(_Adding(groups, shards[number].standings, serving, inventory, is_wide=is_wide), number)
    for group in groups.values():
        group.sort()
    return tuple(group for _, group in sorted(groups.items()))


def servings(shards: Sequence[Shard], serving: Serving | None) -> list[Serving]:
    """Return for each shard what says whose a row is: the server that it names, the configured one, or its kin's."""
    of_shards = [_servers_by_agent([shard]) for shard in shards]
    of_all = _servers_by_agent(shards)

    def serving_in(own: dict[str, set[str]]) -> Serving:
        def found(agent: str | None, server: str | None) -> str | None:
            if server is not None or agent is None:
                return server
            known = serving(agent, None) if serving is not None else None
            return known or _only(own.get(agent)) or _only(of_all.get(agent))

        return found

    return [serving_in(own) for own in of_shards]


def _servers_by_agent(shards: Iterable[Shard]) -> dict[str, set[str]]:
    servers: defaultdict[str, set[str]] = defaultdict(set)
    for shard in shards:
        named = [
            *shard.standings.columns.names,
            *((agent, server) for _, agent, server in shard.standings.table.sources),
        ]
        for agent, server in named:
            if agent is not None and server is not None:
                servers[agent].add(server)
    return dict(servers)


def _only(servers: set[str] | None) -> str | None:
    return next(iter(servers)) if servers is not None and len(servers) == 1 else None


class _Adding:
    """Whose the rollouts of one shard are, and which of them were planned."""

    def __init__(
        self,
        groups: dict[str, MetricsGroup],
        standings: Standings,
        serving: Serving,
        inventory: Seats | None,
        *,
        is_wide: bool,
    ) -> None:
        self.standings = standings
        self.has_plan = any(standings.columns.flags)
        self.inventory = inventory
        columns, table = standings.columns, standings.table

        def group_for(agent: str | None, server: str | None) -> MetricsGroup:
            name, is_served = named_group(serving, agent, server)
            return groups.setdefault(name, MetricsGroup(name, is_served, is_wide))

        self.of_source = _Looked(lambda number: group_for(*table.sources[number][1:]))
        self.of_plan = _Looked(lambda number: group_for(*columns.names[number]))

    @property
    def every_is_planned(self) -> bool:
        """Whether there is no plan, so that what was recorded is all that is known to have been planned."""
        return not self.has_plan and self.inventory is None

    @property
    def is_inventory_asked(self) -> bool:
        """Whether the plan of all shards says what was planned of this one."""
        return self.inventory is not None and not self.has_plan

    def tell(self, origin: int) -> None:
        """Note whose results a source of the shard left."""
        agent = self.standings.table.sources[origin][1]
        if agent is not None:
            self.of_source[origin].agents.add(agent)

    def is_in_inventory(self, key: int) -> bool:
        """Whether a rollout is in the plan of all shards."""
        return self.inventory is not None and self.inventory.get(key) is not None


def _add(adding: _Adding, shard: int) -> None:
    if _add_alike(adding, shard):
        return
    columns, table = adding.standings.columns, adding.standings.table
    of_source, of_plan, every_is_planned = adding.of_source, adding.of_plan, adding.every_is_planned
    results = [isinstance(kind, Result) for kind in adding.standings.kinds_of_ending]
    rows, kinds, origins, planned_for, has_plan = (
        columns.row,
        table.kinds,
        table.origins,
        columns.group,
        adding.has_plan,
    )
    flags = columns.flags
    told: set[int] = set()
    for key, seat in adding.standings.in_order():
        row = rows[seat]
        is_result = row != NO_ROW and results[kinds[row]]
        group = of_source[origins[row]] if is_result or (row != NO_ROW and not has_plan) else of_plan[planned_for[seat]]
        is_planned = every_is_planned or (has_plan and flags[seat] & PLANNED) or adding.is_in_inventory(key)
        if not is_planned:
            group.unplanned += 1
            continue
        group.planned.append(key)
        if is_result:
            group.keys.append(key)
            group.shards.append(shard)
            group.rows.append(row)
            told.add(origins[row])
    for origin in told:
        adding.tell(origin)


def _add_alike(adding: _Adding, shard: int) -> bool:
    """Add a shard of which every rollout is planned and has a result of one source; do nothing of others: False."""
    columns, table = adding.standings.columns, adding.standings.table
    keys, rows, flags = columns.seats.keys, columns.row, columns.flags
    is_planned = not adding.is_inventory_asked and set(flags) in ({0}, {PLANNED})
    if not (is_planned and columns.seats.all_rise and rows and min(rows) >= 0):
        return False
    origins = set(map(table.origins.__getitem__, rows))
    kinds = adding.standings.kinds_of_ending
    if len(origins) > 1 or not all(isinstance(kinds[one], Result) for one in set(map(table.kinds.__getitem__, rows))):
        return False
    (origin,) = origins
    group = adding.of_source[origin]
    group.planned.extend(keys)
    group.keys.extend(keys)
    group.shards.extend(array("H", [shard]) * len(rows))
    group.rows.extend(array("I", rows.tobytes()))
    adding.tell(origin)
    return True


def sharing(groups: Sequence[MetricsGroup]) -> tuple[tuple[MetricsGroup, ...], ...]:
    """Return the groups, those together that share a plan, sorted by the name of the first of each.

    Where a plan names an agent alone and several servers have its results, whose the rest of it is nobody knows: what
    is planned is the agent's, which stands first.
    """
    apart: dict[str, tuple[MetricsGroup, ...]] = {group.name: (group,) for group in groups}
    for agent in groups:
        together = [group for group in groups if group.is_served and group.agents == {agent.name}]
        if not agent.is_served and together and _are_distinct(agent, *together):
            for group in together:
                del apart[group.name]
            apart[agent.name] = (agent, *together)
    return tuple(of for _, of in sorted(apart.items()))


def without_plan(shards: Sequence[Shard]) -> tuple[Path, ...]:
    """Return the runs of which nothing says what was planned."""
    if any(shard.is_inventory for shard in shards):
        return ()
    return tuple(shard.output for shard in shards if not any(shard.standings.columns.flags))


def number_alike(groups: Sequence[MetricsGroup]) -> bool:
    """Whether two groups have a result of one task and repeat, which are then two rollouts of one number."""
    return len(groups) > 1 and any(starmap(eq, pairwise(merge(*(group.keys for group in groups)))))


def _are_distinct(*groups: MetricsGroup) -> bool:
    """Whether no rollout is planned for two of the groups."""
    return all(starmap(lt, pairwise(merge(*(group.planned for group in groups)))))


class _Looked(dict[int, MetricsGroup]):
    """Groups by number, each looked up once."""

    def __init__(self, look_up: Callable[[int], MetricsGroup]) -> None:
        super().__init__()
        self._look_up = look_up

    def __missing__(self, number: int) -> MetricsGroup:
        found = self[number] = self._look_up(number)
        return found


def _distinct(ordered: Iterable[int]) -> Iterator[int]:
    before = -1
    for key in ordered:
        if key != before:
            yield key
        before = key


def planned_by_task(group: MetricsGroup) -> Callable[[int], int | None]:
    """Return what says how many rollouts of a task were planned; tasks are asked for in order."""
    keys, at = group.planned, 0

    def of_task(task: int) -> int | None:
        nonlocal at
        first, after = task << 32, task + 1 << 32
        while at < len(keys) and keys[at] < first:
            at += 1
        start = at
        while at < len(keys) and keys[at] < after:
            at += 1
        return at - start or None

    return of_task


def of_group(group: MetricsGroup) -> Iterator[tuple[int, int, int]]:
    """Yield (packed key, shard, row of its table) of each result."""
    return zip(group.keys, group.shards, group.rows, strict=True)
