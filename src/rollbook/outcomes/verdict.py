"""An ending → what is saved of it, and whether the run goes on.

Rules:
* With routing on, a failed `/run` is a failure row and the run goes on.
* With routing off it is evidence, and the run ends: the evidence is saved first.

Source: collection.md §3.7, §4.2, §21.1.
"""

from rollbook.records.codec import failure_fields
from rollbook.records.ending import Ending
from rollbook.records.outcome import Evidence, Failed


def ends_the_run(ending: Ending, *, route_failures: bool) -> bool:
    """Whether the run stops after this ending."""
    return ending.run_failed and not route_failures


def as_evidence(ending: Ending) -> Ending:
    """Return what is saved of a failed `/run` that ends the run."""
    if not isinstance(ending.outcome, Failed):
        return ending
    failed = ending.outcome
    evidence = Evidence(f"{failed.exception_type or 'error'}: {failed.message}")
    return Ending(evidence, failure_fields(failed), report=ending.report)
