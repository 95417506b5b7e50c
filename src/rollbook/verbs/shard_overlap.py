"""Rollouts that several shards hold a result of.

Rules:
* The same line twice is one result, and it is said that it was there twice.
* Of several attempts of one run's rollout the latest stands.
* Anything else is refused: results that contradict each other, and runs that number their tasks alike at one server.

Source: collection.md §6.2, §6.4; case RC-81.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import groupby
from operator import itemgetter

from rollbook.errors import InputError
from rollbook.records.columns import unpacked_key
from rollbook.verbs.placed_rows import PlacedRows
from rollbook.verbs.shard_groups import MetricsGroup, Shard


def settle_overlaps(
    groups: Iterable[MetricsGroup], shards: Sequence[Shard], lines: Sequence[PlacedRows | None]
) -> list[str]:
    """Leave each rollout of a group one result, and return notes on what was there more than once.

    Raises:
        InputError: two results of a rollout that cannot both be believed; names both files and lines.

    """
    twice: Counter[tuple[int, int]] = Counter()
    for group in groups:
        if group.has_overlap:
            _settle(group, _Chooser(group.name, shards, lines, twice))
    return [
        f"{shards[second].output}: {count} results are in {shards[first].output} as well; each counts once"
        for (first, second), count in sorted(twice.items())
    ]


def _settle(group: MetricsGroup, chooser: "_Chooser") -> None:
    kept: list[int] = []
    for _, alike in groupby(enumerate(group.keys), key=itemgetter(1)):
        best, *others = (position for position, _ in alike)
        for other in others:
            best = chooser.chosen(group, best, other)
        kept.append(best)
    group.keep(kept)


class _Chooser:
    """Chooses between two results of one rollout."""

    def __init__(
        self, name: str, shards: Sequence[Shard], lines: Sequence[PlacedRows | None], twice: Counter[tuple[int, int]]
    ) -> None:
        self._name = name
        self._shards = shards
        self._lines = lines
        self._twice = twice

    def chosen(self, group: MetricsGroup, first: int, second: int) -> int:
        """Return the position of the one that stands."""
        one, other = (group.shards[first], group.rows[first]), (group.shards[second], group.rows[second])
        if self._text(*one) == self._text(*other):
            self._twice[one[0], other[0]] += 1
            return first
        tables = self._shards[one[0]].standings.table, self._shards[other[0]].standings.table
        runs = tables[0].run_id(one[1]), tables[1].run_id(other[1])
        attempts = tables[0].attempt(one[1]), tables[1].attempt(other[1])
        where = f"{self._place(*one)} and {self._place(*other)}"
        rollout = unpacked_key(group.keys[first])
        if runs[0] is None or runs[0] != runs[1]:
            raise InputError(_independent(self._name, f"rollout {rollout}", where, runs))
        if attempts[0] == attempts[1]:
            raise InputError(
                f"{where}: two different results of attempt {attempts[0]} of rollout {rollout}, both of run {runs[0]}; "
                "one of the files was changed: leave it out of --input-glob"
            )
        return first if attempts[0] > attempts[1] else second

    def _text(self, shard: int, row: int) -> bytes:
        table, lines = self._shards[shard].standings.table, self._lines[shard]
        return b"" if lines is None else lines.at(table.offsets[row], table.lengths[row]).rstrip()

    def _place(self, shard: int, row: int) -> str:
        return f"{self._shards[shard].output}:{self._shards[shard].standings.table.lines[row]}"


def _independent(name: str, rollout: str, where: str, runs: tuple[str | None, str | None]) -> str:
    named = " and ".join(run or "a run without a name" for run in runs)
    return (
        f"{where}: {rollout} of {name} is there twice, of independent runs ({named}) that number their tasks alike; "
        "parts of one dataset number their tasks as the whole does where they are run with --task-shard K/N, or where "
        "each row states its `_ng_task_index`; aggregate runs of the same tasks one at a time, and set them side by "
        "side with gym eval compare"
    )
