"""What a gate is told: how far a candidate may fall, over how much data, and what happens when that is not known.

Rules:
* Every key is checked and none is passed over; a policy without a limit is no policy.
* A tier takes over what it does not say itself from the policy.

Source: issue "Scores that can be defended", compare.
"""

from collections.abc import Iterator
from enum import StrEnum
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from rollbook.compare.row_difference import ALPHA, MIN_COVERAGE

REWARD = "reward"
TagValue = str | bool | int | float
_Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
_Drop = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class Severity(StrEnum):
    """What a rule that is broken does."""

    WARN = "warn"
    BLOCK = "block"


class OnInconclusive(StrEnum):
    """What a rule does that too little data cannot decide."""

    WARN = "warn"
    BLOCK = "block"
    INCONCLUSIVE = "inconclusive"


class _Rules(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    max_drop: _Drop | None = None
    max_relative_drop: _Drop | None = None


class Tier(_Rules):
    """Limits for one number of the rows, one metric, one agent, or tasks with certain tags; None is the policy's."""

    name: Annotated[str, Field(min_length=1)]
    metric: Annotated[str, Field(min_length=1)] = REWARD
    field: Annotated[str, Field(min_length=1)] = REWARD
    agent: str | None = None
    tags: dict[str, TagValue | list[TagValue]] = Field(default_factory=dict)
    lower_is_better: bool = False
    severity: Annotated[Severity, Field(strict=False)] | None = None
    on_inconclusive: Annotated[OnInconclusive, Field(strict=False)] | None = None
    require_significance: bool | None = None
    non_inferiority: bool | None = None
    min_coverage: _Share | None = None
    min_paired: _Share | None = None
    min_tasks: Annotated[int, Field(ge=1)] | None = None
    allow_changed_tasks: bool | None = None
    assume_complete: bool | None = None

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if self.max_drop is None and self.max_relative_drop is None:
            raise ValueError("a tier has max_drop, max_relative_drop, or both")
        if self.metric != REWARD and self.tags:
            raise ValueError("tags select tasks of the rows, so they go with metric: reward alone")
        if REWARD not in (self.metric, self.field):
            raise ValueError("a tier is about a field of the rows or about a metric, not both")
        return self

    @property
    def judged(self) -> str:
        """What the limits are about: the reward, another field of the rows, or a metric."""
        return self.field if self.metric == REWARD else self.metric


class Policy(_Rules):
    """The whole policy. Limits at the top hold for the reward over all tasks that are compared.

    `max_drop` is in units of the metric, `max_relative_drop` a share of the baseline's value. `min_paired`: the share
    of either side's tasks that the other has as well; `min_coverage` where it is not given. `allow_changed_tasks`:
    tasks may say different things on both sides. `assume_complete`: where it is not known what was to be run, what is
    there is all of it.
    """

    version: Literal[1] = 1
    severity: Annotated[Severity, Field(strict=False)] = Severity.BLOCK
    on_inconclusive: Annotated[OnInconclusive, Field(strict=False)] = OnInconclusive.INCONCLUSIVE
    require_significance: bool = False
    non_inferiority: bool = False
    alpha: Annotated[float, Field(gt=0, lt=1)] = ALPHA
    min_coverage: _Share = MIN_COVERAGE
    min_paired: _Share | None = None
    min_tasks: Annotated[int, Field(ge=1)] = 1
    allow_changed_tasks: bool = False
    assume_complete: bool = False
    tiers: list[Tier] = Field(default_factory=list)

    @model_validator(mode="after")
    def _has_a_limit(self) -> Self:
        names = [tier.name for tier in self.tiers]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"two tiers have the name {twice[0]}")
        if not self.tiers and self.max_drop is None and self.max_relative_drop is None:
            raise ValueError("a policy has max_drop, max_relative_drop or tiers; without a limit nothing is gated")
        return self

    def demands(self) -> Iterator["Demand"]:
        """Yield what is demanded: of all tasks, where the policy itself has a limit, then by tier."""
        if self.max_drop is not None or self.max_relative_drop is not None:
            everything = Tier(name="all", max_drop=self.max_drop, max_relative_drop=self.max_relative_drop)
            yield Demand(self, everything)
        yield from (Demand(self, tier) for tier in self.tiers)


class Demand:
    """A tier, with what it takes over from its policy."""

    def __init__(self, policy: Policy, tier: Tier) -> None:
        self.tier = tier
        self.alpha = policy.alpha
        self.severity = tier.severity or policy.severity
        self.on_inconclusive = tier.on_inconclusive or policy.on_inconclusive
        self.require_significance = _first(tier.require_significance, policy.require_significance)
        self.non_inferiority = _first(tier.non_inferiority, policy.non_inferiority)
        self.allow_changed_tasks = _first(tier.allow_changed_tasks, policy.allow_changed_tasks)
        self.assume_complete = _first(tier.assume_complete, policy.assume_complete)
        self.min_tasks = policy.min_tasks if tier.min_tasks is None else tier.min_tasks
        self.min_coverage = policy.min_coverage if tier.min_coverage is None else tier.min_coverage
        paired = policy.min_paired if tier.min_paired is None else tier.min_paired
        self.min_paired = self.min_coverage if paired is None else paired

    @property
    def limits(self) -> Iterator[tuple[str, float]]:
        """The limits by name."""
        for name, limit in (
            ("max_drop", self.tier.max_drop),
            ("max_relative_drop", self.tier.max_relative_drop),
        ):
            if limit is not None:
                yield name, limit


def _first(own: bool | None, policy: bool) -> bool:
    return policy if own is None else own
