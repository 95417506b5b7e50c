"""The rollouts of runs that are profiled: what stands of each, whose it is, its row and its task's row.

Rules:
* Standing decides: of a rollout the result that stands is taken, and none that was superseded.
* A failure that its producer marks as a score of 0 measures, as it does in every other score.
* Without a plan, every rollout counts as planned that a record names.
* A rollout that no plan holds, or one attempt of which has several results, is refused.

Source: collection.md §4.9, §6.3, §9.4; cases RC-77, RC-81.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from rollbook.errors import LedgerError, RunError
from rollbook.ledger.contradictions import placed
from rollbook.ledger.paths import RunPaths
from rollbook.ledger.reader import OnDamage, not_a_record, plain_blocks, records_in
from rollbook.records.blocks import fold_plan_blocks, fold_result_blocks
from rollbook.records.bulk import OnFault
from rollbook.records.columns import PLANNED, packed_key, unpacked_key
from rollbook.records.disposition import DEFAULT_RULES, Rules
from rollbook.records.identity import RolloutKey
from rollbook.records.outcome import Masked, Result, Scored
from rollbook.records.place import File
from rollbook.records.standing import Standings
from rollbook.records.table import NO_ROW
from rollbook.scoring.imputation import BY_MARK, NOTHING_COUNTED, Added, added
from rollbook.scoring.profile import Kind
from rollbook.verbs.status import read_run

Pair = tuple[str | None, str | None]
"""An agent and an environment server, as far as a row names them."""

_PLAN: Final = "_materialized_inputs"
_OF_ONE_RUN: Final = "inputs and rollouts are those of one run"
_NO_ZERO: Final = Added(RolloutKey(-1, 0), None, None, BY_MARK, None)


class ProfileError(RunError, ValueError):
    """Rollouts that cannot be profiled as they are."""


class Seen(NamedTuple):
    """One rollout: its packed key, the run it is of, agent and server, what stands, its reward and its record's row."""

    number: int
    run: "ProfiledRun"
    pair: Pair
    kind: Kind
    reward: float
    row: int
    planned: bool

    @property
    def task(self) -> int:
        """The task that it is a repeat of."""
        return self.number >> 32


@dataclass(frozen=True, slots=True)
class ProfiledRun:
    """A run, folded. `plan` is None where there is none; then what is at hand is taken for all that was planned."""

    paths: RunPaths
    plan: Path | None
    standings: Standings
    damage: tuple[str, ...] = ()
    rules: Rules = DEFAULT_RULES

    def zeros(self) -> Iterator[Added]:
        """Yield the rollouts that failed and count as zero by their producer's mark, by task and repeat."""
        return added(self.standings, NOTHING_COUNTED, self.rules)

    @property
    def plan_is_plain(self) -> bool:
        """Whether every line of the plan named a rollout of its own, so that seats are in the order of its lines."""
        return not self.damage

    def pairs(self) -> Iterator[Pair]:
        """Yield the agents and servers that results and plan name, those of results first."""
        sources, names = list(self.standings.table.sources), list(self.standings.columns.names)
        yield from (sources[number][1:] for number in sorted(set(self.standings.table.origins)))
        yield from (names[number] for number in sorted(set(self.standings.columns.group)))
        yield from dict.fromkeys((one.agent, one.server) for one in self.zeros())

    def missing(self) -> int:
        """Return how many planned rollouts do not measure."""
        columns, kinds, every = self.standings.columns, self.standings.table.kinds, self.plan is None
        no_result = [kind_of(outcome) is Kind.NO_RESULT for outcome in self.standings.kinds_of_ending]
        states = zip(columns.row, columns.flags, strict=True)
        without = (row == NO_ROW or no_result[kinds[row]] for row, flags in states if every or flags & PLANNED)
        return sum(without) - sum(1 for _ in self.zeros())

    @property
    def bounds(self) -> tuple[int, int]:
        """The smallest and the largest packed key that the plan or a record names."""
        keys = self.standings.columns.seats.keys
        return min(keys), max(keys)

    def rollouts(self) -> Iterator[Seen]:
        """Yield every rollout that the plan or a result names (without a plan, any record), by task and repeat.

        Raises:
            ProfileError: a result is of a rollout that the plan does not hold.

        """
        return self.seen(self.standings.in_order(), Zeros(self))

    def seen(self, order: Iterable[tuple[int, int]], zeros: "Zeros") -> Iterator[Seen]:
        """Yield the same of the rollouts with these packed keys and seats."""
        table, columns = self.standings.table, self.standings.columns
        rows, kinds, flags, origins, groups = columns.row, table.kinds, columns.flags, table.origins, columns.group
        kinds_of = list(map(kind_of, self.standings.kinds_of_ending))
        sources: list[Pair] = [(agent, server) for _, agent, server in table.sources]
        names: list[Pair] = list(columns.names)
        every = self.plan is None
        for number, seat in order:
            row, planned = rows[seat], bool(flags[seat] & PLANNED)
            kind = Kind.NO_RESULT if row == NO_ROW else kinds_of[kinds[row]]
            if kind is Kind.NO_RESULT:
                if zero := zeros.taken(number):
                    yield Seen(number, self, (zero.agent, zero.server), Kind.ZERO, zero.reward, row, planned or every)
                elif planned or every:
                    pair = names[groups[seat]] if planned or row == NO_ROW else sources[origins[row]]
                    yield Seen(number, self, pair, kind, 0.0, row, planned=True)
                continue
            if not planned and self.plan is not None:
                raise self._extra(number, row)
            yield Seen(number, self, sources[origins[row]], kind, table.rewards[row], row, True)  # noqa: FBT003

    def _extra(self, number: int, row: int) -> ProfileError:
        place = placed(self.paths, self.standings.table.place(row))
        unread = [one for one in self.damage if one.startswith(f"{self.plan}:")]
        lines = "1 line" if len(unread) == 1 else f"{len(unread)} lines"
        why = f"{lines} of those cannot be read, first {unread[0]}" if unread else _OF_ONE_RUN
        return ProfileError(f"{place}: rollout {unpacked_key(number)} is not among the inputs ({self.plan}): {why}")

    def refuse_doubles(self) -> None:
        """Refuse several results of one attempt.

        Raises:
            ProfileError: there are such.

        """
        table = self.standings.table
        for earlier, later in self.standings.doubles.pairs.values():
            first, second = placed(self.paths, table.place(earlier)), placed(self.paths, table.place(later))
            raise ProfileError(
                f"{second}: the rollout of {first} is there twice; keep the right line in a copy of the file, and "
                "name the copy with --rollouts and the plan with --inputs"
            )


