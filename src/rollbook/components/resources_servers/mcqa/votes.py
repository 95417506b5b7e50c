"""The metrics of answers that can be counted: pass@k, pass@1 averages and majority votes.

Source: servers.md §8.11.
"""

from collections.abc import Mapping
from typing import Any, Final

from rollbook import compute_pass_majority_metrics, highest_k_metrics

FORMS: Final = ("pass@1[avg-of-{k}]", "pass@{k}", "majority@{k}")


def votes(tasks: list[list[dict[str, Any]]]) -> dict[str, Any]:
    """Return pass@k, pass@1 averages and majority votes over `extracted_answer`, in percent."""
    metrics, *_ = compute_pass_majority_metrics(tasks, answer_key="extracted_answer")
    return metrics


def key_votes(agent_metrics: Mapping[str, Any]) -> dict[str, Any]:
    """Return the means, and the metrics of every form at the largest k."""
    means = {name: value for name, value in agent_metrics.items() if name.startswith("mean/")}
    found = (highest_k_metrics(agent_metrics, form) for form in FORMS)
    return means | {name: value for values in found for name, value in values.items()}
