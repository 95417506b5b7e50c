"""Options that the contract names and that nothing here acts on yet.

Rules:
* An option that would be ignored is refused by name; silence would be a lie about what a run did.
"""

from typing import Final

from pydantic import BaseModel

from rollbook.errors import ConfigError

_LATER: Final = frozenset(
    {
        "allow_unsafe_resume",
        "batch_manifest_fpath",
        "count_failure_classes_as_zero",
        "count_missing_rollouts_as_zero",
        "dispatch_budget_s",
        "dispatch_longest_first",
        "drain_margin_s",
        "resubmit",
        "retry_terminal_timeouts",
        "rollout_collection_driver",
        "server_queue_metrics_urls",
        "timing_summary_interval_s",
    }
)


def refuse_unsupported(settings: BaseModel) -> None:
    """Refuse options that were set and would be ignored.

    Raises:
        ConfigError: names every such option.

    """
    fields = type(settings).model_fields
    refused = sorted(
        name
        for name in _LATER & fields.keys()
        if getattr(settings, name) != fields[name].get_default(call_default_factory=True)
    )
    if refused:
        raise ConfigError(f"not available in this version: {', '.join(refused)}. Leave the option out")
