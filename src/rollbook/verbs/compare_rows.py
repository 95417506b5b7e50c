"""Runs compared by their rows: one baseline, each candidate, and of each the parts of it that a gate asks about.

Rules:
* Every run is read once; what stays of it is columns.
* What several candidates are held to together is decided once all of them are measured.

Source: collection.md §9.2.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rollbook.compare.agents import AgentChoice, Agents, compared_agents
from rollbook.compare.comparison import RowComparison
from rollbook.compare.flips import flips_of
from rollbook.compare.multiplicity import holm_of_known
from rollbook.compare.pairing import PairBy, Pairing, paired
from rollbook.compare.policy import REWARD, Demand
from rollbook.compare.row_difference import ALPHA, MIN_COVERAGE, RowDifference, row_difference, selected
from rollbook.compare.scored_pairs import ScoredPairs
from rollbook.compare.side import Side
from rollbook.compare.transitions import transitions
from rollbook.compare.verdict import judged
from rollbook.ledger.paths import RunPaths
from rollbook.verbs.compare_answers import Answers
from rollbook.verbs.compare_fields import fields_of
from rollbook.verbs.compare_side import side_of

FLIPS_LISTED = 10


@dataclass(frozen=True, slots=True)
class Settings:
    """How runs are compared; `flips` of either direction are listed with both answers, `seed` is chance's.

    `assume_complete`: where a run has no plan, what is there is all that was to be run.
    """

    agents: AgentChoice
    pair_by: PairBy = PairBy.CONTENT
    alpha: float = ALPHA
    min_coverage: float = MIN_COVERAGE
    seed: int = 0
    flips: int = FLIPS_LISTED
    assume_complete: bool = False


@dataclass(frozen=True, slots=True)
class JudgedPart:
    """What a gate asks about, measured: the difference, and its p-value among those of all candidates."""

    difference: RowDifference
    p_value: float | None


@dataclass(frozen=True, slots=True)
class ComparedRows:
    """One candidate by its rows, and the parts of it that demands speak of, by the tier's name."""

    whole: RowComparison
    parts: Mapping[str, JudgedPart]


def has_rows(output: Path) -> bool:
    """Whether anything is there of the run at `output` but what was made of it."""
    paths = RunPaths(output)
    return any(path.exists() for path in (paths.output, paths.failures, paths.materialized_inputs))


def compared_rows(
    baseline: Path, candidates: Sequence[Path], settings: Settings, demands: Sequence[Demand] = ()
) -> tuple[list[ComparedRows], Agents]:
    """Return each candidate against the baseline, and which agents were compared.

    Raises:
        NoRunError: no run is where one was named.
        ConfigError: there is no agent to compare, or it was not said which.

    """
    tags = [demand.tier.tags for demand in demands]
    ours = side_of(baseline, tags)
    theirs = [side_of(candidate, tags) for candidate in candidates]
    agents = compared_agents(settings.agents, ours.agents, [side.agents for side in theirs])
    sized = [_Pair(ours, side, pairs, settings) for side, pairs in zip(theirs, agents.pairs, strict=True)]
    measured = [pair.measured(demands) for pair in sized]
    for field in {demand.tier.field for demand in demands} - {REWARD}:
        own = side_of(baseline, tags, field)
        for found, candidate, pairs in zip(measured, candidates, agents.pairs, strict=True):
            found.update(_Pair(own, side_of(candidate, tags, field), pairs, settings).parts(demands, field))
    names = measured[0] if measured else {}
    adjusted = {name: holm_of_known([parts[name].test.p_value for parts in measured]) for name in names}
    compared = []
    for place, pair in enumerate(sized):
        parts = {name: JudgedPart(part, adjusted[name][place]) for name, part in measured[place].items()}
        compared.append(ComparedRows(pair.compared(parts.pop(_WHOLE)), parts))
    return compared, agents


_WHOLE = ""
"""The part that is all of it; a tier's name is never empty."""


@dataclass(slots=True)
class _Pair:
    """The baseline and one candidate."""

    baseline: Side
    candidate: Side
    agents: tuple[tuple[str, str], ...]
    settings: Settings
    _pairing: Pairing | None = None

    @property
    def pairing(self) -> Pairing:
        if self._pairing is None:
            self._pairing = paired(self.baseline, self.candidate, self.agents, self.settings.pair_by, fields_of)
        return self._pairing

    def measured(self, demands: Iterable[Demand]) -> dict[str, RowDifference]:
        """Return the difference over everything, and over each part that a demand is about."""
        whole = self._difference(self.pairing, self.settings.alpha)
        return {_WHOLE: whole} | self.parts(demands, REWARD, whole)

    def parts(
        self, demands: Iterable[Demand], field: str, whole: RowDifference | None = None
    ) -> dict[str, RowDifference]:
        """Return the difference over each part that a demand on `field` is about; `whole` is that over everything."""
        parts = {}
        for number, demand in enumerate(demands):
            if demand.tier.field == field:
                everything = demand.tier.agent is None and not demand.tier.tags
                part = self.pairing if everything else self._part(number, demand)
                known = whole if everything and demand.alpha == self.settings.alpha else None
                parts[demand.tier.name] = known or self._difference(part, demand.alpha)
        return parts

    def _difference(self, pairing: Pairing, alpha: float) -> RowDifference:
        return row_difference(self.baseline, self.candidate, pairing, alpha=alpha, seed=self.settings.seed)

    def _part(self, number: int, demand: Demand) -> Pairing:
        bit, agent = 1 << number, demand.tier.agent
        known_as = {theirs: ours for ours, theirs in self.agents}

        def fits(side: Side, unit: int) -> bool:
            name = side.agents[side.agent[unit]]
            named = known_as.get(name, name) if side is self.candidate else name
            return bool(side.tags[unit] & bit) and agent in {None, name, named}

        return selected(self.baseline, self.candidate, self.pairing, fits)

    def compared(self, whole: JudgedPart) -> RowComparison:
        """Return the comparison, its flips with both answers."""
        settings, pairs = self.settings, ScoredPairs(self.baseline, self.candidate, self.pairing)
        answers = Answers(pairs, Path(self.baseline.label), Path(self.candidate.label))
        return RowComparison(
            agents=self.agents,
            difference=whole.difference,
            judgement=judged(
                whole.difference,
                whole.p_value,
                alpha=settings.alpha,
                min_coverage=settings.min_coverage,
                assume_complete=settings.assume_complete,
            ),
            transitions=transitions(self.baseline, self.candidate, self.pairing),
            flips=flips_of(pairs.moves, answers.change, binary=pairs.is_binary(), most=settings.flips),
            notes=tuple(self._notes(whole.difference)),
        )

    def _notes(self, difference: RowDifference) -> Iterator[str]:
        yield from (f"{side.label}: {note}" for side in (self.baseline, self.candidate) for note in side.notes)
        if difference.difference is not None and math.isinf(difference.difference):
            yield f"{self.candidate.label}: the difference is larger than any number that can be written"
