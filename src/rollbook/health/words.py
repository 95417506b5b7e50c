"""A summary of health in lines for a person.

Rules:
* The counts come first, in the field's own words, and behind them what would make an unobserved record observed.
* What is wrong with the run as a whole follows, loudly.

Source: collection.md §7.3; case RC-72.
"""

from collections.abc import Collection, Iterator
from typing import Final

from rollbook.health.finding import Finding
from rollbook.health.summary import MODEL_NEVER_USED, HealthSummary

_OBSERVED: Final = "checks go by a result's ng_trajectory or ng_model_call_capture, which its agent returns"


def lines_of(summary: HealthSummary, *, told: Collection[str] = ()) -> tuple[str, ...]:
    """Return the lines that tell of `summary`; findings of the checks that were `told` of already are left out."""
    return tuple(_lines(summary, told))


def _lines(summary: HealthSummary, told: Collection[str]) -> Iterator[str]:
    counts = (
        f"{summary.records} checked, {summary.healthy} healthy, {summary.unhealthy} unhealthy, "
        f"{summary.unobserved} unobserved"
    )
    unobserved = f" ({_OBSERVED})" if summary.unobserved else ""
    ignored = summary.health.ignored
    left_out = f" (ignored: {', '.join(ignored)})" if ignored else ""
    yield f"Rollout health: {counts}{unobserved}{left_out}"
    accounting = summary.health.accounting
    if accounting.failed or accounting.missing:
        yield f"Of {accounting.expected} planned rollouts {accounting.failed} failed, {accounting.missing} left nothing"
    issues = {name: count for name, count in summary.health.counts.issues().items() if count}
    if issues:
        yield "Found: " + ", ".join(f"{name} {count}" for name, count in issues.items())
    yield from (_warning(finding) for finding in summary.health.findings() if finding.check not in told)
    yield f"Health summary: {summary.summary}"


def _warning(finding: Finding) -> str:
    if finding.check == MODEL_NEVER_USED:
        return (
            f"WARNING: no rollout used the model: all {finding.detail['rollouts']} responses have an empty output and "
            "no tokens. The score says nothing about the model; look at the agent and at its model server"
        )
    share, most = finding.detail["share"], finding.detail["most"]
    return f"WARNING: {finding.detail['limit']}={most:g} is exceeded: the share is {share:.3f}"
