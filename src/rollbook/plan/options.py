"""What a plan is asked for, as one frozen value.

Rules:
* What decides which rollouts there are (repeats, seeds, agent map, fan-out) is checked here, whoever asks; the rest is
  trusted.

Source: collection.md §2, §10.3; case RC-69.
"""

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Final

import msgspec

from rollbook.config.repeats import checked_agent_map, checked_fan_out, checked_repeats, checked_seeds
from rollbook.errors import InputError

DEFAULT_KEY: Final = "_default"
"""The entry of a per-agent mapping that stands for every other agent."""
_CHECKS: Final[Mapping[str, tuple[str, Callable[[object], object]]]] = {
    "repeats": ("num_repeats", checked_repeats),
    "add_seed": ("num_repeats_add_seed", checked_seeds),
    "agent_map": ("agent_map", checked_agent_map),
    "fan_out": ("fan_out", checked_fan_out),
}


class RoutingMode(StrEnum):
    """How a row finds its environment server."""

    AGENT = "agent"
    LEGACY = "legacy"
    TASKSET = "taskset"


class PlanOptions(msgspec.Struct, frozen=True):
    """How source rows become rollouts.

    `repeats` and `add_seed` are one value for all, or one per routing key with `_default`; `limit` counts tasks
    (None: all); `part` (k, n) keeps of n parts of the tasks the k-th, from 1 on, numbered as in the whole; `overrides`
    are merged shallowly into each flat row's `responses_create_params`; `environment_routes` are those that the command
    names. With `open_routes`, an episode task without a route is left to whoever sends it.

    Raises:
        InputError: repeats that are no whole numbers from 1 on, seeds that are neither true nor false, an agent map to
            no agent, or a fan-out to none or twice to one.

    """

    agent_map: Mapping[str, str] = msgspec.field(default_factory=dict)
    fan_out: Mapping[str, Sequence[str]] = msgspec.field(default_factory=dict)
    repeats: int | Mapping[str, int] = 1
    add_seed: bool | Mapping[str, bool] = False
    overrides: Mapping[str, object] = msgspec.field(default_factory=dict)
    skills_ref: Mapping[str, object] | None = None
    routing: RoutingMode = RoutingMode.AGENT
    environment_server: str | None = None
    environment_routes: Mapping[str, str] = msgspec.field(default_factory=dict)
    deployment_routes: Mapping[str, str] = msgspec.field(default_factory=dict)
    open_routes: bool = False
    limit: int | None = None
    part: tuple[int, int] | None = None
    task_ids: frozenset[str] | None = None
    only_agent: str | None = None

    def __post_init__(self) -> None:
        """Check what decides which rollouts there are; no repeats at all stand for one."""
        for field, (option, checked) in _CHECKS.items():
            try:
                msgspec.structs.force_setattr(self, field, checked(getattr(self, field)))
            except ValueError as error:
                raise InputError(f"{option} cannot be planned: {error}") from None
