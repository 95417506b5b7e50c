"""How many results of each kind the rollouts of a plan left, by whose they are.

Rules:
* One pass over places in columns; rows are not read.
* A result that is in no plan, though there is one, is not counted.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping

from rollbook.records.columns import PLANNED
from rollbook.records.outcome import Masked, Result, Scored
from rollbook.records.standing import Standings
from rollbook.records.table import NO_ROW
from rollbook.scoring.coverage_report import ScoreShare

Named = Callable[[str | None, str | None], str]
"""Whose the results are that name this agent and this environment server."""
Counts = Counter[type]
"""How many results there are by what they are: `Scored`, `Masked` or `Unscored`."""


def result_counts(standings: Standings, named: Named) -> dict[str, Counts]:
    """Return the counts of the results that stand."""
    columns, table = standings.columns, standings.table
    every = not any(columns.flags)
    rows = (
        row
        for row, flags in zip(columns.row, columns.flags, strict=True)
        if row != NO_ROW and (every or flags & PLANNED)
    )
    kinds, origins = table.kinds, table.origins
    alike = Counter((origins[row], kinds[row]) for row in rows)
    counts: defaultdict[str, Counts] = defaultdict(Counter)
    for (origin, kind), count in alike.items():
        outcome = table.outcomes[kind]
        if isinstance(outcome, Result):
            _, agent, server = table.sources[origin]
            counts[named(agent, server)][type(outcome)] += count
    return dict(counts)


def counted_at(places: Iterable[tuple[int, int]], standings: list[Standings]) -> Counts:
    """Return the counts of results at these places: which standings, and which row of their table."""
    tables = [one.table for one in standings]
    kinds = [table.kinds for table in tables]
    counts: Counts = Counter()
    for (number, kind), count in Counter((number, kinds[number][row]) for number, row in places).items():
        counts[type(tables[number].outcomes[kind])] += count
    return counts


def disputed_counts(standings: Standings, named: Named) -> Counter[str]:
    """Return how many rollouts are disputed, by whose result stands of each."""
    table, counts = standings.table, Counter[str]()
    for row in standings.doubles.rows(standings.columns):
        _, agent, server = table.sources[table.origins[row]]
        counts[named(agent, server)] += 1
    return counts


def share_of(planned: int, counts: Mapping[type, int], imputed: int, disputed: int = 0) -> ScoreShare:
    """Return what of so many planned rollouts is in the mean."""
    scored, masked = counts.get(Scored, 0), counts.get(Masked, 0)
    return ScoreShare(planned, scored, masked, sum(counts.values()) - scored - masked, imputed, disputed)
