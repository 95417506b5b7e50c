"""Results of several runs, folded: what stands of each, in order, for metrics, merged rows and counts.

Rules:
* What stands of each rollout is asked of its own run's fold; shards are read and never written.
* A file that holds no rollout is passed over, and told; a line that cannot be read is told with its place.
* Memory follows the number of rollouts, at some hundred bytes each, and not what their rows hold.

Source: collection.md §6.2, §6.3, §10.4; cases RC-77, RC-81, RC-82, RC-84; vectors V18, V19.
"""

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from heapq import merge
from itertools import chain, groupby
from pathlib import Path
from typing import Final, Self

import msgspec
from msgspec.structs import replace

from rollbook.errors import ConfigPathNotFoundError, NoRunError
from rollbook.ledger.contradictions import told_of_doubles
from rollbook.ledger.paths import RunPaths
from rollbook.ledger.reader import plain_blocks
from rollbook.records.blocks import fold_plan_blocks
from rollbook.records.coverage import Coverage
from rollbook.records.disposition import DEFAULT_RULES
from rollbook.records.json_values import JsonObject
from rollbook.records.keys import AGENT_REF_KEY, NG_ENVIRONMENT_SERVER_KEY
from rollbook.records.standing import Standings
from rollbook.scoring.imputation import Counting
from rollbook.scoring.streamed import Expected
from rollbook.verbs.aggregate import with_share
from rollbook.verbs.light_rows import BodyFile, BodyWriter, Serving, labels, light_row
from rollbook.verbs.merged_run import Merged, write_merged
from rollbook.verbs.metrics_file import LOCALLY_KEY, NOTE_KEY, LocalEntry, some_at_a_time
from rollbook.verbs.metrics_halves import Cut
from rollbook.verbs.placed_rows import PlacedRows
from rollbook.verbs.result_counts import counted_at, share_of
from rollbook.verbs.shard_coverage import GroupReport, coverages, group_headline, summed
from rollbook.verbs.shard_groups import MetricsGroup, Shard, groups_of, planned_by_task, servings, sharing
from rollbook.verbs.shard_overlap import settle_overlaps
from rollbook.verbs.shard_zeros import ShardZeros, ZeroAt
from rollbook.verbs.status import read_run

_DAMAGES_TOLD: Final = 20
_AT_ONCE: Final = 512
_WORTH_A_PROCESS: Final = 1 << 15
_TAUGHT_BY: Final = 16
_TOP: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])


@dataclass(frozen=True, slots=True)
class ReadShards:
    """The shards that hold rollouts, and what is to be told of the others and of lines that cannot be read."""

    shards: tuple[Shard, ...]
    notes: tuple[str, ...]

    @property
    def damaged(self) -> tuple[Path, ...]:
        """The outputs whose files cannot be believed."""
        return tuple(shard.output for shard in self.shards if shard.is_damaged)

    @property
    def have_records(self) -> bool:
        """Whether anything was recorded, so that there may be something to score or to count."""
        return any(shard.standings.records for shard in self.shards)


def read_shards(
    outputs: Sequence[Path], inventory: Path | None = None, *, retry_terminal_timeouts: bool = False
) -> ReadShards:
    """Fold every run, and the plan of all of them where `inventory` names it.

    Raises:
        ConfigPathNotFoundError: none of them holds a rollout, or there is no such inventory.

    """
    shards: list[Shard] = []
    notes: list[str] = []
    for output in outputs:
        try:
            reading = read_run(output, with_tokens=False)
        except NoRunError:
            notes.append(f"{output} holds no rollout, and is passed over")
            continue
        rules = replace(reading.rules, retry_terminal_timeouts=True) if retry_terminal_timeouts else reading.rules
        faults = reading.faults
        shards.append(Shard(reading.paths, reading.history.standings, rules, is_damaged=bool(faults)))
        notes += [f"{fault.place}: {fault.what}" for fault in faults[:_DAMAGES_TOLD]]
        if len(faults) > _DAMAGES_TOLD:
            notes.append(f"{output}: {len(faults) - _DAMAGES_TOLD} more places are damaged; see gym eval status")
        notes += told_of_doubles(reading.paths, reading.history.standings)
    if not shards:
        raise ConfigPathNotFoundError(f"none of the files holds a rollout: {', '.join(map(str, outputs[:3]))}")
    if inventory is not None:
        shards.append(_planned_only(inventory))
    return ReadShards(tuple(shards), tuple(notes))


