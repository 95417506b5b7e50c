"""One baseline and one or several candidates, compared: by aggregate metrics, and by rows where those are there.

Rules:
* Nothing is written, and no server is asked.
* Metrics alone, or rows alone, are enough; what is not there is said.
* Several candidates share one level: their p-values are adjusted before anything is called better or worse.

Source: collection.md §9.2.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from rollbook.compare.agents import Agents, compared_agents
from rollbook.compare.comparison import Candidate, Comparison
from rollbook.compare.gate import RuleOutcome, Ruling, gate_of, ruled_by_agents, ruled_by_damage
from rollbook.compare.metric_difference import MetricComparison, metric_comparison
from rollbook.compare.metric_side import MetricSide
from rollbook.compare.policy import Demand, Policy
from rollbook.compare.row_difference import ALPHA, MIN_COVERAGE
from rollbook.errors import ConfigError, ConfigPathNotFoundError
from rollbook.ledger.paths import aggregate_metrics_path_for
from rollbook.verbs.compare_gate import gate_rules
from rollbook.verbs.compare_metrics import read_metrics
from rollbook.verbs.compare_policy import read_policy
from rollbook.verbs.compare_rows import ComparedRows, Settings, compared_rows, has_rows

_NO_AGENTS: Final = Agents(())


@dataclass(frozen=True, slots=True)
class Run:
    """What is compared: a run's output, a file of aggregate metrics, or both."""

    output: Path | None
    metrics: Path | None = None

    @property
    def label(self) -> str:
        """What a report calls it."""
        return str(self.output or self.metrics)

    @property
    def has_rows(self) -> bool:
        """Whether its rows are there."""
        return self.output is not None and has_rows(self.output)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is asked for. `by_metrics`: aggregate metrics as well; `by_rows`: rows, where they are there.

    `alpha`, `min_coverage` and `assume_complete` of the verdict are the policy's where they are None.
    """

    baseline: Run
    candidates: tuple[Run, ...]
    settings: Settings
    policy: Path | None = None
    alpha: float | None = None
    min_coverage: float | None = None
    assume_complete: bool | None = None
    by_metrics: bool = True
    by_rows: bool = True


def compare(wanted: Wanted) -> Comparison:
    """Return what the comparison comes to.

    Raises:
        NoRunError: no run is where one was named.
        ConfigError: nothing can be compared, or the policy is none.

    """
    policy = read_policy(wanted.policy) if wanted.policy else None
    demands = tuple(policy.demands()) if policy else ()
    wanted = replace(wanted, settings=_settings(wanted, policy))
    rows, agents, warnings = _rows(wanted, demands)
    metrics, metric_agents, more_warnings = _metrics(wanted, needed=not rows)
    if not rows and not any(metrics):
        raise ConfigError("; ".join([*warnings, *more_warnings]) or "there is nothing to compare")
    lost = tuple(dict.fromkeys([*agents.lost, *metric_agents.lost]))
    candidates = []
    of_demands = gate_rules(demands, rows, metrics, len(wanted.candidates))
    for place, run in enumerate(wanted.candidates):
        of_rows, of_metrics = rows[place] if rows else None, metrics[place] if metrics else ()
        rules = (*of_demands[place], *(_of_policy(policy, of_rows, lost) if policy else ()))
        ruling = gate_of(rules) if policy else None
        candidates.append(Candidate(run.label, of_metrics, of_rows.whole if of_rows else None, rules, ruling))
    return Comparison(
        baseline=wanted.baseline.label,
        candidates=tuple(candidates),
        skipped_agents=tuple(dict.fromkeys([*agents.skipped, *metric_agents.skipped])),
        warnings=(*warnings, *more_warnings),
        alpha=wanted.settings.alpha,
        min_coverage=wanted.settings.min_coverage,
        policy=str(wanted.policy) if wanted.policy else None,
        ruling=_gravest(candidates),
    )


def _of_policy(policy: Policy, rows: ComparedRows | None, lost: Sequence[str]) -> Iterator[RuleOutcome]:
    yield from ruled_by_agents(policy, lost)
    yield from ruled_by_damage(policy, rows.whole.difference) if rows else ()


def _settings(wanted: Wanted, policy: Policy | None) -> Settings:
    alpha, min_coverage = (policy.alpha, policy.min_coverage) if policy else (ALPHA, MIN_COVERAGE)
    complete = policy.assume_complete if policy else False
    return replace(
        wanted.settings,
        alpha=alpha if wanted.alpha is None else wanted.alpha,
        min_coverage=min_coverage if wanted.min_coverage is None else wanted.min_coverage,
        assume_complete=complete if wanted.assume_complete is None else wanted.assume_complete,
    )


def _gravest(candidates: Sequence[Candidate]) -> Ruling | None:
    """Return the ruling over all candidates, None without a gate."""
    every = [rule for candidate in candidates for rule in candidate.rules]
    return gate_of(every) if any(candidate.ruling for candidate in candidates) else None


def _rows(wanted: Wanted, demands: Sequence[Demand]) -> tuple[list[ComparedRows], Agents, list[str]]:
    runs = (wanted.baseline, *wanted.candidates)
    if not wanted.by_rows:
        return [], _NO_AGENTS, []
    without = [run.label for run in runs if not run.has_rows]
    if without:
        return [], _NO_AGENTS, [f"{', '.join(without)}: no rows are there, so metrics alone are compared"]
    outputs = [run.output for run in runs if run.output is not None]
    rows, agents = compared_rows(outputs[0], outputs[1:], wanted.settings, demands)
    return rows, agents, []


def _metrics(wanted: Wanted, *, needed: bool) -> tuple[list[tuple[MetricComparison, ...]], Agents, list[str]]:
    """Compare by metrics; where rows are compared as well, metrics that cannot be are told and left out."""
    if not wanted.by_metrics:
        return [], _NO_AGENTS, []
    try:
        return _compared_metrics(wanted)
    except ConfigError as error:
        if needed:
            raise
        return [], _NO_AGENTS, [f"metrics are not compared: {error}"]


def _compared_metrics(wanted: Wanted) -> tuple[list[tuple[MetricComparison, ...]], Agents, list[str]]:
    ours = _read(wanted.baseline)
    theirs = [_read(run) for run in wanted.candidates]
    agents = compared_agents(wanted.settings.agents, ours.entries, [side.entries for side in theirs])
    compared = [
        tuple(metric_comparison(ours.entries[mine], side.entries[other]) for mine, other in pairs)
        for side, pairs in zip(theirs, agents.pairs, strict=True)
    ]
    warnings = [warning for side in (ours, *theirs) for warning in side.warnings]
    return compared, agents, warnings


def _read(run: Run) -> MetricSide:
    if run.metrics is not None:
        return read_metrics(run.metrics)
    if run.output is None:
        raise ConfigPathNotFoundError("neither a run nor a file of aggregate metrics was named")
    return read_metrics(aggregate_metrics_path_for(run.output))
