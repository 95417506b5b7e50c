"""What was counted → the summary of a run's health: its values, its JSON and its findings on the run as a whole.

Rules:
* What is expected, failed and missing comes from the run's plan and standings; where there is no plan it is not known.
* A limit is a share of the expected rollouts, of the records where there is no plan; none holds unless it is set.
* A run in which no rollout used a model is found, however well its records are formed.

Source: collection.md §7.2, §7.3; cases RC-72; vector V12.
"""

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import PurePath
from typing import Final

import msgspec

from rollbook.health.checks import ENDED_ON_FAILED_CALL, mask_of
from rollbook.health.finding import Finding, Verdict
from rollbook.health.reduction import Counts
from rollbook.health.tally import Tally
from rollbook.records.coverage import Coverage

MODEL_NEVER_USED: Final = "run_model_never_used"
LIMIT_EXCEEDED: Final = "run_limit_exceeded"


class Accounting(msgspec.Struct, frozen=True):
    """Rollouts that the plan holds, that failed, and that left neither a result nor a failure; None: not known.

    `final_zeros` of those that failed are a score of 0 for good: no limit is about them.
    """

    expected: int | None = None
    failed: int | None = None
    missing: int | None = None
    final_zeros: int = 0


def accounting_of(coverage: Coverage) -> Accounting:
    """Return the accounting of a run whose plan is covered so."""
    if not coverage.planned:
        return Accounting()
    return Accounting(coverage.planned, coverage.failed, coverage.missing, coverage.final_zeros)


class Limits(msgspec.Struct, frozen=True):
    """The shares of the expected rollouts that may fail, be missing or be unhealthy; None: any share."""

    failed: float | None = None
    missing: float | None = None
    unhealthy: float | None = None


class Source(msgspec.Struct, frozen=True):
    """A file that was checked."""

    name: str
    bytes: int
    sha256: str


class Health(msgspec.Struct, frozen=True):
    """Everything a summary tells of a run, but for its tasks."""

    counts: Counts
    tally: Tally
    ignored: tuple[str, ...]
    accounting: Accounting
    sources: tuple[Source, ...]
    limits: Limits

    def findings(self) -> tuple[Finding, ...]:
        """Return what is wrong with the run as a whole."""
        unused = Finding(MODEL_NEVER_USED, detail={"rollouts": self.tally.unused})
        never_used = [unused] if self.tally.is_without_model else []
        return (*never_used, *self._exceeded())

    def _exceeded(self) -> Iterator[Finding]:
        whole = self.accounting.expected or self.counts.records
        failed = None if self.accounting.failed is None else self.accounting.failed - self.accounting.final_zeros
        counted = (
            ("max_failed_fraction", self.limits.failed, failed),
            ("max_missing_fraction", self.limits.missing, self.accounting.missing),
            ("max_unhealthy_fraction", self.limits.unhealthy, self.counts.verdicts[Verdict.UNHEALTHY]),
        )
        for name, limit, count in counted:
            if limit is not None and count is not None and whole and count / whole > limit:
                yield Finding(LIMIT_EXCEEDED, detail={"limit": name, "most": limit, "share": count / whole})

    def run_json(self) -> dict[str, object]:
        """Return the `run` block of a summary."""
        counts, accounting = self.counts, self.accounting
        issues = counts.issues()
        return {
            "ignored_checks": list(self.ignored),
            "expected": accounting.expected,
            "failed": accounting.failed,
            "missing": accounting.missing,
            "findings": [finding.as_json() for finding in self.findings()],
            "artifacts": {
                "records": counts.records,
                "captures": self.tally.captures,
                "sources": [{"file": s.name, "bytes": s.bytes, "sha256": s.sha256} for s in self.sources],
                "digest": digest_of(self.sources),
                "coverage": counts.coverage(mask_of(self.ignored)),
            },
            "verdicts": {verdict.value: counts.verdicts[verdict] for verdict in Verdict},
            "issues": issues,
            "stats": self.tally.as_json(issues[ENDED_ON_FAILED_CALL]),
        }


class HealthSummary(msgspec.Struct, frozen=True):
    """What a health check came to, and where its reports lie."""

    health: Health
    summary: PurePath
    verdicts: PurePath

    @property
    def records(self) -> int:
        """How many records were checked."""
        return self.health.counts.records

    @property
    def healthy(self) -> int:
        """How many records are healthy."""
        return self.health.counts.verdicts[Verdict.HEALTHY]

    @property
    def unhealthy(self) -> int:
        """How many records are unhealthy."""
        return self.health.counts.verdicts[Verdict.UNHEALTHY]

    @property
    def unobserved(self) -> int:
        """How many records could not be judged."""
        return self.health.counts.verdicts[Verdict.UNOBSERVED]

    @property
    def exceeds_limits(self) -> bool:
        """Whether the run has more of what is not well than its limits let it have."""
        return any(finding.check == LIMIT_EXCEEDED for finding in self.health.findings())


def digest_of(sources: Sequence[Source]) -> str:
    """Return one digest of all sources, whatever their names and their order."""
    digests = sorted(source.sha256 for source in sources)
    return hashlib.sha256("\n".join(digests).encode()).hexdigest()
