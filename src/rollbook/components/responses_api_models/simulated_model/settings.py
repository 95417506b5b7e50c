"""The configuration of a simulated model: how it answers, how long it takes, how it fails.

Rules:
* The defaults answer at once and never fail; whatever goes wrong was asked for.
* An option that does not exist is refused, as is a distribution that cannot be drawn from.
"""

import math
from enum import StrEnum
from typing import Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from rollbook import BaseResponsesAPIModelConfig


class PolicySettings(BaseModel):
    """How often an answer is right; `wrong`, `malformed` and `refuses` share what is left by weight."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    p_correct: float = Field(default=0.7, ge=0, le=1)
    wrong: float = Field(default=8, ge=0)
    malformed: float = Field(default=1, ge=0)
    refuses: float = Field(default=1, ge=0)

    @model_validator(mode="after")
    def _something_is_left_to_do(self) -> Self:
        if self.p_correct < 1 and self.wrong + self.malformed + self.refuses == 0:
            raise ValueError(
                f"p_correct is {self.p_correct}, and wrong, malformed and refuses are all 0: give one of them a weight"
            )
        return self


class Distribution(StrEnum):
    """The shape of a latency."""

    CONSTANT = "constant"
    UNIFORM = "uniform"
    EXPONENTIAL = "exponential"
    LOGNORMAL = "lognormal"


class LatencySettings(BaseModel):
    """How long an answer takes, in seconds; `sigma` is the lognormal's spread, `max_seconds` the longest wait."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    distribution: Distribution = Distribution.CONSTANT
    mean_seconds: float = Field(default=0, ge=0, allow_inf_nan=False)
    sigma: float = Field(default=0.5, gt=0, le=5)
    max_seconds: float = Field(default=math.inf, ge=0)


class FaultSettings(BaseModel):
    """The share of requests that meet each fault; `retry_after_seconds` goes out with a 429."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    rate_limited: float = Field(default=0, ge=0, le=1)
    server_error: float = Field(default=0, ge=0, le=1)
    stall: float = Field(default=0, ge=0, le=1)
    drop: float = Field(default=0, ge=0, le=1)
    truncated: float = Field(default=0, ge=0, le=1)
    retry_after_seconds: int = Field(default=1, ge=0)

    @model_validator(mode="after")
    def _shares_of_one_whole(self) -> Self:
        total = self.rate_limited + self.server_error + self.stall + self.drop + self.truncated
        if total > 1 + 1e-9:
            raise ValueError(f"the rates of the faults add up to {total:g}; together they may be 1 at most")
        return self


class SimulatedModelConfig(BaseResponsesAPIModelConfig):
    """A simulated model. `answers_fpath` names data sets whose rows it knows; null means those of the configuration."""

    seed: int = 0
    model: str = "simulated"
    answers_fpath: str | list[str] | None = None
    policy: PolicySettings = Field(default_factory=PolicySettings)
    latency: LatencySettings = Field(default_factory=LatencySettings)
    faults: FaultSettings = Field(default_factory=FaultSettings)
