"""Options that the contract names and that nothing here acts on yet.

Rules:
* An option that would be ignored is refused by name; silence would be a lie about what a run did. So is one of a
  report that nothing turned on.
* What the contract allows beside another option is not refused: where it has no effect, that is noted.
"""

from collections.abc import Iterator
from typing import Final

from rollbook.config.collection import RolloutCollectionConfig
from rollbook.errors import ConfigError

LATER: Final[frozenset[str]] = frozenset()
"""Options that would change what a run does or says, and do not yet."""

TIMED: Final = frozenset(
    {
        "dispatch_all_started_within_s",
        "dispatch_start_report_min_fraction",
        "long_rollout_max_fraction",
        "long_rollout_s",
        "server_queue_max_waiting_ratio",
        "timed_out_max_fraction",
        "timing_summary_interval_s",
    }
)
"""Options of the timing table, which `dispatch_start_report_within_s` turns on."""

WITHOUT_EFFECT: Final = frozenset(
    {
        "upload_rollouts",
    }
)
"""Options about steps that no run takes yet: nothing that they could change is done."""


def refuse_unsupported(settings: RolloutCollectionConfig) -> None:
    """Refuse options that were set and would be ignored.

    Raises:
        ConfigError: names every such option.

    """
    refused = _set_among(settings, LATER)
    if refused:
        raise ConfigError(f"not available in this version: {', '.join(refused)}. Leave the option out")
    timed = _set_among(settings, TIMED)
    if timed and settings.dispatch_start_report_within_s is None:
        raise ConfigError(
            f"of the timing table, which is off: {', '.join(timed)}. Turn it on with "
            "+dispatch_start_report_within_s=<seconds>, or leave the option out"
        )


def without_effect(settings: RolloutCollectionConfig) -> Iterator[str]:
    """Yield what is to be told of options that were set and do nothing."""
    server, mode = settings.environment_server_name, settings.environment_routing_mode
    if server is not None and mode != "legacy":
        yield (
            f"environment_server_name={server} has no effect where environment_routing_mode is {mode}; "
            "+environment_routing_mode=legacy sends rows there"
        )


def _set_among(settings: RolloutCollectionConfig, names: frozenset[str]) -> list[str]:
    """Return which of the options `names` have another value than their default."""
    fields = type(settings).model_fields
    return sorted(
        name
        for name in names & fields.keys()
        if getattr(settings, name) != fields[name].get_default(call_default_factory=True)
    )
