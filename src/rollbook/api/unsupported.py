"""Options that the contract names and that nothing here acts on yet.

Rules:
* An option that would be ignored is refused by name; silence would be a lie about what a run did.
"""

from typing import Final

from pydantic import BaseModel

from rollbook.errors import ConfigError

LATER: Final = frozenset(
    {
        "dispatch_all_started_within_s",
        "dispatch_start_report_min_fraction",
        "dispatch_start_report_within_s",
        "long_rollout_max_fraction",
        "long_rollout_s",
        "server_queue_max_waiting_ratio",
        "timed_out_max_fraction",
        "timing_summary_interval_s",
    }
)
"""Options that would change what a run does or says, and do not yet."""

WITHOUT_EFFECT: Final = frozenset(
    {
        "upload_rollouts",
    }
)
"""Options about steps that no run takes yet: nothing that they could change is done."""


def refuse_unsupported(settings: BaseModel) -> None:
    """Refuse options that were set and would be ignored.

    Raises:
        ConfigError: names every such option.

    """
    fields = type(settings).model_fields
    refused = sorted(
        name
        for name in LATER & fields.keys()
        if getattr(settings, name) != fields[name].get_default(call_default_factory=True)
    )
    if refused:
        raise ConfigError(f"not available in this version: {', '.join(refused)}. Leave the option out")
