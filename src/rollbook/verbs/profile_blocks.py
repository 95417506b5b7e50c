"""The rollouts of runs that are profiled, many in each step: as columns where all are alike, else one by one.

Rules:
* Blocks follow each other by task and repeat, those of all runs together; a task may go on in the next block.
* Columns hold scored rollouts of one run, agent and server, all of them planned; of anything else each is told alone.
"""

import heapq
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice, pairwise
from operator import itemgetter
from typing import Final, NamedTuple

from rollbook.records.columns import PLANNED
from rollbook.records.table import NO_ROW
from rollbook.scoring.profile import Kind
from rollbook.verbs.profile_run import Pair, ProfiledRun, Seen, Zeros, kind_of

_AT_ONCE: Final = 1 << 11


class Block(NamedTuple):
    """Scored rollouts of one run, agent and server: of each its task, its reward and its record's row."""

    run: ProfiledRun
    pair: Pair
    tasks: list[int]
    rewards: list[float]
    rows: list[int]


def merged(runs: Sequence[ProfiledRun], at_once: int = _AT_ONCE) -> Iterator[Block | Iterable[Seen]]:
    """Yield every rollout of `runs` as `ProfiledRun.rollouts` does, those of all in one order, so many in a block."""
    bounds = sorted((run.bounds, at) for at, run in enumerate(runs) if len(run.standings))
    follow = all(before[0][1] < after[0][0] for before, after in pairwise(bounds))
    if follow:
        return chain.from_iterable(_blocks(runs[at], at_once) for _, at in bounds)
    return iter([heapq.merge(*(run.rollouts() for run in runs), key=itemgetter(0))])


def _blocks(run: ProfiledRun, at_once: int) -> Iterator[Block | Iterable[Seen]]:
    order, zeros = iter(run.standings.in_order()), Zeros(run)
    scored = {number for number, shape in enumerate(run.standings.kinds_of_ending) if kind_of(shape) is Kind.SCORED}
    while chunk := list(islice(order, at_once)):
        numbers, seats = zip(*chunk, strict=True)
        yield _block(run, numbers, seats, scored) or run.seen(chunk, zeros)


def _block(run: ProfiledRun, numbers: Iterable[int], seats: Sequence[int], scored: set[int]) -> Block | None:
    """Return rollouts as columns; None where they are not all alike."""
    table, columns = run.standings.table, run.standings.columns
    rows = [columns.row[seat] for seat in seats]
    if NO_ROW in rows or not scored.issuperset([table.kinds[row] for row in rows]):
        return None
    origins = {table.origins[row] for row in rows}
    if len(origins) > 1 or not (run.plan is None or all(columns.flags[seat] & PLANNED for seat in seats)):
        return None
    _, agent, server = table.sources[origins.pop()]
    tasks = [number >> 32 for number in numbers]
    return Block(run, (agent, server), tasks, [table.rewards[row] for row in rows], rows)