def _planned_only(inventory: Path) -> Shard:
    """Return a shard that planned what `inventory` holds, and ran nothing."""
    if not inventory.is_file():
        raise ConfigPathNotFoundError(f"{inventory}: no such file of materialized inputs; see --materialized-inputs")
    standings = Standings()
    fold_plan_blocks(plain_blocks(inventory), standings, lambda _number, _error: None)
    return Shard(_Inventory(inventory), standings, DEFAULT_RULES, is_inventory=True)


class _Inventory(RunPaths, frozen=True):
    """The paths of a plan that lies apart from its results."""

    @property
    def materialized_inputs(self) -> Path:
        """The plan itself."""
        return self.output

    @property
    def failures(self) -> Path:
        """Beside no results there are none."""
        return self.output.with_name(f".{self.output.stem}.none")


class Aggregation:
    """Several runs by environment server. A context manager: it holds the shards' files open.

    Raises InputError when it is entered, where two results of a rollout cannot both be believed.
    """

    def __init__(self, shards: Sequence[Shard], counting: Counting, serving: Serving | None = None) -> None:
        self._shards = shards
        self._counting = counting
        self._servings = servings(shards, serving)
        self.groups = groups_of(shards, self._servings)
        self.notes: list[str] = []
        self.overlaps: list[str] = []
        self._holding = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as holding:
            self._lines = [_opened(shard.output, holding) for shard in self._shards]
            self.overlaps = settle_overlaps(self.groups, self._shards, self._lines)
            self.notes += self.overlaps
            self._zeros = ShardZeros(self._shards, self._servings, self._counting, holding)
            self.notes += self._zeros.notes
            self._labels = labels((group.name, tuple(sorted(group.agents))) for group in self.groups)
            self._imputed = {group.name: sum(1 for _ in self._zeros_of(group)) for group in self.groups}
            self._holding = holding.pop_all()
        return self

    def __exit__(self, *_error: object) -> None:
        self._holding.close()

    @property
    def counted(self) -> tuple[MetricsGroup, ...]:
        """The groups that have a row to count."""
        return tuple(group for group in self.groups if self.rows_in(group))

    def rows_in(self, group: MetricsGroup) -> int:
        """Return how many rows of a group count, zeros included."""
        return len(group.keys) + self._imputed[group.name]

    def _zeros_of(self, group: MetricsGroup) -> Iterator[ZeroAt]:
        return self._zeros.of(group) if self._zeros else iter(())

    def rows(self, group: MetricsGroup) -> Iterator[bytes]:
        """Yield the rows of a group in order: results as they were saved, and what stands for zeros."""
        return chain.from_iterable(self.pieces(group))

    def pieces(self, group: MetricsGroup) -> Iterator[list[bytes]]:
        """Yield the same, some at a time."""
        if not self._imputed[group.name]:
            return self._results(group)
        return some_at_a_time(self._with_zeros(group))

    def _cut(self, group: MetricsGroup) -> Cut | None:
        """Return where the rows of a group are cut, if they are many and all are results."""
        rows = len(group.keys)
        if rows < _WORTH_A_PROCESS or self._imputed[group.name]:
            return None
        taught = rows // _TAUGHT_BY
        middle = bisect_left(group.keys, group.keys[(taught + rows) // 2] >> 32 << 32)
        return Cut(partial(self._results, group), taught, middle) if middle > taught else None

    def _results(self, group: MetricsGroup, begin: int = 0, end: int | None = None) -> Iterator[list[bytes]]:
        stop = len(group.rows) if end is None else end
        for start in range(begin, stop, _AT_ONCE):
            here = slice(start, min(start + _AT_ONCE, stop))
            for shard, rows in _of_one_shard(group.shards[here], group.rows[here]):
                lines, table = self._lines[shard], self._shards[shard].standings.table
                if lines is not None:
                    yield from lines.pieces(_taken(table.offsets, rows), _taken(table.lengths, rows))

    def _with_zeros(self, group: MetricsGroup) -> Iterator[bytes]:
        carried: set[str] = set()
        for line in chain.from_iterable(self._results(group)):
            carried.update(_TOP.decode(line))
        results = zip(group.keys, chain.from_iterable(self._results(group)), strict=True)
        zeros = ((zero.key, self._zeros.row(zero, carried)) for zero in self._zeros_of(group))
        for _, row in merge(results, zeros):
            yield row

    def body(self, group: MetricsGroup, folder: Path, holding: ExitStack) -> BodyFile:
        """Return the request that asks a group's server, on disk in `folder` for as long as `holding` lasts."""
        body = BodyWriter(folder, holding)
        for row in self.rows(group):
            body.add(light_row(row))
        return body.ended()

    def head(self, group: MetricsGroup) -> JsonObject:
        """Return how the entry of a group begins."""
        server = group.name if group.is_served else None
        return {AGENT_REF_KEY: {"name": self._labels[group.name]}, NG_ENVIRONMENT_SERVER_KEY: server}

    def local(self, group: MetricsGroup, why: JsonObject, note: str) -> LocalEntry:
        """Return the entry of a group whose metrics are computed here; `why` its server did not compute them."""
        return LocalEntry(
            self.head(group) | why | {LOCALLY_KEY: True, NOTE_KEY: note},
            lambda: self.pieces(group),
            self.expected(group),
            lambda metrics: self.with_share(group, metrics),
            self._cut(group),
        )

    def expected(self, group: MetricsGroup) -> Expected:
        """Return what says how many rollouts of a task were planned."""
        if len(group.planned) == self.rows_in(group):
            return lambda _task: None
        return planned_by_task(group)

    def with_share(self, group: MetricsGroup, metrics: JsonObject) -> JsonObject:
        """Return metrics with what of the plan is in them, unless all of it is; a shared plan is told as a whole."""
        together = next(groups for groups in sharing(self.groups) if group in groups)
        standings = [shard.standings for shard in self._shards]
        planned, imputed = sum(len(one.planned) for one in together), sum(self._imputed[one.name] for one in together)
        counts = counted_at(places_of(together), standings)
        return with_share(metrics, share_of(planned, counts, imputed, self._disputed(places_of(together))))

    def _disputed(self, places: Iterable[tuple[int, int]]) -> int:
        """Return how many of the results at these places are of an attempt that has others which differ."""
        disputed = [set(shard.standings.doubles.rows(shard.standings.columns)) for shard in self._shards]
        return sum(row in disputed[shard] for shard, row in places) if any(disputed) else 0

    def reports(self, min_coverage: float | None) -> tuple[GroupReport, ...]:
        """Return what became of the rollouts of each group; of those that share a plan, together."""
        found = coverages(self.groups, self._shards, self._servings)
        return tuple(self._report(groups, found, min_coverage) for groups in sharing(self.groups))

    def _report(
        self, groups: Sequence[MetricsGroup], found: Mapping[str, Coverage], min_coverage: float | None
    ) -> GroupReport:
        def zeros() -> Iterator[tuple[int, float]]:
            return ((zero.key, zero.at.one.reward) for zero in merge(*map(self._zeros_of, groups)))

        headline = group_headline(groups, self._shards, zeros, min_coverage)
        coverage = summed(
            replace(found[group.name], unplanned=group.unplanned, disputed=self._disputed(places_of([group])))
            for group in groups
        )
        first = groups[0]
        return GroupReport(self._labels[first.name], first.name if first.is_served else None, coverage, *headline)

    def write_merged(self, output: RunPaths, at: str) -> Merged:
        """Write what stands of all shards as the run at `output`, whole; `at` is the time now.

        Raises:
            OSError: something cannot be read, or the disk does not take it.

        """
        return write_merged(output, self.groups, self._shards, self._lines, at)


def places_of(groups: Iterable[MetricsGroup]) -> Iterator[tuple[int, int]]:
    """Yield (shard, row of its table) of each result of `groups`."""
    return chain.from_iterable(zip(group.shards, group.rows, strict=True) for group in groups)


def _of_one_shard(shards: "array[int]", rows: "array[int]") -> Iterator[tuple[int, "array[int]"]]:
    """Yield rows that follow each other and are of one shard, with its number."""
    begin = 0
    for shard, alike in groupby(shards):
        stop = begin + sum(1 for _ in alike)
        yield shard, rows[begin:stop]
        begin = stop


def _taken(column: "array[int]", rows: "array[int]") -> Sequence[int]:
    """Return what a column says of rows."""
    first, count = rows[0], len(rows)
    if rows == array("I", range(first, first + count)):
        return column[first : first + count]
    return list(map(column.__getitem__, rows))


def _opened(output: Path, holding: ExitStack) -> PlacedRows | None:
    return holding.enter_context(PlacedRows(output)) if output.is_file() else None
