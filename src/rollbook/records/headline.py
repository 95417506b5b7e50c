"""The number that a run is known by, as a value: what was observed, how sure it is, and whether it may be told.

Rules:
* Values alone; `scoring` computes them.

Source: collection.md §6.6; case RC-71.
"""

import msgspec
from msgspec.structs import asdict, replace

from rollbook.records.json_values import JsonObject


class Range(msgspec.Struct, frozen=True):
    """From `low` to `high`."""

    low: float
    high: float


class Measured(msgspec.Struct, frozen=True):
    """What the rewards of a group of tasks come to.

    `rollouts` of the `planned` ones are measured: they are scored, or count as zero (`imputed` of them). `tasks` have
    at least one measured rollout. `within_unit`: every reward lies from 0 to 1.
    """

    mean: float | None
    standard_error: float | None
    tasks: int
    rollouts: int
    planned: int
    imputed: int = 0
    within_unit: bool = True


class Headline(msgspec.Struct, frozen=True):
    """What was observed, and whether it may stand for the run.

    `bounds` are what the mean would be were every rollout that is not measured 0, or 1; None where a reward lies
    outside 0 to 1, or nothing was planned. `coverage` is the measured share of the plan. `withheld` says why there is
    no headline; None where there is one, which is `observed.mean`.
    """

    observed: Measured
    interval: Range | None
    bounds: Range | None
    coverage: float
    min_coverage: float
    withheld: str | None

    @property
    def value(self) -> float | None:
        """The headline; None where it is withheld."""
        return None if self.withheld else self.observed.mean

    @property
    def interval_beyond_rewards(self) -> bool:
        """Whether the interval reaches below 0 or above 1, and every reward lies between them."""
        found = self.interval
        return found is not None and self.observed.within_unit and not 0 <= found.low <= found.high <= 1

    def rejected_by(self, error: Exception, what: str = "the run") -> "Headline":
        """Return the headline withheld, as `what` is rejected for what the first sentence of `error` says."""
        why = str(error).partition(". ")[0].removeprefix("EVAL FAILED: ")
        return replace(self, withheld=f"{what} is rejected: {why}")

    def to_json(self) -> JsonObject:
        """Return the headline for programs: `value` is null where it is `withheld`; what was observed is there always.

        `interval_95` and `bounds` are null or `{low, high}`; `planned` counts rollouts, `coverage` is a share.
        """
        observed = self.observed
        return {
            "value": self.value,
            "withheld": self.withheld,
            "observed_mean": observed.mean,
            "standard_error": observed.standard_error,
            "interval_95": None if self.interval is None else asdict(self.interval),
            "interval_beyond_rewards": self.interval_beyond_rewards,
            "bounds": None if self.bounds is None else asdict(self.bounds),
            "tasks": observed.tasks,
            "measured": observed.rollouts,
            "imputed": observed.imputed,
            "planned": observed.planned,
            "coverage": self.coverage,
            "min_coverage": self.min_coverage,
        }