class Zeros:
    """The rollouts of `run` that failed and count as zero, one after the other."""

    def __init__(self, run: ProfiledRun) -> None:
        self._left = run.zeros()
        self._next = next(self._left, _NO_ZERO)

    def taken(self, number: int) -> Added | None:
        """Return the next one where it is the rollout with this packed key, which is asked for once."""
        found = self._next
        if number != packed_key(found.key):
            return None
        self._next = next(self._left, _NO_ZERO)
        return found


def kind_of(outcome: object) -> Kind:
    """Return what a profile takes an ending for."""
    match outcome:
        case Scored():
            return Kind.SCORED
        case Masked():
            return Kind.MASKED
        case _ if isinstance(outcome, Result):
            return Kind.UNSCORED
        case _:
            return Kind.NO_RESULT


def run_at(output: Path) -> ProfiledRun:
    """Fold the run at `output`.

    Raises:
        NoRunError: none is there.

    """
    reading = read_run(output)
    plan = reading.paths.materialized_inputs
    damage = tuple(f"{one.place}: {one.what}" for one in reading.faults)
    found = plan if plan.exists() else None
    return ProfiledRun(reading.paths, found, reading.history.standings, damage, reading.rules)


def run_of(inputs: Path, rollouts: Path) -> ProfiledRun:
    """Fold the materialized `inputs` and the `rollouts` of a run, wherever they lie.

    Raises:
        ProfileError: one of the files is not there.

    """
    for path in (inputs, rollouts):
        if not path.is_file():
            raise ProfileError(f"{path}: no such file; give a run's files with --inputs and --rollouts, or its output")
    paths = RunPaths(rollouts)
    if rollouts.stem.endswith(_PLAN):
        raise ProfileError(
            f"{rollouts}: a run's planned rows were given as its --rollouts; --inputs takes them, and --rollouts takes "
            "the results"
        )
    if inputs.resolve() == paths.materialized_inputs.resolve():
        return run_at(rollouts)
    damage: list[LedgerError] = []
    standings = Standings()
    fold_plan_blocks(plain_blocks(inputs), standings, _faults(inputs, damage.append))
    for record in records_in(paths.failures, File.FAILURES, None, damage.append):
        standings.add(record)
    fold_result_blocks(plain_blocks(rollouts), standings, _faults(rollouts, damage.append))
    return ProfiledRun(paths, inputs, standings, tuple(map(str, damage)))


def _faults(path: Path, on_damage: OnDamage) -> OnFault:
    return lambda number, error: on_damage(not_a_record(path, number, error))


def labels_of(runs: Iterable[ProfiledRun]) -> Mapping[Pair, str | None]:
    """Return what each agent and server is called: the agent where it has one server, else the server.

    A planned rollout that names no server has the label of its agent's results.
    """
    pairs = list(dict.fromkeys((agent, server) for run in runs for agent, server in run.pairs()))
    servers: dict[str | None, set[str]] = {}
    for agent, server in pairs:
        servers.setdefault(agent, set()).update(() if server is None else (server,))
    wanted = {pair: _wanted(pair, servers) for pair in pairs}
    claimed: dict[str | None, set[str | None]] = {}
    for pair, label in wanted.items():
        claimed.setdefault(label, set()).add(_who(pair, servers))
    return {pair: label if len(claimed[label]) == 1 or pair[1] is None else pair[1] for pair, label in wanted.items()}


def _wanted(pair: Pair, servers: Mapping[str | None, set[str]]) -> str | None:
    """Return the agent where it has one server, else the server, and what there is of the two."""
    agent, server = pair
    first, second = (server, agent) if agent is None or len(servers[agent]) > 1 else (agent, server)
    return second if first is None else first


def _who(pair: Pair, servers: Mapping[str | None, set[str]]) -> str | None:
    """Return the server that a pair stands for: its own, or the only one that its agent has."""
    agent, server = pair
    return server if server is not None else next(iter(servers[agent]), agent)
