"""What a plan is asked for, as one frozen value.

Rules:
* Settings are checked before they arrive here; a plan trusts them.

Source: collection.md §2, §10.3.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

DEFAULT_KEY: Final = "_default"
"""The entry of a per-agent mapping that stands for every other agent."""


class RoutingMode(StrEnum):
    """How a row finds its environment server."""

    AGENT = "agent"
    LEGACY = "legacy"
    TASKSET = "taskset"


@dataclass(frozen=True, slots=True)
class PlanOptions:
    """How source rows become rollouts.

    `repeats` and `add_seed` are one value for all, or one per routing key with `_default`; `limit` counts tasks
    (None: all); `overrides` are merged shallowly into each flat row's `responses_create_params`.
    """

    agent_map: Mapping[str, str] = field(default_factory=dict)
    fan_out: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    repeats: int | Mapping[str, int] = 1
    add_seed: bool | Mapping[str, bool] = False
    overrides: Mapping[str, object] = field(default_factory=dict)
    skills_ref: Mapping[str, object] | None = None
    routing: RoutingMode = RoutingMode.AGENT
    environment_server: str | None = None
    environment_routes: Mapping[str, str] = field(default_factory=dict)
    limit: int | None = None
    task_ids: frozenset[str] | None = None
    only_agent: str | None = None
